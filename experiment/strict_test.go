package experiment

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/run"
)

var update = flag.Bool("update", false, "write what is said into testdata/strict; read it before you keep it")

// Each file in testdata/strict is an experiment file and, behind a line ---8<---,
// everything that is said of it: errors, or warnings with "warning: " before them.
func TestStrict(t *testing.T) {
	files, _ := filepath.Glob("testdata/strict/*.txt")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text, want, ok := strings.Cut(string(data), "---8<---\n")
			if !ok {
				t.Fatal("no expectation")
			}
			c, warnings, err := Parse("x.yaml", []byte(text), Strict)
			var got strings.Builder
			if err != nil {
				got.WriteString(err.Error() + "\n")
				if run.ExitCode(err) != 2 {
					t.Errorf("exit code %d", run.ExitCode(err))
				}
			}
			for _, w := range warnings {
				got.WriteString("warning: " + w.In("x.yaml") + "\n")
			}
			if *update {
				if err := os.WriteFile(f, []byte(text+"---8<---\n"+got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(want, got.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if (c == nil) != (err != nil) {
				t.Error("either a config or an error")
			}
		})
	}
}

func TestStrictDefaults(t *testing.T) {
	c, warnings, err := Parse("x.yaml", []byte("experiment: {name: t}\nmodels: [{id: a, engine: llamacpp, path: m}]\n"), Strict)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	path := "m"
	want := Default(Strict)
	want.Experiment.Name = "t"
	want.Models = []Model{{ID: "a", Engine: LlamaCPP, Path: &path, DType: "float16"}}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	s := c.Settings()
	if s.EngineThreads() < 1 || s.KVBlockTokens != 16 || s.RowLimit != 50_000_000 || !s.Experts || !s.Calibration || s.Callback || s.KVTypeK != "f16" {
		t.Errorf("settings: %+v", s)
	}
	s.Threads = 3
	if s.EngineThreads() != 3 {
		t.Error("threads are not taken")
	}
}

func TestOwnSettings(t *testing.T) {
	c, _, err := Parse("x.yaml", []byte(`
experiment: {name: t}
models: [{id: a, engine: llamacpp, path: m}]
tierscope:
  threads: "2"
  seed: 4294967294
  flash_attn: on
  kv_type_k: q8_0
  kv_type_v: q4_0
  callback: yes
  experts: false
  calibration: 0
  row_limit: 1_000
  lib: /opt/lib
  prompts:
  - text: |
      one
      two
    tokens: 7
  - {text: more, keep: true}
`), Strict)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{Collector: TensorGraph, Threads: 2, Seed: 4294967294, KVBlockTokens: 16, Lib: "/opt/lib", FlashAttn: FlashOn,
		KVTypeK: "q8_0", KVTypeV: "q4_0", Callback: true, RowLimit: 1000,
		Prompts: []OwnPrompt{{Text: "one\ntwo\n", Tokens: 7}, {Text: "more", Keep: true}}}
	if d := cmp.Diff(want, c.Settings()); d != "" {
		t.Error(d)
	}
	prompts, err := c.LoadPrompts()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Prompt{{Text: "one\ntwo\n", Tokens: 7}, {Text: "more", Keep: true}}, prompts); d != "" {
		t.Error(d)
	}
}

// The section tierscope is an unknown key for mrm-trace.
func TestCompatIgnoresOwnSection(t *testing.T) {
	c, warnings, err := Parse("x", []byte("experiment: {name: t}\nmodels: [{id: a, engine: llamacpp, path: m}]\ntierscope: {threads: x}\n"), Compat)
	if err != nil || len(warnings) > 0 || c.Tierscope != nil {
		t.Error(err, warnings, c)
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name, file, strict, compat string
		strictExit                 int
	}{
		{"missing", filepath.Join(dir, "nofile"), "no such file", "Config file not found: ", 2},
		{"directory", dir, "is a directory", "is a directory", 5},
		{"empty", write("empty", ""), "file is empty", "Config file is empty", 2},
		{"comment", write("comment", "# nothing\n"), "file is empty", "Config file is empty", 2},
		{"null", write("null", "null\n"), "file is empty", "Config file is empty", 2},
		{"latin1", write("latin1", "experiment: {name: caf\xe9}\n"), "byte 22 is not UTF-8", "byte 22 is not UTF-8", 2},
		{"control", write("control", "a: b\nc: \x01\n"), ":2:4: not parseable as YAML: character U+0001", "line 2, column 4", 2},
		{"open", write("open", "a: {b: [c\n"), ":1:8: not parseable as YAML: bracket [ is not closed", "expected ',' or ']', but got '<stream end>'", 2},
		{"quote", write("quote", "a: \"b\n"), ":1:4: not parseable as YAML: ", "Failed to parse YAML: ", 2},
		{"two documents", write("two", "a: 1\n---\nb: 1\n"), ":2:1: not parseable as YAML: a second document", "a second document", 2},
		{"alias", write("alias", "a: *b\n"), ":1:4: not parseable as YAML: alias *b has no anchor", "alias *b", 2},
		{"loop", write("loop", "a: &b [*b]\n"), "alias *b lies inside", "alias *b", 2},
		{"tag", write("tag", "a: !!python/object:x {}\n"), "tag !!python/object:x is not known", "tag !!python", 2},
		{"date", write("date", "a: 2026-13-01\n"), "\"2026-13-01\" is not a date", "2026-13-01", 2},
		{"list", write("list", "- 1\n"), ":1:1: a list where the sections", "[model_type]", 2},
		{"scalar", write("scalar", "hello\n"), ":1:1: a string where the sections", "[model_type]", 2},
		{"deep brackets", write("deep", strings.Repeat("[", 100_000)), "deeper than 100", "deeper than 100", 2},
		{"deep entries", write("entries", strings.Repeat("- ", 100_000)), "deeper than 100", "deeper than 100", 2},
		{"tags", write("tags", strings.Repeat("!a ", 100_000)), "deeper than 100", "deeper than 100", 2},
		{"many keys", write("keys", strings.Repeat("k: v\n", 6000)), ":5001:2: not parseable as YAML: more than 5000 keys", "more than 5000 keys", 2},
		{"huge", write("huge", strings.Repeat("#\n", maxFile/2+1)), "larger than 4 MiB", "larger than 4 MiB", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Load(c.file, Strict)
			if err == nil || run.ExitCode(err) != c.strictExit || !strings.Contains(err.Error(), c.strict) || strings.Contains(err.Error(), "\n") {
				t.Errorf("strict: exit %d: %v", run.ExitCode(err), err)
			}
			var b strings.Builder
			_, _, err = Load(c.file, Compat)
			if perr := PrintErrors(&b, err, Compat); perr != nil {
				t.Fatal(perr)
			}
			if run.ExitCode(err) != 1 || !strings.HasPrefix(b.String(), "  [ERROR] ") || !strings.Contains(b.String(), c.compat) {
				t.Errorf("compat: exit %d: %v", run.ExitCode(err), b.String())
			}
		})
	}
}

// A file of unknown keys is told in a page, not in a book.
func TestProblemsAreBounded(t *testing.T) {
	_, _, err := Parse("x.yaml", []byte(strings.Repeat("k: v\n", 3000)), Strict)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxProblems+1 || !strings.HasPrefix(lines[maxProblems], "x.yaml: and ") {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"testdata/mrm/*.yaml", "testdata/strict/*.txt", "../docs/examples/*.yaml"} {
		files, _ := filepath.Glob(dir)
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("a: &x {b: [1, *x]}\n<<: *x\n? [k]\n: !!str 5\n"))
	f.Add([]byte("experiment: &e {name: t}\nmodels: [&m {id: a, engine: llamacpp, path: m}, {<<: *m, id: b}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []Mode{Strict, Compat} {
			c, warnings, err := Parse("x.yaml", data, m)
			if err != nil {
				if len(err.Error()) == 0 || c != nil {
					t.Fatalf("mode %d: %v %v", m, c, err)
				}
				continue
			}
			if m == Compat && len(warnings) > 0 {
				t.Fatal("warnings where mrm-trace is silent")
			}
			if c.totalRuns(c.Sweep.Repetitions, c.Sweep.WarmupRuns).Int64() > 2000 {
				continue
			}
			p := NewPlan(c, m)
			if _, err := p.Document(Stamp(fixedTime), warnings); err != nil {
				t.Fatal(err)
			}
			if m == Compat {
				continue
			}
			ids := map[string]bool{}
			for i := range p.Runs {
				id := p.Runs[i].RunID("s")
				if ids[id] || strings.ContainsAny(id, "/\x00\n") {
					t.Fatalf("run id %q twice or unfit", id)
				}
				ids[id] = true
			}
		}
	})
}

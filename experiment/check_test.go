package experiment

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckCompatEnvironment(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	const perf, memray = "no_perf", "no_memray"
	for _, c := range []struct {
		collector string
		env       Environment
		want      []string
	}{
		{"{}", Environment{no, no}, []string{perf, memray}},
		{"{}", Environment{yes, no}, []string{memray}},
		{"{}", Environment{no, yes}, []string{perf}},
		{"{fallback: null}", Environment{no, no}, []string{perf}},
		{"{primary: memray, fallback: null}", Environment{no, no}, []string{memray}},
		{"{primary: process_monitor}", Environment{no, no}, []string{memray}},
		{"{primary: process_monitor, fallback: null, fallback_2: memray}", Environment{no, no}, nil},
	} {
		cfg, _, err := Parse("x", []byte("experiment: {name: t}\nmodels: [{id: a, engine: vllm, hf_repo: x}]\ncollector: "+c.collector+"\n"), Compat)
		if err != nil {
			t.Fatal(err)
		}
		f := cfg.CheckCompat(c.env)
		var got []string
		for _, w := range f.Warnings {
			got = append(got, w.Kind)
		}
		if d := cmp.Diff(c.want, got); d != "" || len(f.Errors) > 0 {
			t.Errorf("%s: %v %s", c.collector, f.Errors, d)
		}
	}
}

// A program perf and a Python that imports memray, or not, are found on PATH.
func TestHost(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	env := Host(context.Background())
	if env.Perf() || env.Memray() {
		t.Error("found on an empty PATH")
	}
	for _, name := range []string{"perf", "python3"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !env.Perf() || !env.Memray() {
		t.Error("not found")
	}
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if env.Memray() {
		t.Error("import fails and memray is there")
	}
}

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"m.gguf": "", "p.txt": "hello\n", "p.jsonl": `{"text": "x", "category": "c"}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head := "experiment: {name: t}\nmodels: [{id: a, engine: llamacpp, path: m.gguf}]\n"
	for _, c := range []struct{ text, want string }{
		{head, ""},
		{head + "prompts: {source: p.txt}\n", ""},
		{head + "prompts: {source: p.jsonl, categories: [c]}\n", ""},
		{head + "prompts: {source: p.jsonl, categories: [d]}\n", "prompts.source: p.jsonl: none of 1 prompts is in categories d"},
		{head + "prompts: {source: none.txt}\n", "prompts.source: prompt file cannot be read: open none.txt"},
		{head + "output: {base_dir: m.gguf}\n", "output.base_dir: m.gguf is no directory"},
		{head + "tierscope: {lib: nolib}\n", "tierscope.lib: nolib: no such file"},
		{strings.Replace(head, "m.gguf", "no.gguf", 1), "models.0.path: no.gguf: no such file"},
		{strings.Replace(head, "m.gguf", ".", 1), "models.0.path: . is a directory"},
		{head + "sweep: {repetitions: 1001}\n", "warning: sweep: Sweep will produce 1001 actual runs"},
	} {
		if err := os.WriteFile("x.yaml", []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		v := Validate("x.yaml", Strict, Environment{}, slog.New(slog.DiscardHandler))
		var got []string
		for _, p := range v.Errors {
			got = append(got, p.Path+": "+p.Message)
		}
		for _, p := range v.Warnings {
			got = append(got, "warning: "+p.Path+": "+p.Message)
		}
		joined := strings.Join(got, "\n")
		if c.want == "" && joined != "" || c.want != "" && !strings.HasPrefix(joined, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.text, joined, c.want)
		}
		var out, errs bytes.Buffer
		if err := v.Print(&out, &errs); err != nil {
			t.Fatal(err)
		}
		if v.Valid != strings.HasSuffix(out.String(), "Config is valid.\n") || v.Valid != (errs.Len() == 0) || v.Valid != (v.Err() == nil) {
			t.Errorf("valid %t, printed %q and %q", v.Valid, out.String(), errs.String())
		}
	}
}

package experiment

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/run"
)

// fixture is what mrm-trace 0.1.23 says of one experiment file.
type fixture struct {
	Validate, Plan *struct {
		Exit           int
		Stdout, Stderr string
	}
	Config   any
	Runs     [][]any
	Columns  []string `json:"runs_columns"`
	NRuns    int      `json:"n_runs"`
	Problems [][2]string
}

// The recordings were made where perf and memray exist.
var recordedOn = Environment{Perf: func() bool { return true }, Memray: func() bool { return true }}

// sameText compares up to where a recording is cut.
func sameText(t *testing.T, what, want, got string) {
	t.Helper()
	if head, _, cut := strings.Cut(want, "<cut>\n"); cut {
		if !strings.HasPrefix(got, head) || len(got) <= len(head) {
			t.Errorf("%s begins otherwise:\nwant %q\ngot  %q", what, head, got)
		}
		return
	}
	if want != got {
		t.Errorf("%s:\nwant %q\ngot  %q", what, want, got)
	}
}

func TestOriginalFixtures(t *testing.T) {
	t.Chdir("testdata/mrm")
	data, err := os.ReadFile("expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]fixture
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("*.yaml")
	if len(all) != len(files)+1 {
		t.Fatalf("%d cases for %d files", len(all), len(files))
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			file := name + ".yaml"
			var out, errs bytes.Buffer
			v := Validate(file, Compat, recordedOn, slog.New(slog.DiscardHandler))
			if err := v.Print(&out, &errs); err != nil {
				t.Fatal(err)
			}
			if got := run.ExitCode(v.Err()); got != want.Validate.Exit {
				t.Errorf("validate exits with %d, not %d", got, want.Validate.Exit)
			}
			sameText(t, "validate's stdout", want.Validate.Stdout, out.String())
			sameText(t, "validate's stderr", want.Validate.Stderr, errs.String())
			if want.Plan != nil {
				comparePlan(t, file, want)
			}
			if want.Problems != nil {
				var got [][2]string
				for _, p := range v.Errors {
					got = append(got, [2]string{p.Path, p.Kind})
				}
				if d := cmp.Diff(want.Problems, got); d != "" {
					t.Errorf("problems (-want +got):\n%s", d)
				}
			}
		})
	}
}

func comparePlan(t *testing.T, file string, want fixture) {
	c, warnings, err := Load(file, Compat)
	if got := run.ExitCode(err); got != want.Plan.Exit {
		t.Errorf("plan exits with %d, not %d", got, want.Plan.Exit)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings where mrm-trace is silent: %v", warnings)
	}
	var out, errs bytes.Buffer
	if err != nil {
		if err := PrintErrors(&errs, err, Compat); err != nil {
			t.Fatal(err)
		}
		sameText(t, "plan's stderr", want.Plan.Stderr, errs.String())
		return
	}
	p := NewPlan(c, Compat)
	if err := p.Print(&out); err != nil {
		t.Fatal(err)
	}
	sameText(t, "plan's stdout", want.Plan.Stdout, out.String())
	if d := cmp.Diff(want.Config, generic(t, c)); d != "" {
		t.Errorf("config (-want +got):\n%s", d)
	}
	if len(p.Runs) != want.NRuns {
		t.Errorf("%d runs, not %d", len(p.Runs), want.NRuns)
	}
	var got [][]any
	for i := range min(len(p.Runs), 14) {
		r := &p.Runs[i]
		got = append(got, []any{r.RunID("<TS>"), r.OutputDir("<TS>"), r.Model, float64(r.ContextLength), float64(r.BatchSize),
			float64(r.OutputTokens), float64(r.RepIndex), r.Warmup})
	}
	if d := cmp.Diff(want.Runs, got); d != "" {
		t.Errorf("runs (-want +got):\n%s", d)
	}
}

// generic is v as JSON's plain types.
func generic(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var g any
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

const cutConfig = `experiment: {name: cut}
models: [{id: tiny, engine: llamacpp, path: tiny.gguf}]
sweep: {context_lengths: [256], output_tokens: [12], batch_sizes: [1], repetitions: 1, warmup_runs: 0}
tierscope:
  threads: 1
  calibration: false
  row_limit: 100
  prompts: [{text: one two three four}]
`

// sizes returns the rows of a trace and the bytes that they touched.
func sizes(t *testing.T, path string) (rows int, bytes uint64) {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.Read(observe.ColSize, func(b *observe.Batch) error {
		for i := range b.Len {
			bytes += b.Size.At(i)
		}
		rows += b.Len
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, bytes
}

// What a row limit kept out of trace.parquet is in every figure and in every export.
func TestRunCutByItsRowLimit(t *testing.T) {
	if _, err := fetch.Libs(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tierscope(t, dir, "model", "synth", "--out", "tiny.gguf", "--width", "64", "--vocab", "256", "--layers", "2", "--heads", "4")
	if err := os.WriteFile(filepath.Join(dir, "cut.yaml"), []byte(cutConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	tierscope(t, dir, "run", "--config", "cut.yaml", "--out", "out")
	found, err := filepath.Glob(filepath.Join(dir, "out/tiny/*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("runs: %v %v", found, err)
	}
	run := found[0]
	if rows, _ := sizes(t, filepath.Join(run, "trace.parquet")); rows != 100 {
		t.Errorf("the trace has %d rows, the limit is 100", rows)
	}
	meta, err := os.ReadFile(filepath.Join(run, "metadata.json"))
	left := regexp.MustCompile(`"code": "row_limit",[^}]*"count": (\d+)`).FindSubmatch(meta)
	if err != nil || left == nil {
		t.Fatalf("no note says that rows were left out: %v", err)
	}

	tierscope(t, dir, "export", "--input", run, "--format", "parquet", "--output", "all")
	rows, bytes := sizes(t, filepath.Join(dir, "all/trace.parquet"))
	if number(uint64(rows-100)) != string(left[1]) {
		t.Errorf("all rows are %d, the note counts %s beyond 100", rows, left[1])
	}
	objects := 0
	if err := trace.ReadObjects(filepath.Join(dir, "all/objects.parquet"), func(*observe.Object) error { objects++; return nil }); err != nil || objects == 0 {
		t.Errorf("%d objects: %v", objects, err)
	}
	marks, err := os.ReadFile(filepath.Join(run, "marks.parquet"))
	if again, err2 := os.ReadFile(filepath.Join(dir, "all/marks.parquet")); err != nil || err2 != nil || string(again) != string(marks) {
		t.Errorf("marks differ from the run's (%v, %v)", err, err2)
	}
	c := countAgain(t, filepath.Join(dir, "all"), false)
	total := uint64(0)
	for _, d := range c.regions {
		total += d.read + d.written + d.padding
	}
	if total != bytes {
		t.Errorf("regions add up to %d bytes of %d", total, bytes)
	}

	text := tierscope(t, dir, "export", "--input", run, "--compat", "mrm", "--output", "mrm/x/y")
	if want := "mrm/x/y: " + number(uint64(rows)) + " rows,"; !strings.HasPrefix(text, want) {
		t.Errorf("export says %q, not %q", text, want)
	}
	if compat, _ := sizes(t, filepath.Join(dir, "mrm/x/y/trace.parquet")); compat != rows {
		t.Errorf("the compatible trace has %d rows, not %d", compat, rows)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "mrm/x/y/metadata.json")); err != nil || strings.Contains(string(text), `"code": "row_limit"`) {
		t.Errorf("the exported metadata say that rows are missing (%v)", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "mrm/x/.tierscope*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	whole := tierscope(t, dir, "analyze", "--input", "all/trace.parquet", "--compat", "mrm", "--json")
	if tierscope(t, dir, "analyze", "--input", run, "--compat", "mrm", "--json") != whole {
		t.Error("the tables of the cut run are not those of all its rows")
	}
	if tierscope(t, dir, "analyze", "--input", filepath.Join(run, "trace.parquet"), "--compat", "mrm", "--json") == whole {
		t.Error("the tables of the cut trace are those of all rows: nothing was cut")
	}
}

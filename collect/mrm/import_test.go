package mrm

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

const (
	full      = "testdata/box-1/tiny-q4/run_fx"
	loadsOnly = "testdata/box-2/loads-only/run_lo"
)

// rows returns the compatible columns of a trace as text.
func rows(t *testing.T, path string) []string {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	err = r.Read(observe.ColsCompat, func(b *observe.Batch) error {
		for i := range b.Len {
			row := []any{b.RunID.Text(i), b.SampleID.At(i), b.Time.At(i), b.Phase.Text(i), b.Phase.Null(i), b.Address.At(i), b.AddressPage.At(i),
				b.OpType.Text(i), b.Symbol.Text(i), b.DSO.Text(i), b.RegionType.Text(i), b.RegionType.Null(i), b.RegionID.At(i), b.Latency.At(i),
				b.Latency.Null(i), b.CacheLevel.Text(i), b.CacheLevel.Null(i), b.NUMANode.Null(i), b.CPU.Null(i), b.ThreadID.At(i), b.TokenIndex.Null(i)}
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			out = append(out, string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func regions(t *testing.T, dir string) (out []trace.RegionRow) {
	t.Helper()
	if err := trace.ReadRegionMap(filepath.Join(dir, RegionFile), func(r *trace.RegionRow) error { out = append(out, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func blocks(t *testing.T, dir string) (out []trace.KVBlockRow) {
	t.Helper()
	if err := trace.ReadKVBlocks(filepath.Join(dir, LifecycleFile), func(r *trace.KVBlockRow) error { out = append(out, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func codes(notes []run.Note) string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Code)
	}
	return strings.Join(out, " ")
}

func importOf(t *testing.T, path string) *Result {
	t.Helper()
	res, err := Import(context.Background(), path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Verify(res.RunDir); err != nil {
		t.Error(err)
	}
	return res
}

func TestImportKeepsEverything(t *testing.T) {
	res := importOf(t, full)
	if !strings.HasSuffix(res.RunDir, "/tiny-q4/run_fx") || res.Rows != 400 || res.Skipped != 0 || len(res.Notes) != 0 {
		t.Errorf("%+v", res)
	}
	if d := cmp.Diff(rows(t, filepath.Join(full, TraceFile)), rows(t, filepath.Join(res.RunDir, TraceFile))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(regions(t, full), regions(t, res.RunDir)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(blocks(t, full), blocks(t, res.RunDir)); d != "" {
		t.Error(d)
	}
	for _, name := range []string{MetricsFile, PromptsFile} {
		want, _ := os.ReadFile(filepath.Join(full, name))
		if got, err := os.ReadFile(filepath.Join(res.RunDir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	m, err := run.ReadMetadata(res.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	if m.MachineID != "box-1" || m.Collector.Type != "perf_mem" || m.Clocks.Clock != run.ClockPerf || *m.Generation.ContextLength != 512 ||
		m.Thermal.RunValidity != "clean" || m.State != run.StateComplete || !m.Validity.Valid {
		t.Errorf("metadata %+v", m)
	}
	if _, err := Import(context.Background(), full, filepath.Dir(filepath.Dir(res.RunDir))); run.ExitCode(err) != 2 {
		t.Errorf("second import into the same place: %v", err)
	}
	if _, err := Import(context.Background(), res.RunDir, t.TempDir()); run.ExitCode(err) != 2 {
		t.Errorf("import of a run of ours: %v", err)
	}
}

func TestImportWithoutRegions(t *testing.T) {
	res := importOf(t, loadsOnly)
	if !strings.HasSuffix(res.RunDir, "/imported/run_lo") || codes(res.Notes) != "no_region_map" {
		t.Errorf("%s, notes %s", res.RunDir, codes(res.Notes))
	}
	if len(regions(t, res.RunDir)) != 0 || len(blocks(t, res.RunDir)) != 0 {
		t.Error("rows in files that should be empty")
	}
}

// A raw trace gets the labels that the original gave it.
func TestImportOfARawTrace(t *testing.T) {
	res := importOf(t, "testdata/raw.parquet")
	if codes(res.Notes) != "labelled_here no_metrics" || !strings.HasSuffix(res.RunDir, "/imported/raw") {
		t.Errorf("%s, notes %s", res.RunDir, codes(res.Notes))
	}
	if d := cmp.Diff(rows(t, filepath.Join(full, TraceFile)), rows(t, filepath.Join(res.RunDir, TraceFile))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(regions(t, full), regions(t, res.RunDir)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(blocks(t, full), blocks(t, res.RunDir)); d != "" {
		t.Error(d)
	}
}

// copyOf is a copy of a run directory that a test may spoil.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestImportOfDamage(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string)
		code  int
		want  string
	}{
		"trace changed":       {func(d string) { write(t, d+"/trace.parquet", "PAR1 but no more PAR1") }, 3, "trace.parquet has 21 bytes"},
		"listed file missing": {func(d string) { os.Remove(d + "/region_map.parquet") }, 3, "region_map.parquet is missing"},
		"manifest cut":        {func(d string) { write(t, d+"/manifest.json", `{"files": [`) }, 3, "manifest.json"},
		"manifest leads out": {func(d string) {
			write(t, d+"/manifest.json", `{"manifest_schema_version":"1.0","run_id":"x","created_at_utc":"","files":[{"path":"../x","size_bytes":1,"sha256":"`+strings.Repeat("0", 64)+`"}]}`)
		}, 3, "leads out"},
		"trace unlisted": {func(d string) {
			write(t, d+"/manifest.json", `{"manifest_schema_version":"1.0","run_id":"x","created_at_utc":"","files":[]}`)
		}, 1, "has no trace.parquet"},
		"trace cut": {func(d string) { os.Remove(d + "/manifest.json"); os.Truncate(d+"/trace.parquet", 9000) }, 3, "trace.parquet"},
		"prompts":   {func(d string) { os.Remove(d + "/manifest.json"); write(t, d+"/prompt_outputs.json", `{"prompts": 3}`) }, 3, "prompt_outputs.json"},
		"metrics":   {func(d string) { os.Remove(d + "/manifest.json"); write(t, d+"/metrics.csv", "a,b\n1,2\n") }, 3, "metrics.csv"},
		"no run":    {func(d string) { os.RemoveAll(d); os.Mkdir(d, 0o755) }, 1, "no trace.parquet"},
		"nothing":   {func(d string) { os.RemoveAll(d) }, 2, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, out := copyOf(t, full), t.TempDir()
			c.spoil(dir)
			_, err := Import(context.Background(), dir, out)
			if run.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (code %d), want code %d and %q", err, run.ExitCode(err), c.code, c.want)
			}
			if left, _ := filepath.Glob(out + "/*/*"); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Names and paths in files lead nowhere; what is stale or a link is left out.
func TestImportTrustsNoName(t *testing.T) {
	dir := copyOf(t, full)
	os.Remove(dir + "/manifest.json")
	write(t, dir+"/metadata.json", `{"run_id": "../../evil", "model": {"id": "/etc"}, "nan": NaN, "thermal": {"peak_temp_c": NaN}}`)
	os.Remove(dir + "/prompt_outputs.json")
	if err := os.Symlink("/etc/passwd", dir+"/prompt_outputs.json"); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/raw/perf_script.txt", "text")
	write(t, dir+"/working_set.png", "no picture, but a plain file")
	out := t.TempDir()
	res, err := Import(context.Background(), dir, out)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := filepath.Rel(out, res.RunDir); got != "etc/evil" {
		t.Errorf("run directory %s", got)
	}
	if got := codes(res.Notes); got != "no_manifest not_plain renamed renamed" {
		t.Errorf("notes %s", got)
	}
	if _, err := os.Stat(res.RunDir + "/prompt_outputs.json"); err == nil {
		t.Error("a link was followed")
	}
	for _, name := range []string{"raw/perf_script.txt", "figures/working_set.png"} {
		if _, err := os.Stat(filepath.Join(res.RunDir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestImportLeavesOutStaleFiles(t *testing.T) {
	dir := copyOf(t, loadsOnly)
	text, err := os.ReadFile(full + "/" + RegionFile)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/"+RegionFile, string(text))
	res := importOf(t, dir)
	if codes(res.Notes) != "stale_file no_region_map" || len(regions(t, res.RunDir)) != 0 {
		t.Errorf("notes %s", codes(res.Notes))
	}
}

func TestImportInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Import(ctx, full, t.TempDir()); run.ExitCode(err) != 130 {
		t.Errorf("%v", err)
	}
}

// Whatever the small files hold, an import fails with a class or gives a run
// that verifies and lies below where it was asked for.
func FuzzImport(f *testing.F) {
	meta, err := os.ReadFile(full + "/" + MetadataFile)
	if err != nil {
		f.Fatal(err)
	}
	manifest, _ := os.ReadFile(full + "/manifest.json")
	prompts, _ := os.ReadFile(full + "/" + PromptsFile)
	table, _ := os.ReadFile(full + "/" + LifecycleFile)
	f.Add(meta, manifest, prompts, table)
	f.Add([]byte(`{"run_id":"..","model":{"id":"é/"}}`), []byte{}, []byte(`{"prompts":[]}`), table)
	raw, err := os.ReadFile(loadsOnly + "/" + TraceFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, meta, manifest, prompts, table []byte) {
		dir, out := t.TempDir(), t.TempDir()
		for name, data := range map[string][]byte{TraceFile: raw, MetadataFile: meta, "manifest.json": manifest, PromptsFile: prompts, LifecycleFile: table} {
			if len(data) > 0 {
				write(t, filepath.Join(dir, name), string(data))
			}
		}
		res, err := Import(context.Background(), dir, out)
		if err != nil {
			if left, _ := filepath.Glob(out + "/*/*"); len(left) != 0 {
				t.Fatalf("left behind: %v", left)
			}
			return
		}
		if rel, err := filepath.Rel(out, res.RunDir); err != nil || strings.Count(rel, "/") != 1 || !filepath.IsLocal(rel) {
			t.Fatalf("run directory %s", res.RunDir)
		}
		if err := run.Verify(res.RunDir); err != nil {
			t.Fatal(err)
		}
	})
}

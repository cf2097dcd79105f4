package trace

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// python returns an interpreter with pyarrow and pandas, those of the environment
// that mrm-trace lives in.
func python(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs pyarrow from PyPI: not with -short")
	}
	var why bytes.Buffer
	script := exec.Command("../scripts/venv-mrm.sh")
	script.Stderr = &why
	exe, err := script.Output()
	if err != nil {
		t.Skipf("no pyarrow, offline or without python3-venv: %v: %.300s", err, why.String())
	}
	return strings.TrimSpace(string(exe))
}

// found is what pyarrow says about a file.
type found struct {
	Path     string
	Rows     int64
	Groups   int
	Fields   [][2]string
	Nullable bool
	Version  string
	Columns  map[string][]string
	Stats    map[string][3]any
}

func dump(t *testing.T, exe string, paths ...string) map[string]found {
	t.Helper()
	cmd := exec.Command(exe, append([]string{filepath.Join("testdata", "pyarrow", "dump.py")}, paths...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("dump.py: %v\n%s", err, stderr.String())
	}
	files := map[string]found{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var f found
		if err := dec.Decode(&f); err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(f.Path)] = f
	}
	if len(files) != len(paths) {
		t.Fatalf("pyarrow read %d files of %d", len(files), len(paths))
	}
	return files
}

// wrapText is text as a reader of unsigned 64-bit columns has it.
func wrapText(col []string) []string {
	out := make([]string, len(col))
	for i, s := range col {
		out[i] = s
		if strings.HasPrefix(s, "-") {
			v, _ := strconv.ParseInt(s, 10, 64)
			out[i] = strconv.FormatUint(uint64(v), 10)
		}
	}
	return out
}

// compare reads path and holds it against what pyarrow found.
func compare(t *testing.T, path string, f found) {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows() != f.Rows || r.RowGroups() != f.Groups || r.Skipped() != 0 {
		t.Errorf("%d rows in %d groups, %d skipped; pyarrow has %d in %d", r.Rows(), r.RowGroups(), r.Skipped(), f.Rows, f.Groups)
	}
	for _, l := range layout {
		want, ok := f.Columns[l.name]
		if !ok {
			want = make([]string, f.Rows)
			for i := range want {
				want[i] = "null"
			}
		}
		if l.bit&(observe.ColLayer|observe.ColSeqID) == 0 {
			want = wrapText(want)
		}
		if !equalColumns(want, got[l.name]) {
			t.Errorf("%s differs: %.2000s", l.name, cmp.Diff(want, got[l.name]))
		}
	}
}

func equalColumns(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestPyarrowReadsOurs(t *testing.T) {
	exe := python(t)
	dir := t.TempDir()
	var paths []string
	for _, compression := range []string{"zstd", "snappy", "gzip", "none"} {
		path := filepath.Join(dir, compression+".parquet")
		writeMixed(t, path, Options{Compression: compression, RowGroupRows: groupRows}, 25_001)
		paths = append(paths, path)
	}
	empty := filepath.Join(dir, "empty.parquet")
	w, err := Create(empty, Options{})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, empty)
	var schema struct{ Types [][2]string }
	readJSON(t, "testdata/mrm/schema.json", &schema)
	ours := [][2]string{{"object", "uint32"}, {"generation", "uint32"}, {"offset", "uint64"}, {"size", "uint64"},
		{"count", "uint32"}, {"stride", "uint64"}, {"pid", "uint32"}, {"ip", "uint64"}, {"weight", "uint64"},
		{"collector", "string"}, {"time_quality", "string"}, {"step", "uint32"}, {"layer", "int32"}, {"op", "string"},
		{"kv_block", "uint32"}, {"seq_id", "int32"}, {"request_id", "string"}, {"space", "string"}}
	for name, f := range dump(t, exe, paths...) {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(append(schema.Types[:len(schema.Types):len(schema.Types)], ours...), f.Fields); d != "" {
				t.Error(d)
			}
			if !f.Nullable || f.Version != "1.0" {
				t.Errorf("nullable %v, version %q", f.Nullable, f.Version)
			}
			compare(t, f.Path, f)
			if name != "empty.parquet" {
				checkStats(t, f)
			}
		})
	}
}

// groupRows makes two row groups, the first of two pages.
const groupRows = 70_000

// checkStats holds the bounds of the first row group against its values.
func checkStats(t *testing.T, f found) {
	t.Helper()
	for _, name := range []string{"timestamp_ns", "address", "sample_id", "region_id"} {
		var lo, hi uint64 = 1<<64 - 1, 0
		for _, s := range f.Columns[name][:groupRows] {
			if s == "null" {
				continue
			}
			v, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			lo, hi = min(lo, v), max(hi, v)
		}
		want := [2]any{strconv.FormatUint(lo, 10), strconv.FormatUint(hi, 10)}
		if got := f.Stats[name]; got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: bounds %v, values %v", name, got, want)
		}
	}
}

func TestReadsWhatPyarrowWrites(t *testing.T) {
	exe := python(t)
	dir := t.TempDir()
	if out, err := exec.Command(exe, "testdata/pyarrow/foreign.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil || len(paths) < 15 {
		t.Fatalf("%d files: %v", len(paths), err)
	}
	for name, f := range dump(t, exe, paths...) {
		t.Run(name, func(t *testing.T) { compare(t, f.Path, f) })
	}
	t.Run("out of range", func(t *testing.T) {
		r, err := Open(filepath.Join(dir, "odd", "out_of_range.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := readAll(r)
		if err != nil {
			t.Fatal(err)
		}
		want := rows{"access_latency_ns": {"null", "4294967295", "null"}, "cpu_id": {"65535", "null", "null"},
			"numa_node": {"null", "null", "255"}, "thread_id": {"7", "null", "9"}}
		for name, col := range want {
			if d := cmp.Diff(col, got[name]); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
		if r.Skipped() != 6 { // two latencies, two CPUs, one node, one thread; a NaN is no number
			t.Errorf("%d skipped", r.Skipped())
		}
	})
	for name, text := range map[string]string{
		"fraction": "column cpu_id, row group 0: holds 1.5, not a whole number",
		"words":    "column address, row group 0: is STRING, not an integer",
		"number":   "column op_type, row group 0: is INT64, not a string",
	} {
		r, err := Open(filepath.Join(dir, "odd", name+".parquet"))
		if err == nil {
			_, err = readAll(r)
			r.Close()
		}
		if run.ClassOf(err) != run.Corrupt || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadsTheOriginalsFixtures(t *testing.T) {
	exe := python(t)
	paths := fixtureTraces(t)
	for name, f := range dump(t, exe, paths...) {
		t.Run(name, func(t *testing.T) { compare(t, f.Path, f) })
	}
}

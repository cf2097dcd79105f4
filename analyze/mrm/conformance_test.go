package mrm_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// original runs mrm-trace's analysers on traces; scripts/venv-mrm.sh installs it.
// TIERSCOPE_CONFORMANCE=1 makes it a failure that it cannot be had.
func original(t testing.TB, paths ...string) (tables []document, seconds []float64) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs mrm-trace from PyPI: not with -short")
	}
	python, err := exec.Command("../../scripts/venv-mrm.sh").Output()
	if err != nil {
		why := err.Error()
		if exit, ok := err.(*exec.ExitError); ok {
			why = string(exit.Stderr)
		}
		if os.Getenv("TIERSCOPE_CONFORMANCE") != "" {
			t.Fatalf("mrm-trace cannot be installed: %s", why)
		}
		t.Skipf("mrm-trace cannot be installed, probably offline: %.300s", why)
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(strings.TrimSpace(string(python)), append([]string{"testdata/original.py"}, paths...)...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("mrm-trace on our files: %v\n%s", err, stderr.Bytes())
	}
	lines := bufio.NewReader(&stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var out struct {
			Seconds float64
			Tables  json.RawMessage
		}
		if err := json.Unmarshal(line, &out); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, decode(t, out.Tables))
		seconds = append(seconds, out.Seconds)
	}
	if len(tables) != len(paths) {
		t.Fatalf("mrm-trace analysed %d traces of %d", len(tables), len(paths))
	}
	return tables, seconds
}

// writeTrace writes rows as a trace file of ours.
func writeTrace(t testing.TB, path string, o trace.Options, in []*observe.Batch) {
	t.Helper()
	w, err := trace.Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range in {
		if err := w.Accesses(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestConformance writes random traces, lets mrm-trace itself read and analyse them,
// and compares its tables with ours.
func TestConformance(t *testing.T) {
	shapes := map[string]shape{
		"ordered":        {ordered: true, regions: 30, addresses: 300},
		"unordered":      {regions: 30, addresses: 300},
		"conflicts":      {ordered: true, conflicts: true, regions: 12, addresses: 100},
		"blanks":         {blanks: true, conflicts: true, regions: 12, addresses: 100},
		"odd pages":      {oddPages: true, regions: 5, addresses: 200},
		"high addresses": {highAddresses: true, regions: 6, addresses: 60},
		"many regions":   {ordered: true, regions: 700, addresses: 900},
		"few rows":       {regions: 40, addresses: 60},
	}
	dir := t.TempDir()
	var names, paths []string
	for name, s := range shapes {
		n := 4000
		if name == "few rows" {
			n = 60
		}
		path := filepath.Join(dir, name+".parquet")
		writeTrace(t, path, trace.Options{RowGroupRows: 3000}, []*observe.Batch{batchOf(randomRows(s, uint64(len(name)), n), observe.NewDict(), observe.NewDict())})
		names, paths = append(names, name), append(paths, path)
	}
	want, _ := original(t, paths...)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			got := analyzeFile(t, paths[i], mrm.Options{})
			if len(want[i].tables) != 10 {
				t.Fatalf("mrm-trace gave %d tables", len(want[i].tables))
			}
			sameAsReference(t, got, want[i])
		})
	}
}

// BenchmarkAgainstOriginal is the time of mrm-trace's compute_all on 100,000 rows,
// which it has in memory already, against ours from the file to JSON.
func BenchmarkAgainstOriginal(b *testing.B) {
	const rows = 100_000
	path := filepath.Join(b.TempDir(), "trace.parquet")
	writeTrace(b, path, trace.Options{}, points(rows, 40_000))
	_, theirs := original(b, path)
	b.ResetTimer()
	begun := time.Now()
	for range b.N {
		tablesOfFile(b, path, mrm.Options{})
	}
	ours := time.Since(begun).Seconds() / float64(b.N)
	b.ReportMetric(rows/theirs[0]/1e3, "original-krows/s")
	b.ReportMetric(rows/ours/1e3, "krows/s")
	b.ReportMetric(theirs[0]/ours, "times-faster")
}

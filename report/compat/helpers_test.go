package compat

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// exported runs an export into a new place below results.
func exported(t *testing.T, o Options) *Result {
	t.Helper()
	if o.Output == "" {
		o.Output = filepath.Join(t.TempDir(), "results", "run_fx")
	}
	res, err := Export(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Verify(res.RunDir); err != nil {
		t.Error(err)
	}
	return res
}

// parquetRows returns every cell of a Parquet file as text, read by another
// reader than the one under test.
func parquetRows(t *testing.T, path string) (fields, rows []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Schema().Fields() {
		typ := strings.Replace(c.Type().String(), "INT(64,true)", "INT64", 1) // the same, said twice
		fields = append(fields, c.Name()+" "+typ+" optional "+strconv.FormatBool(c.Optional()))
	}
	for _, g := range f.RowGroups() {
		r := g.Rows()
		buf := make([]parquet.Row, 64)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				var cells []string
				for _, v := range row {
					cells = append(cells, v.String())
				}
				rows = append(rows, strings.Join(cells, "|"))
			}
			if err != nil {
				break
			}
		}
		r.Close()
	}
	return fields, rows
}

func sameParquet(t *testing.T, want, got string) {
	t.Helper()
	wf, wr := parquetRows(t, want)
	gf, gr := parquetRows(t, got)
	if d := cmp.Diff(wf, gf); d != "" {
		t.Errorf("%s: %s", filepath.Base(want), d)
	}
	if d := cmp.Diff(wr, gr); d != "" {
		t.Errorf("%s: %s", filepath.Base(want), d)
	}
}

// sameCSV compares two tables, numbers as numbers; columns named in but are
// left out.
func sameCSV(t *testing.T, want, got string, but ...string) {
	t.Helper()
	read := func(text string) [][]string {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	w, g := read(want), read(got)
	if len(w) != len(g) {
		t.Fatalf("%d rows, want %d", len(g), len(w))
	}
	for i := range w {
		if len(w[i]) != len(g[i]) {
			t.Fatalf("row %d has %d cells, want %d", i, len(g[i]), len(w[i]))
		}
		for k := range w[i] {
			if strings.Contains(" "+strings.Join(but, " ")+" ", " "+w[0][k]+" ") {
				continue
			}
			a, err := strconv.ParseFloat(w[i][k], 64)
			b, err2 := strconv.ParseFloat(g[i][k], 64)
			if err == nil && err2 == nil && math.Abs(a-b) <= 1e-12*math.Abs(a) {
				continue
			}
			if w[i][k] != g[i][k] {
				t.Errorf("row %d, %s: %q, want %q", i, w[0][k], g[i][k], w[i][k])
			}
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ours writes a trace with our own columns.
func ours(t *testing.T, rows int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.parquet")
	w, err := trace.Create(path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := observe.NewDict("weight_load", "prefill", "decode", "host", "cuda0")
	phase, space := make([]uint32, rows), make([]uint32, rows)
	for i := range rows {
		phase[i], space[i] = uint32(i%3), 3+uint32(i%5/4)
	}
	b := &observe.Batch{Len: rows, RunID: observe.ConstString(d, "own"), SampleID: observe.RunOf[uint64](0, 1), Time: observe.RunOf[uint64](1e9, 7),
		Phase: observe.Strings{Column: observe.SliceOf(phase), Dict: d}, Address: observe.RunOf[uint64](1<<20, 64), OpType: observe.ConstString(d, "store"),
		Symbol: observe.ConstString(d, ""), DSO: observe.ConstString(d, ""), RegionType: observe.ConstString(d, "kv_cache"), RegionID: observe.ConstOf[uint32](2),
		Size: observe.ConstOf[uint64](4096), Space: observe.Strings{Column: observe.SliceOf(space), Dict: d}}
	if err := w.Accesses(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tables "github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

const (
	full      = "testdata/box-1/tiny-q4/run_fx"
	loadsOnly = "testdata/box-2/loads-only/run_lo"
	raw       = "testdata/raw.parquet"
)

// The raw trace of the original and its run become what it made of them.
func TestExportAsTheOriginal(t *testing.T) {
	for name, o := range map[string]Options{"raw": {Input: raw, RunID: "run_fx"}, "run": {Input: full}} {
		t.Run(name, func(t *testing.T) {
			res := exported(t, o)
			for _, file := range []string{"trace.parquet", "region_map.parquet", "kv_block_lifecycle.parquet"} {
				sameParquet(t, filepath.Join(full, file), filepath.Join(res.RunDir, file))
			}
			sameCSV(t, text(t, full+"/metrics.csv"), text(t, res.RunDir+"/metrics.csv"))
			if res.Rows != 400 || res.Regions != 51 || res.KVBlocks != 3 || res.RunID != "run_fx" {
				t.Errorf("%+v", res)
			}
			if name == "raw" {
				return
			}
			for _, file := range []string{"metadata.json", "prompt_outputs.json"} {
				if text(t, full+"/"+file) != text(t, res.RunDir+"/"+file) {
					t.Errorf("%s differs", file)
				}
			}
		})
	}
}

// Both runs of the original's data set give its manifest.csv, the second
// without regions, blocks or metadata.
func TestIndexOfTheOriginal(t *testing.T) {
	root := t.TempDir()
	index := filepath.Join(root, "manifest.csv")
	exported(t, Options{Input: full, Output: root + "/box-1/tiny-q4/run_fx", Index: index})
	res := exported(t, Options{Input: loadsOnly, Output: root + "/box-2/loads-only/run_lo", Index: index})
	sameCSV(t, text(t, "testdata/manifest.csv"), text(t, index), "recorded_at")
	sameParquet(t, loadsOnly+"/trace.parquet", res.RunDir+"/trace.parquet")
	sameCSV(t, text(t, loadsOnly+"/metrics.csv"), text(t, res.RunDir+"/metrics.csv"))
	if got := text(t, res.RunDir+"/metadata.json"); got != "{}" {
		t.Errorf("metadata %s", got)
	}
	for _, file := range []string{"region_map.parquet", "kv_block_lifecycle.parquet"} {
		fields, rows := parquetRows(t, filepath.Join(res.RunDir, file))
		want, _ := parquetRows(t, filepath.Join(full, file))
		if len(rows) != 0 || !cmp.Equal(fields, want) {
			t.Errorf("%s: %d rows, fields %v", file, len(rows), fields)
		}
	}
	// A run that is exported again has one row still.
	exported(t, Options{Input: full, Output: root + "/again", Index: index})
	if n := strings.Count(text(t, index), "\n"); n != 3 {
		t.Errorf("%d lines after exporting a run again, want 3", n)
	}
}

func TestManifestOfAnExport(t *testing.T) {
	res := exported(t, Options{Input: full})
	var m struct {
		Version string `json:"manifest_schema_version"`
		RunID   string `json:"run_id"`
		Files   []struct {
			Path   string  `json:"path"`
			Schema *string `json:"schema_version"`
		} `json:"files"`
	}
	if err := json.Unmarshal([]byte(text(t, res.RunDir+"/manifest.json")), &m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range m.Files {
		if f.Schema != nil {
			f.Path += " " + *f.Schema
		}
		got = append(got, f.Path)
	}
	want := []string{"kv_block_lifecycle.parquet 1.0", "metadata.json 1.0", "metrics.csv 1.0", "prompt_outputs.json", "region_map.parquet 1.0",
		"retention_histogram.png", "trace.parquet 1.0", "working_set.png", "write_once.png"}
	if d := cmp.Diff(want, got); d != "" || m.Version != "1.0" || m.RunID != "run_fx" {
		t.Errorf("%s %s %s", d, m.Version, m.RunID)
	}
	if d := cmp.Diff([]string{"trace.parquet", "region_map.parquet", "kv_block_lifecycle.parquet", "metrics.csv", "metadata.json", "prompt_outputs.json",
		"retention_histogram.png", "working_set.png", "write_once.png", "manifest.json"}, res.Files); d != "" {
		t.Error(d)
	}
}

func TestFigures(t *testing.T) {
	res := exported(t, Options{Input: full})
	for file, size := range map[string][2]int{"retention_histogram.png": {1200, 600}, "working_set.png": {900, 600}, "write_once.png": {900, 600}} {
		img, err := png.Decode(strings.NewReader(text(t, filepath.Join(res.RunDir, file))))
		if err != nil {
			t.Fatal(err)
		}
		b := img.Bounds()
		if b.Dx() != size[0] || b.Dy() != size[1] {
			t.Errorf("%s is %dx%d, want %v", file, b.Dx(), b.Dy(), size)
		}
		coloured := 0
		for y := range b.Dy() {
			for x := range b.Dx() {
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				if max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 40 {
					coloured++
				}
			}
		}
		if coloured < b.Dx()*b.Dy()/100 {
			t.Errorf("%s shows next to nothing: %d coloured points", file, coloured)
		}
	}
	res = exported(t, Options{Input: loadsOnly})
	if _, err := os.Stat(res.RunDir + "/write_once.png"); err == nil {
		t.Error("a figure without stores was drawn")
	}
	if notes := noteCodes(res.Notes); notes != "no_region_map not_drawn" {
		t.Errorf("notes %s", notes)
	}
}

func noteCodes(notes []run.Note) string {
	var out []string
	for _, n := range notes {
		out = append(out, n.Code)
	}
	return strings.Join(out, " ")
}

// Our own rows lose what the format cannot hold, and the result says so.
func TestExportOfOurs(t *testing.T) {
	res := exported(t, Options{Input: ours(t, 30)})
	if res.Rows != 24 || res.Skipped != 6 || noteCodes(res.Notes) != "other_spaces points no_region_map" {
		t.Errorf("%d rows, %d left out, notes %s", res.Rows, res.Skipped, noteCodes(res.Notes))
	}
	fields, rows := parquetRows(t, res.RunDir+"/trace.parquet")
	want, _ := parquetRows(t, full+"/trace.parquet")
	if d := cmp.Diff(want, fields); d != "" {
		t.Error(d)
	}
	if n := strings.Count(strings.Join(rows, "\n"), "|generation|"); n != 16 {
		t.Errorf("%d rows of the phase generation, want 16", n)
	}
}

func TestExportOfNothing(t *testing.T) {
	res := exported(t, Options{Input: ours(t, 0)})
	if lines := strings.Count(text(t, res.RunDir+"/metrics.csv"), "\n"); lines != 1 || res.Rows != 0 {
		t.Errorf("%d lines, %d rows", lines, res.Rows)
	}
	if got := text(t, res.RunDir+"/metadata.json"); !strings.Contains(got, `"run_id": "run_fx"`) {
		t.Errorf("metadata %s", got)
	}
}

// The original could not write a first eviction behind 100,000 blocks, nor
// addresses from 2^63 on.
func TestManyBlocksAtBigAddresses(t *testing.T) {
	const pages = 110_000
	path := filepath.Join(t.TempDir(), "raw.parquet")
	w, err := trace.Create(path, trace.Options{Columns: observe.ColsCompat})
	if err != nil {
		t.Fatal(err)
	}
	d := observe.NewDict()
	b := &observe.Batch{Len: pages, RunID: observe.ConstString(d, "big"), Time: observe.RunOf[uint64](5, 1), Address: observe.RunOf[uint64](1<<63, 4096),
		OpType: observe.ConstString(d, "store"), Symbol: observe.ConstString(d, "kv_write"), RegionType: observe.ConstString(d, "unknown")}
	again := *b
	again.Len, again.Address, again.Time = 1, observe.ConstOf[uint64](1<<63+4096*(pages-1)), observe.ConstOf[uint64](1<<40)
	for _, b := range []*observe.Batch{b, &again} {
		if err := w.Accesses(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	res := exported(t, Options{Input: path})
	var last trace.KVBlockRow
	n := 0
	err = trace.ReadKVBlocks(res.RunDir+"/kv_block_lifecycle.parquet", func(r *trace.KVBlockRow) error { last, n = *r, n+1; return nil })
	if err != nil || n != pages || res.Regions != pages {
		t.Fatalf("%d blocks, %d regions, %v", n, res.Regions, err)
	}
	if !last.Evicted || last.EvictNS != 1<<40 || last.Address != again.Address.First || last.LifetimeNS != 1<<40-(5+pages-1) {
		t.Errorf("last block %+v", last)
	}
}

// Ranges say more than symbols do.
func TestExportWithRanges(t *testing.T) {
	ranges := []region.Range{{Start: 0, End: 1 << 63, Type: region.TypeOf("weight")}}
	res := exported(t, Options{Input: raw, Ranges: ranges})
	if res.Regions != 1 {
		t.Errorf("%d regions, want weight alone", res.Regions)
	}
	_, err := Export(context.Background(), Options{Input: full, Ranges: ranges, Output: t.TempDir() + "/x"})
	if run.ExitCode(err) != 2 {
		t.Errorf("ranges for a labelled trace: %v", err)
	}
}

func TestExportRefuses(t *testing.T) {
	taken := t.TempDir()
	if err := os.WriteFile(taken+"/notes.txt", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	badIndex := filepath.Join(t.TempDir(), "manifest.csv")
	if err := os.WriteFile(badIndex, []byte("other,columns\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	live := context.Background()
	for name, c := range map[string]struct {
		ctx  context.Context
		o    Options
		code int
	}{
		"target not empty": {live, Options{Input: raw, Output: taken}, 2},
		"target is a file": {live, Options{Input: raw, Output: taken + "/notes.txt"}, 2},
		"no target":        {live, Options{Input: raw}, 2},
		"no input":         {live, Options{Input: "nowhere", Output: t.TempDir() + "/x"}, 2},
		"no trace":         {live, Options{Input: "export.go", Output: t.TempDir() + "/x"}, 3},
		"no run":           {live, Options{Input: t.TempDir(), Output: t.TempDir() + "/x"}, 1},
		"unknown row":      {live, Options{Input: raw, Policy: region.Fail, Output: t.TempDir() + "/x"}, 1},
		"other index":      {live, Options{Input: raw, Index: badIndex, Output: t.TempDir() + "/x"}, 3},
		"interrupted":      {stopped, Options{Input: raw, Output: t.TempDir() + "/x"}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := os.ReadDir(c.o.Output)
			_, err := Export(c.ctx, c.o)
			if run.ExitCode(err) != c.code {
				t.Errorf("%v (code %d), want code %d", err, run.ExitCode(err), c.code)
			}
			if after, _ := os.ReadDir(c.o.Output); len(after) != len(before) {
				t.Errorf("left behind: %v", after)
			}
		})
	}
}

// What is exported gives the tables that the original worked out for it.
func TestTablesOfAnExport(t *testing.T) {
	var want struct {
		Tables map[string]any `json:"tables"`
	}
	if err := json.Unmarshal([]byte(text(t, "testdata/expected.json")), &want); err != nil {
		t.Fatal(err)
	}
	res := exported(t, Options{Input: raw})
	r, err := trace.Open(res.RunDir + "/trace.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := tables.New(tables.Options{})
	defer s.Close()
	if err := r.Read(s.Columns(), s.Observe); err != nil {
		t.Fatal(err)
	}
	out, err := s.Result()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := out.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "metrics_csv")
	near := cmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*math.Abs(a) })
	if d := cmp.Diff(want.Tables, got, near); d != "" || len(got) != 10 {
		t.Error(d)
	}
}

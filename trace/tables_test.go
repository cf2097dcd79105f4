package trace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/internal/vfs"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

var (
	someObjects = []observe.Object{
		{ID: 1, Name: "blk.0.attn_k.weight", Class: observe.ClassWeight, Space: observe.SpaceHost, Base: 1 << 63, Size: 4096, Born: 5, Died: 9, DType: "q4_K", Buffer: "CPU"},
		{ID: 2, Generation: 3, Name: "cache_k_l0", Class: observe.ClassKVCache, Kind: "k", Space: "cuda0", Base: math.MaxUint64, Size: 1, Layer: 7},
		{ID: math.MaxUint32, Layer: observe.NoLayer},
	}
	someMarks = []observe.Mark{
		{Kind: observe.MarkPhase, Name: observe.PhaseDecode, Start: 1, End: 2, Seq: -1},
		{Kind: observe.MarkToken, Index: 12, Seq: 0, Start: math.MaxUint64, End: math.MaxUint64, Value: 8},
	}
	someRegions = []RegionRow{
		{RegionID: 1, RegionType: "weight", PageMin: 1, PageMax: math.MaxUint64 >> 12, FirstSeenNS: 3, LastSeenNS: 4, AccessCount: 5},
		{RegionID: math.MaxUint32, NoType: true},
	}
	someBlocks = []KVBlockRow{
		{BlockID: 2, Address: math.MaxUint64, AddressPage: math.MaxUint64 >> 12, WriteNS: 1, LastReadNS: 2, TotalReads: 3, LifetimeNS: 1},
		{BlockID: 3, Address: 1 << 63, WriteNS: 1, EvictNS: 0, Evicted: true},
	}
)

func writeTable[T any](t *testing.T, make func(string, Options) (*Table[T], error), path string, rows []T) {
	t.Helper()
	w, err := make(path, Options{RowGroupRows: 50_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(rows...), w.Close()); err != nil {
		t.Fatal(err)
	}
}

func collect[T any](t *testing.T, read func(string, func(*T) error) error, path string) []T {
	t.Helper()
	got := []T{}
	if err := read(path, func(r *T) error { got = append(got, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func there[T any](t *testing.T, make func(string, Options) (*Table[T], error), read func(string, func(*T) error) error, rows []T) {
	t.Helper()
	for i, want := range [][]T{rows, {}, rows[:1], repeat(rows, 60_000)} {
		path := filepath.Join(t.TempDir(), "table.parquet")
		writeTable(t, make, path, want)
		if d := cmp.Diff(want, collect(t, read, path)); d != "" {
			t.Errorf("case %d: %.1000s", i, d)
		}
	}
}

func repeat[T any](rows []T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = rows[i%len(rows)]
	}
	return out
}

func TestTablesComeBack(t *testing.T) {
	there(t, CreateObjects, ReadObjects, someObjects)
	there(t, CreateMarks, ReadMarks, someMarks)
	there(t, CreateRegionMap, ReadRegionMap, someRegions)
	there(t, CreateKVBlocks, ReadKVBlocks, someBlocks)
}

// More blocks than a batch of mrm-trace, the first evicted behind it: there the
// type of evict_ns was settled as null by then.
func TestLateEviction(t *testing.T) {
	blocks := make([]KVBlockRow, 120_000)
	for i := range blocks {
		blocks[i] = KVBlockRow{BlockID: uint32(i), WriteNS: 1, Evicted: i == 110_000, EvictNS: uint64(i / 110_000)}
		if !blocks[i].Evicted {
			blocks[i].EvictNS = 0
		}
	}
	path := filepath.Join(t.TempDir(), "kv.parquet")
	writeTable(t, CreateKVBlocks, path, blocks)
	if d := cmp.Diff(blocks, collect(t, ReadKVBlocks, path)); d != "" {
		t.Errorf("%.500s", d)
	}
}

func TestFixtureTables(t *testing.T) {
	regions := collect(t, ReadRegionMap, "testdata/mrm/region_map.parquet")
	if len(regions) != 51 || regions[0].RegionType != "kv_cache" && regions[0].RegionType != "weight" {
		t.Errorf("%d regions: %+v", len(regions), regions[0])
	}
	var accesses uint64
	for _, r := range regions {
		accesses += r.AccessCount
		if r.PageMin > r.PageMax || r.FirstSeenNS > r.LastSeenNS || r.NoType {
			t.Errorf("%+v", r)
		}
	}
	if accesses != 400-13 { // all rows of the trace but the 13 unknown ones
		t.Errorf("%d accesses", accesses)
	}
	blocks := collect(t, ReadKVBlocks, "testdata/mrm/kv_block_lifecycle.parquet")
	if len(blocks) != 3 {
		t.Errorf("%+v", blocks)
	}
	for _, b := range blocks {
		if b.AddressPage != b.Address>>12 {
			t.Errorf("%+v", b)
		}
	}
	for path, schema := range map[string]string{
		"trace.parquet": SchemaTrace, "region_map.parquet": SchemaRegionMap, "kv_block_lifecycle.parquet": SchemaKVLifecycle,
	} {
		if err := CheckParquet(filepath.Join("testdata/mrm", path), schema); err != nil {
			t.Error(err)
		}
	}
	err := CheckParquet("testdata/mrm/region_map.parquet", SchemaKVLifecycle)
	if run.ClassOf(err) != run.Corrupt || !strings.Contains(err.Error(), "address, address_page, block_id, evict_ns") {
		t.Error(err)
	}
}

func TestPyarrowReadsTables(t *testing.T) {
	exe := python(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeTable(t, CreateObjects, at("objects"), someObjects)
	writeTable(t, CreateMarks, at("marks"), someMarks)
	writeTable(t, CreateRegionMap, at("region_map"), someRegions)
	writeTable(t, CreateRegionMap, at("region_map_empty"), nil)
	writeTable(t, CreateKVBlocks, at("kv"), someBlocks)
	writeTable(t, CreateKVBlocks, at("kv_alive"), someBlocks[:1])
	files := dump(t, exe, at("objects"), at("marks"), at("region_map"), at("region_map_empty"), at("kv"), at("kv_alive"))
	original := dump(t, exe, "testdata/mrm/region_map.parquet", "testdata/mrm/kv_block_lifecycle.parquet")
	for ours, theirs := range map[string]string{
		"region_map": "region_map.parquet", "region_map_empty": "region_map.parquet",
		"kv": "kv_block_lifecycle.parquet", "kv_alive": "kv_block_lifecycle.parquet",
	} {
		if d := cmp.Diff(original[theirs].Fields, files[ours].Fields); d != "" {
			t.Errorf("%s: %s", ours, d)
		}
		if files[ours].Version != "1.0" {
			t.Errorf("%s: version %q", ours, files[ours].Version)
		}
	}
	for _, c := range []struct {
		file, column string
		want         []string
	}{
		{"kv", "evict_ns", []string{"null", "0"}},
		{"kv", "address", []string{"-1", "-9223372036854775808"}},
		{"region_map", "region_type", []string{"=weight", "null"}},
		{"region_map", "region_id", []string{"1", "4294967295"}},
		{"objects", "base", []string{"9223372036854775808", "18446744073709551615", "0"}},
		{"objects", "layer", []string{"0", "7", "null"}},
		{"objects", "died", []string{"9", "null", "null"}},
		{"marks", "seq", []string{"null", "0"}},
		{"marks", "end", []string{"2", "18446744073709551615"}},
	} {
		if d := cmp.Diff(c.want, files[c.file].Columns[c.column]); d != "" {
			t.Errorf("%s %s: %s", c.file, c.column, d)
		}
	}
}

// TestDiskFull makes each operation on the file fail in turn: there is an IO
// error and no file, or all of it.
func TestDiskFull(t *testing.T) {
	failed := 0
	for at := 0; ; at++ {
		armed, n := false, 0
		fsys := &vfs.Faulty{FS: vfs.OS, Fault: func(_ int, op vfs.Op, _ string) (int, error) {
			if !armed || op == vfs.OpRemove {
				return 0, nil
			}
			if n++; n-1 == at {
				return 3, syscall.ENOSPC
			}
			return 0, nil
		}}
		d, err := run.Create(t.TempDir(), "m", "r", run.Files(fsys))
		if err != nil {
			t.Fatal(err)
		}
		armed = true
		err = writeThrough(d)
		armed = false
		_, statErr := os.Stat(d.Path("trace.parquet"))
		d.Close()
		if err == nil {
			if statErr != nil {
				t.Error(statErr)
			}
			break
		}
		failed++
		if run.ClassOf(err) != run.IO {
			t.Errorf("operation %d: class %d: %v", at, run.ClassOf(err), err)
		}
	}
	if failed < 50 { // two row groups of 36 columns
		t.Errorf("only %d operations could fail", failed)
	}
}

func writeThrough(d *run.Dir) error {
	out, err := d.CreateFile("trace.parquet")
	if err != nil {
		return err
	}
	w, err := NewWriter(out, Options{RowGroupRows: 400})
	if err != nil {
		out.Abort()
		return err
	}
	if err := w.Accesses(points(600, 1<<20, 1)); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

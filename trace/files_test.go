package trace

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fixtureTraces(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/mrm/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	var traces []string
	for _, p := range paths {
		if b := filepath.Base(p); b != "region_map.parquet" && b != "kv_block_lifecycle.parquet" {
			traces = append(traces, p)
		}
	}
	if len(traces) < 20 {
		t.Fatalf("only %d traces", len(traces))
	}
	return traces
}

// mixed are batches that make every kind of page: constant, run, dictionary,
// dictionary that overflows, delta, all null, some null.
func mixed(seed uint64, n int) []*observe.Batch {
	var out []*observe.Batch
	for i := range 3 {
		b := points(n, 1<<33, seed+uint64(i))
		b.SampleID.First = uint64(i * n)
		b.Offset = observe.SliceOf(make([]uint64, b.Len))
		b.Size = observe.SliceOf(make([]uint64, b.Len))
		b.Layer = observe.SliceOf(make([]int32, b.Len))
		b.Layer.Nulls = make([]bool, b.Len)
		for j := range b.Len {
			b.Offset.Values[j] = uint64(j*7919%23_000 + i*9000)
			b.Size.Values[j] = uint64(j) * 0x9e3779b97f4a7c15
			b.Layer.Values[j] = int32(j%60 - 2)
			b.Layer.Nulls[j] = j%5 == i
		}
		b.Address.Values[3] = math.MaxUint64
		b.AddressPage.Values[3] = math.MaxUint64 >> 12
		b.IP = observe.RunOf(uint64(math.MaxUint64-100), 1) // wraps
		b.Step = observe.RunOf(uint32(math.MaxUint32-100), 1)
		b.CPU = observe.RunOf[uint16](65_000, 3)
		b.NUMANode = observe.ConstOf[uint8](255)
		b.Stride = observe.RunOf(uint64(1<<40), ^uint64(511)) // falls
		w := scatter(points(n, 1<<28, uint64(i)))
		b.Weight, b.Address.Values[9] = w.Address, 0
		if i == 2 {
			b.Symbol, b.RegionID = observe.Strings{}, observe.Column[uint32]{}
			b.Latency = observe.ConstOf[uint32](math.MaxUint32)
		}
		out = append(out, b)
	}
	return out
}

func writeMixed(t *testing.T, path string, opts Options, n int) rows {
	t.Helper()
	w, err := Create(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	want := rows{}
	for _, b := range mixed(1, n) {
		if err := w.Accesses(b); err != nil {
			t.Fatal(err)
		}
		want.batch(b)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

func TestLongTraceComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.parquet")
	want := writeMixed(t, path, Options{RowGroupRows: 150_000}, 70_001)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.RowGroups() != 2 || r.GroupRows(0) != 150_000 || r.Version() != "1.0" || r.Has() != observe.ColsAll {
		t.Errorf("%d groups, version %q, columns %x", r.RowGroups(), r.Version(), r.Has())
	}
	got, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	for name, col := range want {
		if !equalColumns(col, got[name]) {
			t.Errorf("%s differs", name)
		}
	}
	used := map[format.Encoding]bool{}
	for _, c := range r.file.meta.RowGroups[0].Columns {
		for _, e := range c.MetaData.Encoding {
			used[e] = true
		}
	}
	for _, e := range []format.Encoding{format.RLEDictionary, format.DeltaBinaryPacked, format.ByteStreamSplit} {
		if !used[e] {
			t.Errorf("no page is %v", e)
		}
	}
	// Row groups apart, in any order, by forks.
	parts := make([]rows, r.RowGroups())
	done := make(chan error)
	for i := range parts {
		parts[i] = rows{}
		f := r.Fork()
		go func() {
			done <- f.ReadGroup(i, observe.ColsAll, func(b *observe.Batch) error { parts[i].batch(b); return nil })
		}()
	}
	for range parts {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for name, col := range want {
		if !equalColumns(col, append(parts[0][name], parts[1][name]...)) {
			t.Errorf("%s differs when read by group", name)
		}
	}
}

func TestReaderKeepsForms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.parquet")
	writePoints(t, path, Options{}, 4, 1<<30)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cols := observe.ColAddress | observe.ColThreadID | observe.ColRunID | observe.ColLayer
	err = r.Read(cols, func(b *observe.Batch) error {
		got := []observe.Form{b.Address.Form, b.ThreadID.Form, b.RunID.Form, b.Layer.Form, b.Time.Form, b.OpType.Form}
		want := []observe.Form{observe.Slice, observe.Const, observe.Const, observe.Absent, observe.Absent, observe.Absent}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPagesAreDerived(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.parquet")
	w, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Accesses(&observe.Batch{Len: 3, Address: observe.RunOf[uint64](1<<63+4095, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"2251799813685248", "2251799813685249", "2251799813685249"}, got["address_page"]); d != "" {
		t.Error(d)
	}
}

func TestVersionsAsTheOriginalJudges(t *testing.T) {
	var f struct {
		Assert   [][3]string `json:"assert_compatible"`
		Required [][]any     `json:"required_columns"`
	}
	readJSON(t, "testdata/mrm/schema.json", &f)
	if len(f.Assert) < 70 || len(f.Required) < 5 {
		t.Fatal("fixture is short")
	}
	for _, c := range f.Assert {
		got := "ok"
		switch run.ClassOf(CheckVersion(c[0], c[1])) {
		case run.Corrupt:
			got = "SchemaVersionError"
		case run.Invalid:
			got = "ValueError"
		}
		if got != c[2] {
			t.Errorf("%s %q: %s, the original says %s", c[0], c[1], got, c[2])
		}
	}
	for _, c := range f.Required {
		var want []string
		for _, v := range c[1].([]any) {
			want = append(want, v.(string))
		}
		if d := cmp.Diff(want, append([]string(nil), RequiredColumns(c[0].(string))...)); d != "" {
			t.Errorf("%v: %s", c[0], d)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile("testdata/mrm/trace.parquet")
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good.parquet")
	writePoints(t, good, Options{}, 1, 1<<20)
	ours, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), ours...)
	flipped[5000] ^= 1
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "too few"},
		{"text", []byte("run_id,sample_id,timestamp_ns\n"), "no Parquet file"},
		{"cut", whole[:len(whole)-100], "no footer"},
		{"half", ours[:len(ours)/2], "no footer"},
		{"footer", append(append([]byte(nil), whole[:len(whole)-8]...), "\xff\xff\xff\x0fPAR1"...), "footer"},
		{"version", []byte(strings.Replace(string(ours), "trace 1.0", "trace 2.0", 1)), "schema version 2.0"},
		{"bit", flipped, "checksum"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err == nil {
			_, err = readAll(r)
			r.Close()
		}
		if run.ClassOf(err) != run.Corrupt || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", c.name, err)
		}
	}
	_, err = Open("testdata/mrm/region_map.parquet")
	want := "address, address_page, dso, op_type, phase, run_id, sample_id, symbol, timestamp_ns"
	if run.ClassOf(err) != run.Corrupt || !strings.Contains(err.Error(), want) {
		t.Errorf("missing columns: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "nowhere")); run.ClassOf(err) != run.IO {
		t.Errorf("no file: %v", err)
	}
	if _, err := Create(good, Options{}); run.ClassOf(err) != run.Misuse {
		t.Errorf("existing file: %v", err)
	}
	if _, err := Create(filepath.Join(dir, "x"), Options{Compression: "zip"}); run.ClassOf(err) != run.Misuse {
		t.Errorf("unknown compression: %v", err)
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.parquet")
	w, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Accesses(points(1000, 1<<20, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file has its name before it is whole")
	}
	w.Abort()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

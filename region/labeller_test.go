package region

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/observe"
)

// pageTable is the plain form of a spanTable: one entry a page, first wins.
type pageTable map[uint64]Type

func (p pageTable) register(ranges []Range) (n uint64) {
	for _, r := range ranges {
		first, last := r.pages()
		for no := first; no <= last; no++ {
			if _, ok := p[no]; !ok {
				p[no], n = r.Type, n+1
			}
		}
	}
	return n
}

// naive labels one row at a time from the definition, with maps.
type naive struct {
	pages   pageTable
	kv, ids map[uint64]uint32
	next    uint32
}

func (l *naive) label(page, address uint64, typ Type) (Type, uint32) {
	if typ == TypeOf(observe.ClassUnknown) {
		if p, ok := l.pages[page]; ok && !p.Null {
			typ = p
		}
	}
	if typ == TypeOf(observe.ClassUnknown) {
		return typ, 0
	}
	deal := func(m map[uint64]uint32, k uint64) uint32 {
		if m[k] == 0 {
			m[k], l.next = l.next, l.next+1
		}
		return m[k]
	}
	var id uint32
	switch typ {
	case TypeOf(observe.ClassWeight):
		id = 1
	case TypeOf(observe.ClassKVCache):
		id = deal(l.kv, address)
	default:
		id = deal(l.ids, page)
	}
	if _, ok := l.pages[page]; !ok {
		l.pages[page] = typ
	}
	return typ, id
}

// Registering and labelling in any order give what a table of pages gives.
func TestSpansAreAsGoodAsPages(t *testing.T) {
	types := []Type{TypeOf("weight"), TypeOf("kv_cache"), TypeOf("activation"), TypeOf("own"), TypeOf("unknown"), {Null: true}}
	rapid.Check(t, func(t *rapid.T) {
		l := NewLabeller(Keep, nil)
		m := &naive{pageTable{}, map[uint64]uint32{}, map[uint64]uint32{}, 2}
		d := observe.NewDict("unknown")
		address := rapid.Uint64Range(0, 40<<pageShift)
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			if rapid.Bool().Draw(t, "register") {
				ranges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Range {
					return Range{address.Draw(t, "start"), address.Draw(t, "end"), rapid.SampledFrom(types).Draw(t, "type")}
				}), 0, 8).Draw(t, "ranges")
				if got, want := l.Register(ranges), m.pages.register(ranges); got != want {
					t.Fatalf("%d pages registered, want %d", got, want)
				}
				continue
			}
			n := rapid.IntRange(0, 12).Draw(t, "rows")
			b := &observe.Batch{Len: n, Address: observe.SliceOf(make([]uint64, n)),
				RegionType: observe.Strings{Column: observe.SliceOf(make([]uint32, n)), Dict: d}}
			b.RegionType.Nulls = make([]bool, n)
			want := make([]string, n)
			for i := range n {
				a, typ := address.Draw(t, "address"), TypeOf("unknown")
				if rapid.IntRange(0, 2).Draw(t, "labelled") == 0 {
					typ = rapid.SampledFrom(types).Draw(t, "type")
				}
				b.Address.Values[i], b.RegionType.Values[i], b.RegionType.Nulls[i] = a, d.Code(typ.Name), typ.Null
				typ, id := m.label(a>>pageShift, a, typ)
				want[i] = fmt.Sprint(typ, id)
			}
			out, err := l.Label(b)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, out.Len)
			for i := range got {
				got[i] = fmt.Sprint(Type{out.RegionType.Text(i), out.RegionType.Null(i)}, out.RegionID.At(i))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		}
	})
}

func TestHugeRangesCostOneSpan(t *testing.T) {
	l := NewLabeller(Keep, nil)
	got := l.Register([]Range{{0, 1 << 63, TypeOf("weight")}, {1 << 40, ^uint64(0), TypeOf("kv_cache")}})
	if got != 1<<52 {
		t.Errorf("%d pages, want 2^52", got)
	}
	if n := len(l.table.spans); n != 2 {
		t.Errorf("%d spans, want 2", n)
	}
}

func batchOf(d *observe.Dict, addresses ...uint64) *observe.Batch {
	return &observe.Batch{Len: len(addresses), SampleID: observe.RunOf[uint64](100, 1), Address: observe.SliceOf(addresses),
		Symbol: observe.ConstString(d, "nobody knows"), OpType: observe.ConstString(d, observe.Store)}
}

func TestPolicies(t *testing.T) {
	d := observe.NewDict()
	ranges := []Range{{0x1000, 0x2000, TypeOf("kv_cache")}}
	for _, c := range []struct {
		policy Policy
		want   string
	}{
		{Keep, "[100 unknown 0] [101 kv_cache 2] [102 unknown 0] 3 0 2"},
		{Skip, "[101 kv_cache 2] 3 2 0"},
		{Runtime, "[100 runtime 2] [101 kv_cache 3] [102 runtime 2] 3 0 0"},
	} {
		l := NewLabeller(c.policy, nil)
		l.Register(ranges)
		out, err := l.Label(batchOf(d, 0x5008, 0x1010, 0x5010))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i := range out.Len {
			got += fmt.Sprintf("[%d %s %d] ", out.SampleID.At(i), out.RegionType.Text(i), out.RegionID.At(i))
		}
		given, skipped, unknown := l.Rows()
		if got += fmt.Sprint(given, skipped, unknown); got != c.want {
			t.Errorf("policy %d: %s, want %s", c.policy, got, c.want)
		}
	}
}

// A guess under Runtime must not hide what a rule knows of the page later.
func TestRuntimeGuessDoesNotSpread(t *testing.T) {
	d := observe.NewDict()
	l := NewLabeller(Runtime, nil)
	if _, err := l.Label(batchOf(d, 0x5000)); err != nil {
		t.Fatal(err)
	}
	b := batchOf(d, 0x5000)
	b.Symbol = observe.ConstString(d, "llama_kv_cache")
	out, err := l.Label(b)
	if err != nil || out.RegionType.Text(0) != observe.ClassKVCache {
		t.Errorf("%s, %v", out.RegionType.Text(0), err)
	}
}

func TestConfigPolicies(t *testing.T) {
	for word, want := range map[string]Policy{"log_and_skip": Skip, "assign_runtime": Runtime, "assign_unknown": Keep, "fail_run": Fail} {
		if got, err := ParseConfigPolicy(word); err != nil || got != want {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	if _, err := ParseConfigPolicy("keep"); err == nil {
		t.Error("the labeller's own word passes as a configuration word")
	}
}

// New dictionaries must not be read with what was worked out for old ones.
func TestDictionariesMayChange(t *testing.T) {
	l := NewLabeller(Keep, nil)
	want := []string{"kv_cache", "unknown"}
	for i, symbol := range []string{"kv_read", "nothing"} {
		d := observe.NewDict()
		b := batchOf(d, uint64(i)<<20)
		b.Symbol = observe.ConstString(d, symbol)
		out, err := l.Label(b)
		if err != nil || out.RegionType.Text(0) != want[i] {
			t.Errorf("%s: %s, %v", symbol, out.RegionType.Text(0), err)
		}
	}
}

func BenchmarkLabel(b *testing.B) {
	const n = 65536
	d := observe.NewDict("load", "store")
	l := NewLabeller(Keep, nil)
	l.Register([]Range{{0, 8 << 30, TypeOf("weight")}, {8 << 30, 9 << 30, TypeOf("kv_cache")}})
	batch := &observe.Batch{Len: n, Time: observe.RunOf[uint64](0, 1), Symbol: observe.ConstString(d, ""),
		Address: observe.SliceOf(make([]uint64, n)), OpType: observe.Strings{Column: observe.SliceOf(make([]uint32, n)), Dict: d}}
	x := uint64(1)
	for i := range n {
		x = x*6364136223846793005 + 1442695040888963407
		batch.Address.Values[i], batch.OpType.Values[i] = x>>33*9%(9<<30), uint32(x>>20&1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Label(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

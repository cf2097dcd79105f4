package mrm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/observe"
)

// shape is how random rows come out: with times, addresses and pages missing
// (gaps), with regions, types and operations missing (blanks), and so on.
type shape struct {
	ordered, gaps, blanks, oddPages, conflicts, highAddresses bool
	regions, addresses                                        int
}

func drawShape(t *rapid.T) shape {
	return shape{
		ordered: rapid.Bool().Draw(t, "ordered"), gaps: rapid.Bool().Draw(t, "gaps"),
		blanks:   rapid.Bool().Draw(t, "blanks"),
		oddPages: rapid.Bool().Draw(t, "odd pages"), conflicts: rapid.Bool().Draw(t, "conflicts"),
		highAddresses: rapid.Bool().Draw(t, "high addresses"),
		regions:       rapid.IntRange(1, 40).Draw(t, "regions"), addresses: rapid.IntRange(1, 300).Draw(t, "addresses"),
	}
}

// randomRows makes n rows from a seed.
func randomRows(s shape, x uint64, n int) []row {
	next := func(n int) int {
		x += 0x9E3779B97F4A7C15
		h := x
		h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
		h = (h ^ h>>27) * 0x94D049BB133111EB
		return int((h ^ h>>31) % uint64(n))
	}
	types := []string{"weight", "kv_cache", "activation", "it's, \"quoted\"", ""}
	ops := []string{"load", "load", "store", "store", "prefetch"}
	base := uint64(0x7f0000000000)
	if s.highAddresses {
		base = 1<<63 - 4096
	}
	now := uint64(1_700_000_000_000_000_000) >> next(60)
	rows := make([]row, n)
	for i := range rows {
		r := &rows[i]
		at := next(s.addresses)
		time, addr, id := now, base+uint64(at*at)*512, uint32(at%s.regions)
		now += uint64(next(4) * next(1000000))
		if !s.ordered {
			time += uint64(next(10_000_000))
		}
		typ, op := types[int(id)%len(types)], ops[next(len(ops))]
		if s.conflicts {
			typ, id = types[next(len(types))], uint32(next(s.regions))
		}
		page := addr >> 12
		if s.oddPages && next(5) == 0 {
			page = base>>12 + uint64(next(5))
		}
		*r = row{&time, &addr, &page, &id, &typ, &op}
		if s.gaps {
			if next(10) == 0 {
				r.time = nil
			}
			if next(10) == 0 {
				r.addr = nil
			}
			if next(10) == 0 {
				r.page = nil
			}
		}
		if s.blanks {
			if next(10) == 0 {
				r.id = nil
			}
			if next(10) == 0 {
				r.typ = nil
			}
			if next(10) == 0 {
				r.op = nil
			}
		}
	}
	return rows
}

// batches cuts rows into batches, with dictionaries of their own now and then.
func batches(t *rapid.T, rows []row) []*observe.Batch {
	var out []*observe.Batch
	types, ops := observe.NewDict(), observe.NewDict("store")
	for len(rows) > 0 {
		n := min(len(rows), rapid.IntRange(1, 3000).Draw(t, "batch"))
		if rapid.IntRange(0, 4).Draw(t, "new dictionaries") == 0 {
			types, ops = observe.NewDict("kv_cache", "x"), observe.NewDict()
		}
		out = append(out, batchOf(rows[:n], types, ops))
		rows = rows[n:]
	}
	return out
}

func batchOf(rows []row, types, ops *observe.Dict) *observe.Batch {
	b := &observe.Batch{
		Len:        len(rows),
		RegionType: observe.Strings{Dict: types}, OpType: observe.Strings{Dict: ops},
	}
	column(&b.Time, rows, func(r row) *uint64 { return r.time })
	column(&b.Address, rows, func(r row) *uint64 { return r.addr })
	column(&b.AddressPage, rows, func(r row) *uint64 { return r.page })
	column(&b.RegionID, rows, func(r row) *uint32 { return r.id })
	code := func(d *observe.Dict, s *string) *uint32 {
		if s == nil {
			return nil
		}
		c := d.Code(*s)
		return &c
	}
	column(&b.RegionType.Column, rows, func(r row) *uint32 { return code(types, r.typ) })
	column(&b.OpType.Column, rows, func(r row) *uint32 { return code(ops, r.op) })
	return b
}

// column fills a column, in the shortest form that holds it.
func column[T observe.Number](c *observe.Column[T], rows []row, get func(row) *T) {
	if len(rows) == 0 {
		return
	}
	values, nulls := make([]T, len(rows)), make([]bool, len(rows))
	missing, constant := 0, true
	for i, r := range rows {
		if v := get(r); v != nil {
			values[i] = *v
		} else {
			nulls[i] = true
			missing++
		}
		constant = constant && values[i] == values[0]
	}
	switch {
	case missing == len(rows) && len(rows) > 1:
		return
	case constant:
		*c = observe.ConstOf(values[0])
	default:
		*c = observe.SliceOf(values)
	}
	if missing > 0 {
		c.Nulls = nulls
	}
}

func observeAll(t tb, s *mrm.State, in []*observe.Batch) {
	t.Helper()
	for _, b := range in {
		if err := s.Observe(b); err != nil {
			t.Fatal(err)
		}
	}
}

func sameAsReference(t tb, got, want document) {
	t.Helper()
	for n, table := range want.tables {
		if err := differ(got.tables[n], table); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	if err := differCSV(got.csv, want.csv); err != nil {
		t.Error(err)
	}
}

// TestAgainstReference compares random rows of all shapes with the plain
// definitions, with ample memory and with next to none, whole and in parts that
// are joined.
func TestAgainstReference(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawShape(rt)
		rows := randomRows(s, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 9000).Draw(rt, "rows"))
		want := reference(rows)
		in := batches(rt, rows)
		for i := range in {
			if !s.gaps && !s.oddPages && i%2 == 0 {
				in[i].AddressPage = observe.Column[uint64]{}
			}
		}
		memory := rapid.SampledFrom([]int64{0, 1, 1 << 12, 1 << 16}).Draw(rt, "memory")
		options := mrm.Options{Memory: memory, TempDir: dir}

		cuts := rapid.SliceOfN(rapid.IntRange(0, len(in)), 0, 3).Draw(rt, "cuts")
		if len(cuts) == 0 {
			one := mrm.New(options)
			defer one.Close()
			observeAll(rt, one, in)
			sameAsReference(rt, finish(rt, one), want)
		} else {
			sameAsReference(rt, finishParts(rt, options, in, cuts), want)
		}
	})
}

// finishParts gives each part of the batches to a state of its own and joins
// them, neighbours first in random order.
func finishParts(t *rapid.T, o mrm.Options, in []*observe.Batch, cuts []int) document {
	cut := map[int]bool{}
	for _, c := range cuts {
		cut[c] = true
	}
	var parts []*mrm.State
	at := uint64(0)
	for i := 0; i <= len(in); i++ {
		if i == 0 || cut[i] {
			o.FirstRow = at
			parts = append(parts, mrm.New(o))
		}
		if i < len(in) {
			observeAll(t, parts[len(parts)-1], in[i:i+1])
			at += uint64(in[i].Len)
		}
	}
	for len(parts) > 1 {
		i := rapid.IntRange(0, len(parts)-2).Draw(t, "join")
		if err := parts[i].Follow(parts[i+1]); err != nil {
			t.Fatal(err)
		}
		parts[i+1].Close()
		parts = append(parts[:i+1], parts[i+2:]...)
	}
	defer parts[0].Close()
	return finish(t, parts[0])
}

package analyze

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/internal/hist"
	"github.com/tierscope/tierscope/observe"
)

func TestSpansAreBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m spans
		naive := map[uint64]span{}
		for ord := range rapid.IntRange(1, 60).Draw(t, "events") {
			start := rapid.Uint64Range(0, 64).Draw(t, "start")
			x := span{start, start + rapid.Uint64Range(0, 24).Draw(t, "length"), uint64(ord), uint64(ord) * 3}
			m.assign(x)
			for b := x.start; b < x.end; b++ {
				naive[b] = x
			}
			for i := range m.s {
				if m.s[i].start >= m.s[i].end || i > 0 && m.s[i-1].end > m.s[i].start {
					t.Fatalf("not disjoint and in order: %v", m.s)
				}
			}
			from := rapid.Uint64Range(0, 90).Draw(t, "from")
			to := from + rapid.Uint64Range(0, 90).Draw(t, "to")
			seen := map[uint64]bool{}
			m.each(from, to, func(s span) {
				if s.start < from || s.end > to {
					t.Fatalf("[%d, %d) reaches out of [%d, %d)", s.start, s.end, from, to)
				}
				for b := s.start; b < s.end; b++ {
					if want, ok := naive[b]; !ok || want.ord != s.ord || want.at != s.at || seen[b] {
						t.Fatalf("byte %d: %+v, want %+v", b, s, want)
					}
					seen[b] = true
				}
			})
			for b := range naive {
				if (b >= from && b < to) != seen[b] {
					t.Fatalf("byte %d of [%d, %d) is missing", b, from, to)
				}
			}
		}
	})
}

// value is what a byte holds.
type value struct {
	wrote, read uint64
	wasRead     bool
}

// naiveLives follows every byte by itself.
type naiveLives struct {
	held  map[uint32]map[uint64]*value
	class map[uint32]string
	lives map[string]*lives
}

func (n *naiveLives) end(object uint32, v *value, open bool) {
	c := n.lives[n.class[object]]
	if c == nil {
		c = &lives{}
		n.lives[n.class[object]] = c
	}
	c.total++
	if open {
		c.open++
	}
	if v.wasRead {
		c.life.Add(v.read-min(v.wrote, v.read), 1)
	} else {
		c.never++
	}
}

func (n *naiveLives) touch(a *access) {
	if n.class[a.object] = a.class; n.held[a.object] == nil {
		n.held[a.object] = map[uint64]*value{}
	}
	held := n.held[a.object]
	a.bytes(func(b uint64) {
		switch v := held[b]; {
		case a.store:
			if v != nil {
				n.end(a.object, v, false)
			}
			held[b] = &value{wrote: a.time}
		case v != nil && !(a.class == observe.ClassKVCache && a.padding):
			v.read, v.wasRead = a.time, true
		}
	})
}

func (n *naiveLives) free(class string, open bool) {
	for object, held := range n.held {
		if n.class[object] == class {
			for _, v := range held {
				n.end(object, v, open)
			}
			clear(held)
		}
	}
}

// compare holds the state of an analysis against that of the model.
func (n *naiveLives) compare(t *rapid.T, l *Lifetime) {
	tables, err := l.Tables()
	if err != nil || len(tables) != 2 {
		t.Fatal(err)
	}
	for _, c := range classes {
		n.free(c, c != observe.ClassActivation)
	}
	if len(tables[0].Rows) != len(n.lives) {
		t.Fatalf("%d classes, want %d", len(tables[0].Rows), len(n.lives))
	}
	for _, row := range tables[0].Rows {
		c, want := l.classes[row[0].(string)], n.lives[row[0].(string)]
		if want == nil || row[1] != want.total || row[6] != want.never || row[7] != want.open || c.life.Total() != want.life.Total() {
			t.Fatalf("%v, want %d bytes, %d never read, %d open, %d lives", row, want.total, want.never, want.open, want.life.Total())
		}
		if got, want := buckets(&c.life), buckets(&want.life); !maps.Equal(got, want) || c.life.Max() != n.lives[row[0].(string)].life.Max() {
			t.Fatalf("%s: lives %v, want %v", row[0], got, want)
		}
	}
	sum := map[string]uint64{}
	for _, row := range tables[1].Rows {
		sum[row[0].(string)] += row[3].(uint64)
	}
	for c, want := range n.lives {
		if sum[c] != want.total-want.never {
			t.Fatalf("%s: the distribution holds %d bytes, want %d", c, sum[c], want.total-want.never)
		}
	}
}

func buckets(h *hist.Hist) map[uint64]uint64 {
	m := map[uint64]uint64{}
	h.Each(func(lo, _, n uint64) { m[lo] = n })
	return m
}

// TestLifetimeIsByBytes compares with the model that follows every byte, on
// objects that no access goes through by whole columns.
func TestLifetimeIsByBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStream(t)
		l, n := NewLifetime(), &naiveLives{map[uint32]map[uint64]*value{}, map[uint32]string{}, map[string]*lives{}}
		for id := range uint32(5) {
			l.Object(observe.Object{ID: id, Class: classes[id%3], Size: 1009}) // a prime: no group of rows divides it
		}
		free := rapid.IntRange(0, len(list)).Draw(t, "freed behind")
		batches(t, list[:free], l)
		for i := range list[:free] {
			n.touch(&list[i])
		}
		l.Free(observe.ClassKVCache)
		n.free(observe.ClassKVCache, false)
		batches(t, list[free:], l)
		for i := range list[free:] {
			n.touch(&list[free+i])
		}
		if l.Hulls() != 0 {
			t.Fatalf("%d accesses were rounded", l.Hulls())
		}
		n.compare(t, l)
	})
}

// TestLifetimeByColumns does the same on a cache whose rows run across its cells, in one
// or several streams: cells are columns of all rows of a stream.
func TestLifetimeByColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cells, elem := rapid.Uint32Range(2, 5).Draw(t, "rows"), rapid.Uint64Range(2, 9).Draw(t, "cells"), rapid.Uint64Range(1, 4).Draw(t, "element")
		streams := rapid.Uint64Range(1, 3).Draw(t, "streams")
		pitch := cells * elem
		group := pitch * uint64(rows)
		var list []access
		now := uint64(5)
		for i := range rapid.IntRange(1, 50).Draw(t, "accesses") {
			now += rapid.Uint64Range(0, 90).Draw(t, "later")
			a := access{object: 1, class: observe.ClassKVCache, phase: observe.PhaseDecode, store: rapid.Bool().Draw(t, "store"), time: now, step: uint32(i)}
			a.padding = !a.store && rapid.IntRange(0, 4).Draw(t, "padding") == 0
			stream := rapid.Uint64Range(0, streams-1).Draw(t, "stream")
			if i > 0 && rapid.IntRange(0, 5).Draw(t, "whole") == 0 { // a stream, as it lies
				a.off, a.piece, a.count = stream*group, group, 1
			} else {
				first := rapid.Uint64Range(0, cells-1).Draw(t, "cell")
				n := rapid.Uint64Range(1, cells-first).Draw(t, "cells")
				a.off, a.piece, a.count, a.stride = stream*group+first*elem, n*elem, rows, pitch
			}
			list = append(list, a)
		}
		if list[0].padding {
			list[0].padding = false // the first access shows how the object is laid out
		}
		l, n := NewLifetime(), &naiveLives{map[uint32]map[uint64]*value{}, map[uint32]string{}, map[string]*lives{}}
		l.Object(observe.Object{ID: 1, Class: observe.ClassKVCache, Size: streams * group})
		batches(t, list, l)
		for i := range list {
			n.touch(&list[i])
		}
		if l.Hulls() != 0 {
			t.Fatalf("%d accesses were rounded", l.Hulls())
		}
		n.compare(t, l)
	})
}

package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// bytesMoved are sums of operand bytes.
type bytesMoved struct{ read, written, padding uint64 }

// recount is what the Parquet files of a run say, counted in the simplest way:
// row by row, and for lifetimes byte by byte. It shares no code with package
// analyze.
type recount struct {
	steps   map[[2]string]bytesMoved // by step and region type
	phases  map[string]string        // by step
	regions map[string]bytesMoved
	layers  map[[2]string]bytesMoved // by layer ("" outside) and region type
	decode  map[string]bytesMoved    // by region type
	dlayers map[[2]string]bytesMoved
	objects map[uint32]bytesMoved
	known   map[uint32]observe.Object
	decodes map[string]bool   // decode steps
	inUse   map[string]uint64 // bytes of the KV cache written and not given back, after each step
	peak    uint64
	tokens  int
	lives   map[string]*byteLives // nil unless asked for
	clears  []uint64              // times
}

// byteLives are the lifetimes of the bytes of a region type, in ns.
type byteLives struct {
	lives              []uint64
	total, never, open uint64
}

// cell is what happened to one byte.
type cell struct {
	value, seen bool // holds a value; which was read
	wrote, read uint64
}

func countAgain(t *testing.T, dir string, lifetimes bool) *recount {
	t.Helper()
	c := &recount{steps: map[[2]string]bytesMoved{}, phases: map[string]string{}, regions: map[string]bytesMoved{}, layers: map[[2]string]bytesMoved{},
		decode: map[string]bytesMoved{}, dlayers: map[[2]string]bytesMoved{}, objects: map[uint32]bytesMoved{}, known: map[uint32]observe.Object{},
		decodes: map[string]bool{}, inUse: map[string]uint64{}}
	if lifetimes {
		c.lives = map[string]*byteLives{}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(trace.ReadObjects(filepath.Join(dir, "objects.parquet"), func(o *observe.Object) error { c.known[o.ID] = *o; return nil }))
	check(trace.ReadMarks(filepath.Join(dir, "marks.parquet"), func(m *observe.Mark) error {
		switch {
		case m.Kind == observe.MarkToken:
			c.tokens++
		case m.Name == "kv_clear", m.Name == "kv_seq_rm": // of the only sequence, all of it
			c.clears = append(c.clears, m.Start)
		}
		return nil
	}))
	r, err := trace.Open(filepath.Join(dir, "trace.parquet"))
	check(err)
	defer r.Close()
	memory := map[uint32][]cell{}
	used, cleared := uint64(0), 0
	give := func(now uint64) {
		for ; cleared < len(c.clears) && c.clears[cleared] <= now; cleared++ {
			used = 0
			for id, m := range memory {
				if c.known[id].Class == observe.ClassKVCache {
					c.end(observe.ClassKVCache, m, false)
					clear(m)
				}
			}
		}
	}
	check(r.Read(observe.ColsAll, func(b *observe.Batch) error {
		for i := range b.Len {
			give(b.Time.At(i))
			id, class, n := b.Object.At(i), b.RegionType.Text(i), b.Size.At(i)
			step, layer := number(uint64(b.Step.At(i))), ""
			if !b.Layer.Null(i) {
				layer = number(uint64(b.Layer.At(i)))
			}
			var d bytesMoved
			store := b.OpType.Text(i) == "store"
			switch {
			case store:
				d.written = n
			case class == observe.ClassKVCache && b.SeqID.Null(i):
				d.padding = n
			default:
				d.read = n
			}
			c.phases[step] = b.Phase.Text(i)
			add(c.steps, [2]string{step, class}, d)
			add(c.regions, class, d)
			add(c.layers, [2]string{layer, class}, d)
			add(c.objects, id, d)
			if b.Phase.Text(i) == "decode" {
				c.decodes[step] = true
				add(c.decode, class, d)
				add(c.dlayers, [2]string{layer, class}, d)
			}
			if d.padding == 0 && (lifetimes || class == observe.ClassKVCache) {
				if memory[id] == nil {
					memory[id] = make([]cell, c.known[id].Size)
				}
				c.touch(memory[id], class, store, b, i, &used)
			}
			if class == observe.ClassKVCache {
				c.inUse[step] = used
				c.peak = max(c.peak, used)
			}
		}
		return nil
	}))
	give(^uint64(0))
	for id, m := range memory {
		class := c.known[id].Class
		c.end(class, m, class != observe.ClassActivation)
	}
	return c
}

func add[K comparable](m map[K]bytesMoved, k K, d bytesMoved) {
	s := m[k]
	m[k] = bytesMoved{s.read + d.read, s.written + d.written, s.padding + d.padding}
}

// touch follows the bytes that row i touches.
func (c *recount) touch(m []cell, class string, store bool, b *observe.Batch, i int, used *uint64) {
	count := max(1, uint64(b.Count.At(i)))
	piece, at := b.Size.At(i)/count, b.Time.At(i)
	for k := range count {
		from := b.Offset.At(i) + k*b.Stride.At(i)
		for x := from; x < from+piece; x++ {
			if !store {
				m[x].seen, m[x].read = true, at
				continue
			}
			if !m[x].value && class == observe.ClassKVCache {
				*used++
			}
			c.end(class, m[x:x+1], false)
			m[x] = cell{value: true, wrote: at}
		}
	}
}

// end ends the values of bytes.
func (c *recount) end(class string, m []cell, open bool) {
	if c.lives == nil {
		return
	}
	l := c.lives[class]
	if l == nil {
		l = &byteLives{}
		c.lives[class] = l
	}
	for _, x := range m {
		if !x.value {
			continue
		}
		l.total++
		if open {
			l.open++
		}
		if x.seen {
			l.lives = append(l.lives, x.read-min(x.wrote, x.read))
		} else {
			l.never++
		}
	}
}

// quantile reports whether x, in seconds, is a quantile for the share q of the bytes
// but for a relative error of e.
func (l *byteLives) quantile(q, x, e float64) bool {
	below, upto := 0, 0
	for _, ns := range l.lives {
		s := float64(ns) / 1e9
		if s < x-e*x-1e-9 {
			below++
		}
		if s <= x+e*x+1e-9 {
			upto++
		}
	}
	n := q * float64(len(l.lives))
	return float64(below) <= n && n <= float64(upto)
}

// longest returns the longest lifetime in seconds.
func (l *byteLives) longest() float64 { return float64(slices.Max(l.lives)) / 1e9 }

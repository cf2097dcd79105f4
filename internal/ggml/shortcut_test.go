//go:build linux

package ggml

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// counted keeps the evaluations that a recorder emits.
type counted struct{ evals []*Eval }

func (c *counted) Tables([]byte) error   { return nil }
func (c *counted) Buffer([]byte) error   { return nil }
func (c *counted) Template([]byte) error { return nil }
func (c *counted) Eval(b []byte) error {
	e, err := DecodeEval(b)
	c.evals = append(c.evals, e)
	return err
}

// TestShortcut calls the assembly as libllama does, with functions of ours in the place
// of the engine's and of the hook's Go side.
func TestShortcut(t *testing.T) {
	if shortcutEntry() == 0 {
		t.Skip("there is no shortcut for this processor")
	}
	const sched, graph, other = 0x1000, 0x2000, 0x3000
	cells := []int64{7, 8, 9}
	tokens := []int32{42}
	var ran, slow []uintptr
	orig := purego.NewCallback(func(s, g uintptr) uintptr {
		if s != sched {
			t.Errorf("scheduler %#x", s)
		}
		ran = append(ran, g)
		cells[0], tokens[0] = cells[0]+100, -1 // the graph's memory is its own while it runs
		return 11
	})
	toGo := purego.NewCallback(func(s, g uintptr) uintptr {
		slow = append(slow, g)
		return 22
	})
	out := &counted{}
	h := &Hook{fast: newFast(toGo, orig), rec: newRecorder(nil, out), thread: 5}
	if h.fast.route == nil {
		t.Fatal("the shortcut is taken")
	}
	defer routeUsed.Store(false)
	if second := newFast(toGo, orig); second.route != nil {
		t.Error("two hooks have the shortcut")
	}
	call := func(g, want uintptr) {
		t.Helper()
		if r, _, _ := purego.SyscallN(shortcutEntry(), sched, g); r != want {
			t.Errorf("graph %#x: returned %d, want %d", g, r, want)
		}
	}
	index := func(p unsafe.Pointer, n int64, width uint64) values {
		return values{data: ptr(p), ne: [4]int64{n, 1, 1, 1}, nb: [4]uint64{width, 99, 99, 99}, width: width}
	}
	k := &known{id: 3, index: []values{index(unsafe.Pointer(&cells[0]), 3, 8), index(unsafe.Pointer(&tokens[0]), 1, 4), index(unsafe.Pointer(&tokens[0]), 0, 4)}}

	call(graph, 22) // knows nothing yet
	h.fast.arm(graph, k, 2)
	call(graph, 11)
	tokens[0] = 43
	call(other, 22)
	call(graph, 11)
	call(graph, 22) // was to be started twice only
	h.drain()
	h.fast.disarm()
	call(graph, 22)
	if !slices.Equal(ran, []uintptr{graph, graph}) || !slices.Equal(slow, []uintptr{graph, other, graph, graph}) {
		t.Errorf("started %#x, to Go %#x", ran, slow)
	}
	if len(out.evals) != 2 || h.err != nil {
		t.Fatalf("%d evaluations, error %v", len(out.evals), h.err)
	}
	last := uint64(0)
	for i, want := range [][]int64{{7, 8, 9}, {107, 8, 9}} {
		e := out.evals[i]
		if e.Template != 3 || e.Thread != 5 || e.Start <= last || e.End < e.Start || e.End > now() {
			t.Errorf("evaluation %+v after %d", e, last)
		}
		last = e.End
		if len(e.Index) != 3 || !slices.Equal(e.Index[0], want) || !slices.Equal(e.Index[1], []int64{42 + int64(i)}) || len(e.Index[2]) != 0 {
			t.Errorf("index tensors %v, want %v", e.Index, want)
		}
	}

	// A full log sends graphs to Go until it is read.
	h.fast.arm(graph, k, 1<<20)
	ran, slow = nil, nil
	room := shortcutRoom / int(h.fast.route.entry)
	for range room {
		call(graph, 11)
	}
	call(graph, 22)
	h.drain()
	call(graph, 11)
	h.drain()
	if len(out.evals) != 2+room+1 {
		t.Errorf("%d evaluations, want %d", len(out.evals), 2+room+1)
	}
}

func TestPacked(t *testing.T) {
	var mem [64]byte
	binary.LittleEndian.PutUint32(mem[:], 1)
	data := ptr(unsafe.Pointer(&mem[0]))
	for _, c := range []struct {
		v    values
		want int
	}{
		{values{data, [4]int64{3, 1, 1, 1}, [4]uint64{8, 24, 24, 24}, 8}, 24},
		{values{data, [4]int64{2, 3, 1, 1}, [4]uint64{4, 8, 24, 24}, 4}, 24},
		{values{data, [4]int64{2, 3, 1, 1}, [4]uint64{4, 16, 48, 48}, 4}, -1},
		{values{data, [4]int64{2, 1, 1, 1}, [4]uint64{8, 8, 8, 8}, 4}, -1},
		{values{data, [4]int64{0, 1, 1, 1}, [4]uint64{4, 4, 4, 4}, 4}, 0},
		{values{0, [4]int64{1, 1, 1, 1}, [4]uint64{4, 4, 4, 4}, 4}, -1},
		{values{data, [4]int64{1, 1, 1, 1}, [4]uint64{4, 4, 4, 4}, 0}, -1},
	} {
		if got := c.v.packed(); got != c.want {
			t.Errorf("%+v: %d bytes, want %d", c.v, got, c.want)
		}
	}
}

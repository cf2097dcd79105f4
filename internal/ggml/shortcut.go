//go:build linux

package ggml

import (
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// A shortcut starts a graph that is known to be the one started last without
// entering Go: assembly notes the times and the contents of the index tensors in a
// log that is read when the decode has returned. Entering Go in the middle of a
// decode wakes the runtime's monitor thread, which on a machine whose every core
// computes costs up to a few percent.
//
// An entry of the log is three timespecs (entered, started, ended; CLOCK_MONOTONIC)
// and the bytes of the index tensors, one behind the other, padded to 16.
type shortcut struct {
	graph  uintptr // the graph it knows, 0 for none
	left   uintptr // times it may start it before it is looked at again
	slow   uintptr // where every other graph goes
	orig   uintptr // what starts a graph
	clock  uintptr // clock_gettime
	copies uintptr // first of the index tensors
	count  uintptr // of them
	entry  uintptr // bytes of an entry
	at     uintptr // end of the log
	end    uintptr // of its room
}

// piece is an index tensor's memory.
type piece struct{ data, size uintptr }

const (
	entryTimes   = 48
	shortcutRoom = 64 << 10
)

// route is what the assembly reads; a process has one engine thread and one hook that
// uses it.
var (
	route     shortcut
	routeUsed atomic.Bool
)

// fast is the shortcut as a hook uses it.
type fast struct {
	route  *shortcut // nil: none on this processor, or not to be used
	log    []byte
	pieces []piece
	k      *known
}

// newFast takes the shortcut for the hook whose Go side is slow. It may have none.
func newFast(slow, orig uintptr) fast {
	if shortcutEntry() == 0 || !routeUsed.CompareAndSwap(false, true) {
		return fast{}
	}
	clock, err := purego.Dlsym(purego.RTLD_DEFAULT, "clock_gettime")
	if err != nil || clock == 0 {
		return fast{}
	}
	f := fast{route: &route, log: make([]byte, shortcutRoom)}
	base := uintptr(unsafe.Pointer(&f.log[0]))
	route = shortcut{slow: slow, orig: orig, clock: clock, at: base, end: base + shortcutRoom}
	return f
}

// arm lets the next starts of graph, whose template is k, take the shortcut, at most
// times of them.
func (f *fast) arm(graph uintptr, k *known, times uint) {
	r := f.route
	if r == nil || times == 0 || r.graph == graph && f.k == k {
		if r != nil {
			r.left = uintptr(times)
		}
		return
	}
	r.graph, f.pieces = 0, f.pieces[:0]
	size := uintptr(entryTimes)
	for i := range k.index {
		n := k.index[i].packed()
		if n < 0 {
			return
		}
		f.pieces = append(f.pieces, piece{uintptr(k.index[i].data), uintptr(n)})
		size += uintptr(n)
	}
	if size = (size + 15) &^ 15; size > shortcutRoom/4 {
		return
	}
	f.k, r.graph, r.left, r.entry = k, graph, uintptr(times), size
	r.copies, r.count = uintptr(unsafe.Pointer(unsafe.SliceData(f.pieces))), uintptr(len(f.pieces))
}

// disarm sends every graph to Go.
func (f *fast) disarm() {
	if f.route != nil {
		f.route.graph, f.k = 0, nil
	}
}

// packed is the number of bytes of v if they lie one behind the other, -1 if they do
// not or cannot be read.
func (v *values) packed() int {
	if v.width == 0 || v.data == 0 {
		return -1
	}
	size := v.width
	for i, n := range v.ne {
		if n == 0 {
			return 0
		}
		if n != 1 && v.nb[i] != size {
			return -1
		}
		size *= uint64(n)
	}
	return int(size)
}

// drain records what went through the shortcut since the last time. It must be called
// before anything else is recorded.
func (h *Hook) drain() {
	r := h.fast.route
	if r == nil {
		return
	}
	base := uintptr(unsafe.Pointer(&h.fast.log[0]))
	used := r.at - base
	if used == 0 {
		return
	}
	r.at = base
	if h.err != nil {
		return
	}
	begin := now()
	k := h.fast.k
	for b := h.fast.log[:used]; len(b) > 0; b = b[r.entry:] {
		at := func(i int) uint64 {
			ts := (*unix.Timespec)(unsafe.Pointer(&b[16*i]))
			return uint64(ts.Nano())
		}
		e := &h.rec.ev
		e.Template, e.Start, e.End, e.Thread = k.id, at(1), at(2), h.thread
		e.Index, e.Chosen, e.Times = grow(e.Index, len(k.index)), grow(e.Chosen, len(k.chosen)), e.Times[:0]
		clear(e.Chosen)
		off := uintptr(entryTimes)
		for i := range k.index {
			v := k.index[i]
			v.data = ptr(unsafe.Pointer(unsafe.SliceData(b[off:]))) // may be empty, at the end
			e.Index[i] = v.read(e.Index[i][:0])
			off += h.fast.pieces[i].size
		}
		if h.err = h.rec.finish(); h.err != nil {
			return
		}
		h.reused++
		h.cost.Evals++
		h.cost.NS += at(1) - at(0)
	}
	h.cost.NS += now() - begin
}

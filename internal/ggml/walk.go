//go:build linux

package ggml

import (
	"bytes"
	"unsafe"
)

// tensorSize is the size of struct ggml_tensor.
const tensorSize = 336

// walk is a graph as the evaluation callback alone sees it: node by node, and
// never its end. When the next graph begins, its tensors may lie where those of this one
// did, so everything is copied as it goes by.
type walk struct {
	nodes  []ptr // in the engine's memory
	kept   map[ptr]keptTensor
	leafs  []ptr
	pages  [][]byte
	used   int // bytes of pages in use
	values map[ptr][]int64
	times  []NodeTime
	start  uint64
}

type keptTensor struct {
	copy ptr
	node bool
}

func newWalk() walk {
	return walk{kept: map[ptr]keptTensor{}, values: map[ptr][]int64{}}
}

func (w *walk) reset() {
	w.nodes, w.leafs, w.times, w.used = w.nodes[:0], w.leafs[:0], w.times[:0], 0
	clear(w.kept)
	clear(w.values)
}

// keep copies a tensor.
func (w *walk) keep(p ptr) ptr {
	const perPage = 256
	page, in := w.used/perPage, w.used%perPage
	if page == len(w.pages) {
		w.pages = append(w.pages, make([]byte, perPage*tensorSize))
	}
	w.used++
	b := w.pages[page][in*tensorSize:][:tensorSize]
	snapshot(b, p)
	return ptr(uintptr(unsafe.Pointer(&b[0])))
}

// snapshot is not inlined: Go 1.26 cannot compile a copy of constant length from
// a bare address.
//
//go:noinline
func snapshot(to []byte, p ptr) { copy(to, bytesAt(p, len(to))) }

// add takes the next node and what it refers to.
func (w *walk) add(p ptr) {
	k, ok := w.kept[p]
	if !ok {
		k.copy = w.keep(p)
	}
	k.node = true
	w.kept[p] = k
	w.nodes = append(w.nodes, p)
	for _, s := range p.src() {
		w.refer(s, true)
	}
	w.refer(p.viewSrc(), false)
}

// refer takes a tensor that a node names, and what that views.
func (w *walk) refer(p ptr, source bool) {
	for ; p != 0; p, source = p.viewSrc(), false {
		if _, ok := w.kept[p]; ok {
			return
		}
		w.kept[p] = keptTensor{copy: w.keep(p)}
		if source {
			w.leafs = append(w.leafs, p)
		}
	}
}

// over reports whether a node belongs to the next graph.
func (w *walk) over(p ptr) bool {
	if len(w.nodes) == 0 {
		return false
	}
	// A graph holds a node once; and once it is built anew, its first node or this one
	// has changed.
	k := w.kept[p]
	first := w.nodes[0]
	return k.node || !w.same(first) || k.copy != 0 && !w.same(p)
}

func (w *walk) same(p ptr) bool {
	return bytes.Equal(bytesAt(p, hashed), bytesAt(w.kept[p].copy, hashed))
}

// at is where the structure of a tensor can be read.
func (w *walk) at(p ptr) ptr {
	if k, ok := w.kept[p]; ok {
		return k.copy
	}
	return p
}

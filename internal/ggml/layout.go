//go:build linux

// Package ggml knows how llama.cpp's tensor library lays out tensors and graphs
// in memory. It checks that layout on live data before anybody relies on it,
// reads graphs whole, gives them a compact form, and hooks the one call
// through which libllama starts a graph.
package ggml

import "unsafe"

// Offsets in struct ggml_tensor and struct ggml_cgraph (ggml.h and ggml-impl.h
// of llama.cpp since 2025, LP64). [Lib.Verify] compares them with what the
// library's own accessors say.
const (
	offType     = 0
	offBuffer   = 8
	offNe       = 16
	offNb       = 48
	offOp       = 80
	offParams   = 84
	offFlags    = 148
	offSrc      = 152
	offViewSrc  = 232
	offViewOffs = 240
	offData     = 248
	offName     = 256
	nameLen     = 64

	// MaxSrc is the number of sources a tensor may have.
	MaxSrc = 10

	graphNNodes = 4
	graphNLeafs = 8
	graphNodes  = 16
	graphLeafs  = 40

	// hashed is how much of a tensor decides what a graph does: all but its
	// name.
	hashed = offName
)

// Tensor flags (ggml.h).
const (
	FlagInput  = 1
	FlagOutput = 2
)

// Uses of a backend buffer (ggml-backend.h).
const (
	UsageAny     = 0
	UsageWeights = 1
	UsageCompute = 2
)

// ptr is an address in the engine's memory.
type ptr uintptr

func at[T any](p ptr, off int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(nil), uintptr(p)+uintptr(off)))
}

func bytesAt(p ptr, n int) []byte {
	return unsafe.Slice(at[byte](p, 0), n)
}

func (p ptr) typ() int32       { return *at[int32](p, offType) }
func (p ptr) buffer() ptr      { return *at[ptr](p, offBuffer) }
func (p ptr) ne() [4]int64     { return *at[[4]int64](p, offNe) }
func (p ptr) nb() [4]uint64    { return *at[[4]uint64](p, offNb) }
func (p ptr) op() int32        { return *at[int32](p, offOp) }
func (p ptr) flags() int32     { return *at[int32](p, offFlags) }
func (p ptr) src() [MaxSrc]ptr { return *at[[MaxSrc]ptr](p, offSrc) }
func (p ptr) viewSrc() ptr     { return *at[ptr](p, offViewSrc) }
func (p ptr) viewOffs() uint64 { return *at[uint64](p, offViewOffs) }
func (p ptr) data() ptr        { return *at[ptr](p, offData) }
func (p ptr) params() [4]int32 { return *at[[4]int32](p, offParams) }

func (p ptr) name() string {
	b := at[[nameLen]byte](p, offName)
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b[:])
}

// elements returns the number of elements.
func (p ptr) elements() int64 {
	n := p.ne()
	return n[0] * n[1] * n[2] * n[3]
}

func sliceAt[T any](p ptr, n int) []T { return unsafe.Slice(at[T](p, 0), n) }

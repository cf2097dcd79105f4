package analyze

import (
	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/observe"
)

// access is a row as the naive models of these tests see it.
type access struct {
	object      uint32
	class       string
	phase       string
	store       bool
	padding     bool // of a KV cache: no sequence
	step, token uint32
	layer       int32
	region      uint32
	base, off   uint64
	piece       uint64
	count       uint32
	stride      uint64
	time        uint64
}

func (a *access) bytes(f func(off uint64)) {
	for k := range uint64(a.count) {
		for b := range a.piece {
			f(a.off + k*a.stride + b)
		}
	}
}

// batchOf makes a batch as collectors do.
func batchOf(list []access) *observe.Batch {
	b := &observe.Batch{Len: len(list)}
	text := func(get func(*access) string) observe.Strings {
		d, codes := observe.NewDict(), make([]uint32, len(list))
		for i := range list {
			codes[i] = d.Code(get(&list[i]))
		}
		return observe.Strings{Column: observe.SliceOf(codes), Dict: d}
	}
	b.OpType = text(func(a *access) string {
		if a.store {
			return observe.Store
		}
		return observe.Load
	})
	b.Phase, b.RegionType = text(func(a *access) string { return a.phase }), text(func(a *access) string { return a.class })
	u32 := func(get func(*access) uint32) observe.Column[uint32] {
		v := make([]uint32, len(list))
		for i := range list {
			v[i] = get(&list[i])
		}
		return observe.SliceOf(v)
	}
	u64 := func(get func(*access) uint64) observe.Column[uint64] {
		v := make([]uint64, len(list))
		for i := range list {
			v[i] = get(&list[i])
		}
		return observe.SliceOf(v)
	}
	b.Object, b.Step, b.TokenIndex = u32(func(a *access) uint32 { return a.object }), u32(func(a *access) uint32 { return a.step }), u32(func(a *access) uint32 { return a.token })
	b.Count, b.RegionID = u32(func(a *access) uint32 { return a.count }), u32(func(a *access) uint32 { return a.region })
	b.Address, b.Offset = u64(func(a *access) uint64 { return a.base + a.off }), u64(func(a *access) uint64 { return a.off })
	b.Size, b.Stride, b.Time = u64(func(a *access) uint64 { return a.piece * uint64(a.count) }), u64(func(a *access) uint64 { return a.stride }), u64(func(a *access) uint64 { return a.time })
	layer, seq := make([]int32, len(list)), make([]int32, len(list))
	b.Layer, b.SeqID = observe.SliceOf(layer), observe.SliceOf(seq)
	b.Layer.Nulls, b.SeqID.Nulls = make([]bool, len(list)), make([]bool, len(list))
	for i := range list {
		layer[i], b.Layer.Nulls[i] = list[i].layer, list[i].layer == observe.NoLayer
		b.SeqID.Nulls[i] = list[i].padding
	}
	return b
}

// batches hands a stream to an analysis in pieces of random length.
func batches(t *rapid.T, list []access, a interface{ Observe(*observe.Batch) error }) {
	for len(list) > 0 {
		n := rapid.IntRange(1, len(list)).Draw(t, "rows")
		if err := a.Observe(batchOf(list[:n])); err != nil {
			t.Fatal(err)
		}
		list = list[n:]
	}
}

var classes = []string{observe.ClassWeight, observe.ClassKVCache, observe.ClassActivation}

// drawStream makes accesses to a few small objects, in order of time.
func drawStream(t *rapid.T) []access {
	var list []access
	now, step := uint64(1000), uint32(1)
	for range rapid.IntRange(1, 60).Draw(t, "accesses") {
		now += rapid.Uint64Range(0, 40).Draw(t, "later")
		if rapid.IntRange(0, 7).Draw(t, "next") == 0 {
			step++
		}
		a := access{object: rapid.Uint32Range(1, 4).Draw(t, "object"), store: rapid.Bool().Draw(t, "store"), step: step, token: step / 2, time: now, count: 1,
			phase: []string{observe.PhasePrefill, observe.PhaseDecode}[step%2], layer: rapid.Int32Range(-1, 2).Draw(t, "layer")}
		a.class, a.base, a.region = classes[a.object%3], uint64(a.object)<<13-30, a.object-1 // across a page
		a.padding = a.class != observe.ClassKVCache || !a.store && rapid.IntRange(0, 3).Draw(t, "padding") == 0
		a.off, a.piece = rapid.Uint64Range(0, 40).Draw(t, "offset"), rapid.Uint64Range(1, 20).Draw(t, "piece")
		if rapid.Bool().Draw(t, "strided") {
			a.count = rapid.Uint32Range(2, 4).Draw(t, "count")
			a.stride = a.piece + rapid.Uint64Range(1, 9).Draw(t, "gap")
		}
		list = append(list, a)
	}
	return list
}

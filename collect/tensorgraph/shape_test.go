package tensorgraph

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/internal/ggml"
)

// touched marks every byte that the elements of a tensor cover.
func touched(ne [4]int64, nb [4]uint64, t ggml.Type) map[uint64]bool {
	m := map[uint64]bool{}
	blocks := (ne[0] + t.Block - 1) / t.Block
	for i3 := range ne[3] {
		for i2 := range ne[2] {
			for i1 := range ne[1] {
				for i0 := range blocks {
					at := uint64(i0)*nb[0] + uint64(i1)*nb[1] + uint64(i2)*nb[2] + uint64(i3)*nb[3]
					for b := range t.Size {
						m[at+b] = true
					}
				}
			}
		}
	}
	return m
}

func TestCoverTouchesExactlyTheTensor(t *testing.T) {
	types := []ggml.Type{{Name: "f32", Block: 1, Size: 4}, {Name: "f16", Block: 1, Size: 2}, {Name: "q8_0", Block: 32, Size: 34}}
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		var ne [4]int64
		var nb [4]uint64
		// Strides as views and permutations make them: each dimension at least
		// as far apart as the ones inside it, in any order.
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
		if typ.Block > 1 {
			order = []int{0, 1, 2, 3}
		}
		next := typ.Size
		for _, i := range order {
			ne[i] = rapid.Int64Range(1, 5).Draw(t, "ne")
			if i == 0 {
				ne[i] *= typ.Block
			}
			nb[i] = next + typ.Size*rapid.Uint64Range(0, 2).Draw(t, "gap")
			n := uint64(ne[i])
			if i == 0 {
				n /= uint64(typ.Block)
			}
			next = nb[i] * n
		}
		unit, dims := dimsOf(ne, nb, typ)
		got := map[uint64]bool{}
		var total uint64
		for _, p := range cover(0, unit, dims) {
			for k := range p.count {
				for b := range p.piece {
					got[p.off+k*p.stride+b] = true
				}
			}
			total += p.size()
		}
		want := touched(ne, nb, typ)
		if len(got) != len(want) || total != uint64(len(want)) {
			t.Fatalf("%v %v: %d bytes in %d counted, want %d", ne, nb, len(got), total, len(want))
		}
		for b := range want {
			if !got[b] {
				t.Fatalf("%v %v: byte %d is missing", ne, nb, b)
			}
		}
	})
}

func TestOverlappingWindowsAreCountedOnce(t *testing.T) {
	unit, dims := dimsOf([4]int64{4, 10, 1, 1}, [4]uint64{4, 4, 0, 0}, ggml.Type{Block: 1, Size: 4})
	got := cover(8, unit, dims)
	if len(got) != 1 || got[0] != (pieces{8, 52, 1, 0}) {
		t.Fatalf("%+v", got)
	}
}

package tensorgraph

import (
	"math"
	"slices"

	"github.com/tierscope/tierscope/internal/ggml"
)

// pieces are bytes at regular distances: count pieces of piece bytes, stride apart, the
// first at off.
type pieces struct {
	off    uint64
	piece  uint64
	count  uint64
	stride uint64
}

func (p pieces) size() uint64 { return p.piece * p.count }

// dim is one dimension in memory: n steps of stride bytes.
type dim struct{ n, stride uint64 }

// maxPieces bounds the rows that one tensor may become: a view strided in three
// dimensions is rare, and each row is one piece of its outermost.
const maxPieces = 1 << 16

// dimsOf returns the unit (bytes that always lie together) and the dimensions
// of a tensor with more than one step, smallest stride first. No dimension left and
// unit 0: the tensor is empty.
func dimsOf(ne [4]int64, nb [4]uint64, t ggml.Type) (unit uint64, dims []dim) {
	if t.Block < 1 {
		return 0, nil
	}
	for i, n := range ne {
		if n <= 0 {
			return 0, nil
		}
		d := dim{uint64(n), nb[i]}
		if i == 0 {
			d.n = (d.n + uint64(t.Block) - 1) / uint64(t.Block)
		}
		if d.n > 1 && d.stride > 0 { // stride 0: the same bytes again
			dims = append(dims, d)
		}
	}
	slices.SortFunc(dims, func(a, b dim) int {
		if a.stride < b.stride {
			return -1
		}
		return 1
	})
	return t.Size, dims
}

// cover turns unit and dimensions into as few regular pieces as there are. Dimensions that
// touch or overlap become one piece; what is left beyond one stride is
// spelled out.
func cover(off, unit uint64, dims []dim) []pieces {
	if unit == 0 {
		return nil
	}
	piece := unit
	var rest []dim
	for _, d := range dims {
		switch {
		case len(rest) == 0 && d.stride <= piece:
			piece += (d.n - 1) * d.stride
		case len(rest) > 0 && d.stride == rest[len(rest)-1].n*rest[len(rest)-1].stride:
			rest[len(rest)-1].n *= d.n
		default:
			rest = append(rest, d)
		}
	}
	if len(rest) == 0 {
		return []pieces{{off, piece, 1, 0}}
	}
	if rest[0].n > math.MaxUint32 { // more than a row can count
		piece += (rest[0].n - 1) * rest[0].stride
		rest[0] = dim{1, 0}
	}
	all := []pieces{{off, piece, rest[0].n, rest[0].stride}}
	for _, d := range rest[1:] {
		if uint64(len(all))*d.n > maxPieces {
			// Say more than was touched rather than nothing.
			for i := range all {
				all[i] = pieces{all[i].off, (d.n-1)*d.stride + (all[i].count-1)*all[i].stride + all[i].piece, 1, 0}
			}
			continue
		}
		base := all
		for k := uint64(1); k < d.n; k++ {
			for _, p := range base {
				p.off += k * d.stride
				all = append(all, p)
			}
		}
	}
	return all
}

package tensorgraph_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/trace"
)

// blockCells is the default length of a KV block.
const blockCells = 16

// life is what the rows of the trace say of one life of a block of one cache.
type life struct {
	block                  int
	write, lastRead, evict uint64
	reads                  uint64
}

func (m *cacheModel) stored(block int, at uint64) {
	if m.lives[block] == nil {
		m.lives[block] = &life{block: block, write: at}
	}
}

// evict ends the lives of the blocks that hold nothing any more.
func (m *cacheModel) evict(at uint64) {
	for block, l := range m.lives {
		held := false
		for c := block * blockCells; c < (block+1)*blockCells; c++ {
			held = held || m.streams[c/m.cells].pos[c%m.cells] >= 0
		}
		if !held {
			l.evict = at
			m.ended = append(m.ended, l)
			delete(m.lives, block)
		}
	}
}

// address is where a block begins.
func (m *cacheModel) address(block int) uint64 {
	first := block * blockCells
	at := first * m.cell
	if m.elem > 0 {
		at = first/m.cells*m.cells*m.cell + first%m.cells*m.elem
	}
	return m.object.Base + uint64(at)
}

// checkLives holds the life cycle table of a cache against the rows of the trace. All
// layers that share cells share their times, to the evaluation; exact are those of the
// first of them.
func checkLives(t *testing.T, v *view, m *cacheModel, exact bool) {
	t.Helper()
	var rows []trace.KVBlockRow
	for _, r := range v.res.Blocks {
		if r.BlockID == m.object.ID+1 {
			rows = append(rows, r)
		}
	}
	if len(m.lives) != 0 || len(rows) != len(m.ended) || len(rows) == 0 {
		t.Fatalf("%s: %d lives in the table, %d in the trace, %d of them not ended", m.object.Name, len(rows), len(m.ended)+len(m.lives), len(m.lives))
	}
	byWrite := func(a, b *life) int { return cmp.Or(cmp.Compare(a.write, b.write), cmp.Compare(a.block, b.block)) }
	slices.SortFunc(m.ended, byWrite)
	for i, l := range m.ended {
		r := rows[i]
		if r.Address != m.address(l.block) || r.AddressPage != r.Address>>12 || !r.Evicted || r.EvictNS != l.evict || r.TotalReads != l.reads || r.LifetimeNS != r.EvictNS-r.WriteNS {
			t.Fatalf("%s, life %d: %+v; the trace says %+v at %#x", m.object.Name, i, r, *l, m.address(l.block))
		}
		for _, x := range [2][2]uint64{{r.WriteNS, l.write}, {r.LastReadNS, l.lastRead}} {
			if exact && x[0] != x[1] || v.evalAt(t, x[0]) != v.evalAt(t, x[1]) {
				t.Fatalf("%s, life %d: %+v; the trace says %+v", m.object.Name, i, r, *l)
			}
		}
	}
}

// evalAt is the number of the evaluation under way at a time.
func (v *view) evalAt(t *testing.T, at uint64) int {
	t.Helper()
	if v.evals == nil {
		records(t, v.log, func(kind uint8, p []byte) {
			if kind == trace.KindEval {
				e, err := ggml.DecodeEval(p)
				if err != nil {
					t.Fatal(err)
				}
				v.evals = append(v.evals, e)
			}
		})
	}
	for i, e := range v.evals {
		if at >= e.Start && at <= e.End {
			return i
		}
	}
	t.Fatalf("nothing was evaluated at %d", at)
	return -1
}

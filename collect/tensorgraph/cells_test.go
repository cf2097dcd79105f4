package tensorgraph_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// ringCells is how llama.cpp deals the cells of one stream of a cache
// (llama_kv_cache::find_slot): the next free one from where the last batch ended,
// where a cell that has left the sliding window counts as free.
type ringCells struct {
	pos    []int // position that a cell holds, -1 = none
	head   int
	window int // 0 = none
}

func newRing(cells, window int) *ringCells {
	return &ringCells{pos: slices.Repeat([]int{-1}, cells), window: window}
}

func (r *ringCells) used() (n, top int) {
	for c, p := range r.pos {
		if p >= 0 {
			n, top = n+1, c+1
		}
	}
	return n, top
}

// place takes cells for positions [from, from+n).
func (r *ringCells) place(t *testing.T, from, n int) []int {
	t.Helper()
	if used, _ := r.used(); r.head > used+2*n {
		r.head = 0
	}
	newest := slices.Max(r.pos)
	var cells []int
	for tested := 0; len(cells) < n; tested++ {
		if tested > len(r.pos) {
			t.Fatalf("no room for %d tokens", n)
		}
		c := r.head % len(r.pos)
		r.head = c + 1
		if p := r.pos[c]; p < 0 || r.window > 0 && newest+1-p >= r.window {
			cells = append(cells, c)
		}
	}
	for i, c := range cells {
		r.pos[c] = from + i
	}
	return cells
}

// free gives back the cells from a position on.
func (r *ringCells) free(from int) {
	for c, p := range r.pos {
		if p >= from {
			r.pos[c] = -1
			r.head = min(r.head, c)
		}
	}
}

// cacheModel is the cache of one layer, K or V, byte by byte.
type cacheModel struct {
	object     observe.Object
	cells      int // a stream
	cell       int // bytes
	elem       int // bytes an element where the cache is transposed, else 0
	streams    []*ringCells
	look, used []bool // bytes that a step must look at, those of cells in use
	wrote      []bool
	lives      map[int]*life // of the blocks that hold something
	ended      []*life
}

// mark sets the bytes of cells [a, b) of a stream.
func (m *cacheModel) mark(bytes []bool, stream, a, b int) {
	base := stream * m.cells * m.cell
	if m.elem == 0 {
		for i := base + a*m.cell; i < base+b*m.cell; i++ {
			bytes[i] = true
		}
		return
	}
	for row := base; row < base+m.cells*m.cell; row += m.cells * m.elem {
		for i := row + a*m.elem; i < row+b*m.elem; i++ {
			bytes[i] = true
		}
	}
}

// cellAt is the cell, counted through all streams, that a byte belongs to.
func (m *cacheModel) cellAt(off uint64) int {
	stream := int(off) / (m.cells * m.cell)
	in := int(off) % (m.cells * m.cell)
	if m.elem == 0 {
		return stream*m.cells + in/m.cell
	}
	return stream*m.cells + in%(m.cells*m.elem)/m.elem
}

// cellRun is a run of several conversations.
type cellRun struct {
	model  func(*gguf.Spec)
	job    llamacpp.Job
	cells  func(layer int) int
	window func(layer int) int
}

func conversations(more ...llamacpp.Prompt) []llamacpp.Prompt {
	return append([]llamacpp.Prompt{{Tokens: 90, Output: 12}, {Tokens: 40, Output: 8}, {Tokens: 30, Output: 9, Keep: true}}, more...)
}

func swa(s *gguf.Spec) { s.Layers, s.SlidingWindow, s.SWAPattern = 3, 24, 3 }

func never(int) int { return 0 }

var cellRuns = map[string]cellRun{
	"one sequence":           {nil, llamacpp.Job{Context: 512, Prompts: conversations(llamacpp.Prompt{Tokens: 260, Output: 5})}, full(512), never},
	"one sequence, no flash": {nil, llamacpp.Job{Context: 512, FlashAttn: "off", Prompts: conversations(llamacpp.Prompt{Tokens: 260, Output: 5})}, full(512), never},
	"one sequence, q8_0":     {nil, llamacpp.Job{Context: 512, FlashAttn: "on", TypeK: "q8_0", TypeV: "q4_0", Prompts: conversations()}, full(512), never},
	"two sequences":          {nil, llamacpp.Job{Context: 256, Sequences: 2, Prompts: conversations(llamacpp.Prompt{Tokens: 20, Output: 14})}, full(256), never},
	"two sequences, no flash": {nil, llamacpp.Job{Context: 256, Sequences: 2, FlashAttn: "off", Prompts: conversations(llamacpp.Prompt{Tokens: 20, Output: 14})},
		full(256), never},
	// When the middle one is done the other two need a graph each.
	"three sequences": {nil, llamacpp.Job{Context: 256, Sequences: 3, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 9}, llamacpp.Prompt{Tokens: 30, Output: 4},
		llamacpp.Prompt{Tokens: 40, Output: 12}, llamacpp.Prompt{Tokens: 3, Output: 3, Keep: true})}, full(256), never},
	"two sequences, long": {nil, llamacpp.Job{Context: 512, Sequences: 2, MicroBatch: 64, Prompts: prompts(llamacpp.Prompt{Tokens: 270, Output: 5}, llamacpp.Prompt{Tokens: 20, Output: 9})},
		full(512), never},
	"window": {swa, llamacpp.Job{Context: 1024, MicroBatch: 64, Prompts: conversations(llamacpp.Prompt{Tokens: 280, Output: 30}, llamacpp.Prompt{Tokens: 100, Output: 30, Keep: true},
		llamacpp.Prompt{Tokens: 10, Output: 3})},
		func(l int) int { return []int{256, 256, 1024}[l%3] }, func(l int) int { return []int{24, 24, 0}[l%3] }},
	"window, no flash, two sequences": {swa, llamacpp.Job{Context: 512, Sequences: 2, MicroBatch: 64, FlashAttn: "off", Prompts: conversations(llamacpp.Prompt{Tokens: 280, Output: 30},
		llamacpp.Prompt{Tokens: 100, Output: 10, Keep: true})},
		func(l int) int { return []int{256, 256, 512}[l%3] }, func(l int) int { return []int{24, 24, 0}[l%3] }},
}

// TestCellsAreExact follows conversations through the caches with a model of
// llama.cpp's own bookkeeping, byte by byte: which bytes each step writes, reads
// for a sequence, and reads as padding; in which block each write lies.
func TestCellsAreExact(t *testing.T) {
	for name, c := range cellRuns {
		t.Run(name, func(t *testing.T) {
			f := synth(t, c.model)
			v := watch(t, f, c.job)
			checkCells(t, v, f, &c)
			checkPlaces(t, v, f)
			if len(v.res.Outputs) != len(c.job.Prompts) {
				t.Errorf("%d outputs of %d prompts", len(v.res.Outputs), len(c.job.Prompts))
			}
		})
	}
}

// caches are the models of all caches of a run.
func caches(t *testing.T, v *view, f *gguf.File, c *cellRun) (all []*cacheModel) {
	t.Helper()
	streams := max(c.job.Sequences, 1)
	for l := range f.Shape.Layers {
		rings := make([]*ringCells, streams)
		for i := range rings {
			rings[i] = newRing(c.cells(l), c.window(l))
		}
		k, val := cellBytes(t, f, l, c.job.TypeK, c.job.TypeV)
		for _, side := range []struct {
			kind string
			cell uint64
		}{{"k", k}, {"v", val}} {
			m := &cacheModel{cells: c.cells(l), cell: int(side.cell), streams: rings}
			for _, o := range v.objects {
				if o.Name == fmt.Sprintf("cache_%s_l%d", side.kind, l) {
					m.object = o
				}
			}
			o := &m.object
			if o.Class != observe.ClassKVCache || o.Kind != side.kind || int(o.Layer) != l || int(o.Size) != m.cells*m.cell*streams {
				t.Fatalf("cache of layer %d: %+v, want %d bytes", l, *o, m.cells*m.cell*streams)
			}
			if side.kind == "v" && c.job.FlashAttn == "off" {
				m.elem = 2
			}
			m.look, m.used, m.wrote = make([]bool, o.Size), make([]bool, o.Size), make([]bool, o.Size)
			m.lives = map[int]*life{}
			all = append(all, m)
		}
	}
	return all
}

func checkCells(t *testing.T, v *view, f *gguf.File, c *cellRun) {
	t.Helper()
	all := caches(t, v, f, c)
	byStep := make([][]*row, len(v.steps)+1)
	for i := range v.rows {
		byStep[v.rows[i].step] = append(byStep[v.rows[i].step], &v.rows[i])
	}
	next, step := map[int]int{}, 0
	var active []int   // sequences that generate
	var graphs [][]int // sequences of each graph of the step under way
	var tokens int     // of each sequence in it
	records(t, v.log, func(kind uint8, p []byte) {
		switch kind {
		case trace.KindKV:
			var op trace.KVOp
			unmarshal(t, p, &op)
			for i, m := range all {
				for s, r := range m.streams {
					if i%2 == 0 && (op.Op == trace.KVClear || op.Seq == int32(s)) { // V has the cells of K
						r.free(max(int(op.P0), 0))
					}
				}
				m.evict(op.At)
			}
			if op.Op == trace.KVRemove {
				next[int(op.Seq)] = max(int(op.P0), 0)
			}
		case trace.KindOutput:
			var o trace.Output
			unmarshal(t, p, &o)
			active = slices.DeleteFunc(active, func(s int) bool { return s == int(o.Seq) })
		case trace.KindStep:
			s, err := trace.DecodeStep(p)
			if err != nil {
				t.Fatal(err)
			}
			if s.Prefill {
				if !slices.Contains(active, int(s.Seq)) {
					active = append(active, int(s.Seq))
					slices.Sort(active)
				}
				if int(s.Context) != next[int(s.Seq)] {
					t.Fatalf("step %d: context %d, want %d", step+1, s.Context, next[int(s.Seq)])
				}
				graphs, tokens = [][]int{{int(s.Seq)}}, int(s.Tokens)
				return
			}
			if int(s.Tokens) != len(active) {
				t.Fatalf("step %d: %d tokens, active are %v", step+1, s.Tokens, active)
			}
			// llama.cpp joins neighbouring sequences in one graph.
			graphs, tokens = nil, 1
			for i, q := range active {
				if i > 0 && active[i-1] == q-1 {
					graphs[len(graphs)-1] = append(graphs[len(graphs)-1], q)
				} else {
					graphs = append(graphs, []int{q})
				}
			}
		case trace.KindEval:
			if step++; len(graphs) == 0 {
				t.Fatalf("evaluation %d is one more than its step has", step)
			}
			for i, m := range all {
				m.expect(t, graphs[0], next, tokens, i%2 == 0)
				checkStep(t, m, byStep[step], step)
			}
			for _, q := range graphs[0] {
				next[q] += tokens
			}
			graphs = graphs[1:]
		}
	})
	if step != len(v.steps) {
		t.Errorf("%d evaluations in the log, %d in the trace", step, len(v.steps))
	}
	groups := map[int]bool{} // layers of a window share cells
	for _, m := range all {
		window := c.window(int(m.object.Layer))
		checkLives(t, v, m, !groups[window])
		groups[window] = true
	}
}

// expect says what a graph of n tokens of each of the sequences writes and reads.
func (m *cacheModel) expect(t *testing.T, seqs []int, next map[int]int, n int, place bool) {
	clear(m.wrote)
	clear(m.look)
	clear(m.used)
	top := 0
	for _, q := range seqs {
		ring := m.streams[q]
		if place {
			ring.place(t, next[q], n)
		}
		for cell, pos := range ring.pos {
			if pos < 0 {
				continue
			}
			if pos >= next[q] {
				m.mark(m.wrote, q, cell, cell+1)
			}
			m.mark(m.used, q, cell, cell+1)
			top = max(top, cell+1)
		}
	}
	for _, q := range seqs {
		m.mark(m.look, q, 0, padded(top, m.cells))
	}
}

func unmarshal(t *testing.T, p []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(p, v); err != nil {
		t.Fatal(err)
	}
}

// checkStep holds the rows of one evaluation against a cache.
func checkStep(t *testing.T, m *cacheModel, rows []*row, step int) {
	t.Helper()
	wrote, used, pad := make([]bool, len(m.used)), make([]bool, len(m.used)), make([]bool, len(m.used))
	streamBytes := m.cells * m.cell
	read := map[int]uint64{} // blocks, and when
	for _, r := range rows {
		if r.name != m.object.Name {
			continue
		}
		into, what := used, "read"
		switch {
		case r.store:
			into, what = wrote, "written"
		case r.seq < 0:
			into, what = pad, "read as padding"
		}
		if seq := int(r.off) / streamBytes; r.seq >= 0 && r.seq != int32(seq) {
			t.Errorf("step %d: %s + %d belongs to sequence %d, not %d", step, r.name, r.off, seq, r.seq)
		}
		if (r.block >= 0) != r.store || r.store && r.block != int64(m.cellAt(r.off)/blockCells) {
			t.Errorf("step %d: %s + %d lies in block %d", step, r.name, r.off, r.block)
		}
		if r.store {
			m.stored(int(r.block), r.time)
		}
		piece := r.size / uint64(r.count)
		for k := range uint64(r.count) {
			for b := r.off + k*r.stride; b < r.off+k*r.stride+piece; b++ {
				if into[b] {
					t.Fatalf("step %d: byte %d of %s is %s twice", step, b, r.name, what)
				}
				into[b] = true
				if !r.store && r.seq >= 0 {
					read[m.cellAt(b)/blockCells] = r.time
				}
				if r.store && m.cellAt(b)/blockCells != int(r.block) {
					t.Fatalf("step %d: byte %d of %s does not lie in block %d", step, b, r.name, r.block)
				}
			}
		}
	}
	for block, at := range read {
		l := m.lives[block]
		if l == nil {
			t.Fatalf("step %d: block %d of %s is read and holds nothing", step, block, m.object.Name)
		}
		l.lastRead, l.reads = at, l.reads+1
	}
	for b := range used {
		if wrote[b] != m.wrote[b] || used[b] != (m.look[b] && m.used[b]) || pad[b] != (m.look[b] && !m.used[b]) {
			t.Fatalf("step %d: byte %d of %s, cell %d: written %v, read %v, padding %v; want %v, %v, %v", step, b, m.object.Name, m.cellAt(uint64(b)),
				wrote[b], used[b], pad[b], m.wrote[b], m.look[b] && m.used[b], m.look[b] && !m.used[b])
		}
	}
}

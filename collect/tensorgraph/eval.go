package tensorgraph

import (
	"slices"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
)

// eval expands one evaluation.
func (r *replayer) eval(p *program, e *ggml.Eval) error {
	if len(e.Index) != len(p.t.Index) || len(e.Chosen) != len(p.t.Chosen) {
		return run.Errorf(run.Corrupt, "evaluation has %d and %d index lists, its template %d and %d", len(e.Index), len(e.Chosen), len(p.t.Index), len(p.t.Chosen))
	}
	if err := p.check(e); err != nil {
		return err
	}
	r.evals++
	r.res.Evals++
	r.seen(e.Start)
	r.seen(e.End)
	r.busy = max(r.busy, e.End)
	if !r.inStep {
		r.res.OutOfOrder++
	}
	name := observe.PhaseDecode
	if r.step.Prefill {
		name = observe.PhasePrefill
	}
	m := &moment{
		phase: r.rows.phases.Code(name), request: r.rows.reqs.Code(requestName(r.step.Request)),
		token: r.step.Token, context: r.step.Context, step: uint32(r.evals),
		// A batch of several sequences works for several requests.
		noRequest: !r.step.Prefill && r.step.Tokens > 1,
	}
	r.rows.b.ThreadID, r.rows.b.PID = observe.ConstOf(e.Thread), observe.ConstOf(r.res.Engine.PID)
	c := &clock{e.Start, e.End, p.frac, e.Times}
	node, at := int32(-1), uint64(0)
	for i := range p.accesses {
		a := &p.accesses[i]
		if a.node != node {
			// All of a node's accesses are placed in its middle: a value then lives
			// from the middle of the operation that made it to that of its last
			// reader, which is right on average.
			node, at = a.node, (c.at(a.node)+c.at(a.node+1))/2
		}
		o := &r.objects.all[a.object-1]
		x := &row{
			object: o, class: r.rows.classes.Code(o.Class), space: r.rows.spaces.Code(o.Space), op: r.rows.names.Code(a.op),
			layer: a.layer, store: a.store, time: at, seq: -1, block: -1,
		}
		if o.Class == observe.ClassKVCache {
			x.seq = int32(r.step.Seq) // a load of cells knows better, and what is padding
		}
		if err := r.access(e, m, a, x); err != nil {
			return err
		}
	}
	return r.cacheMarks(e.End)
}

// check holds the values of an evaluation against the shapes of their tensors.
func (p *program) check(e *ggml.Eval) error {
	for i, v := range e.Index {
		if n := p.t.Tensors[p.t.Index[i]].Elements(); v != nil && int64(len(v)) != n {
			return run.Errorf(run.Corrupt, "evaluation has %d values of an index tensor of %d", len(v), n)
		}
	}
	for i, v := range e.Chosen {
		if n := p.t.Tensors[p.t.Chosen[i]].Elements(); v != nil && int64(len(v)) != n {
			return run.Errorf(run.Corrupt, "evaluation has %d values of a choice of %d", len(v), n)
		}
	}
	return nil
}

func (r *replayer) access(e *ggml.Eval, m *moment, a *access, x *row) error {
	at := a.at
	switch a.how {
	case byRows, byExperts:
		var err error
		if at, err = r.rowsOf(e, a); err != nil {
			return err
		}
	case cacheSave:
		return r.saveCells(e, m, a, x)
	case cacheLoad:
		return r.loadCells(m, a, x)
	}
	for _, p := range at {
		if err := r.rows.add(m, x, p); err != nil {
			return err
		}
	}
	return nil
}

// list returns the values that a ref names, nil if they were not read.
func (v valueRef) list(e *ggml.Eval) []int64 {
	if v.chosen {
		return e.Chosen[v.i]
	}
	return e.Index[v.i]
}

// rowsOf are the distinct rows that the values name, those that touch joined.
func (r *replayer) rowsOf(e *ggml.Eval, a *access) ([]pieces, error) {
	values := a.values.list(e)
	if values == nil {
		r.res.UpperBound++
		return a.row.whole, nil
	}
	offs := make([]uint64, 0, len(values))
	for i, v := range values {
		if v < 0 {
			continue
		}
		if uint64(v) >= a.row.n {
			return nil, run.Errorf(run.Corrupt, "%s names row %d of %d", a.op, v, a.row.n)
		}
		offs = append(offs, a.row.off+uint64(v)*a.row.pitch+uint64(i/a.row.per)*a.row.outer)
	}
	slices.Sort(offs)
	at := r.pieces[:0]
	for i, off := range offs {
		if i > 0 && off == offs[i-1] {
			continue
		}
		if n := len(at); n > 0 && at[n-1].off+at[n-1].piece == off {
			at[n-1].piece += a.row.piece
			continue
		}
		at = append(at, pieces{off, a.row.piece, 1, 0})
	}
	r.pieces = at
	return at, nil
}

// saveCells expands a store into a KV cache, and takes the cells when the first
// layer of a group does.
func (r *replayer) saveCells(e *ggml.Eval, m *moment, a *access, x *row) error {
	k := a.cells.cache
	values := a.values.list(e)
	if values == nil {
		r.res.UnknownCells++
		return nil
	}
	cells := k.written(values)
	if cells == nil {
		return run.Errorf(run.Corrupt, "%s names cells beyond the %d of a KV cache", a.op, k.cells*k.streams)
	}
	if k.wrote != r.evals {
		k.wrote = r.evals
		r.take(k, cells, x.time)
	}
	n := uint32(r.opt.BlockCells)
	for _, run := range cellRuns(cells, k.cells) {
		// One row a run, cut at blocks so that each lies in one.
		for first := run.First; first < run.End; {
			end := min(run.End, (first/n+1)*n)
			x.block = int64(first / n)
			x.seq = r.seqOf(k, first)
			r.pieces = a.cells.at(r.pieces[:0], first, end)
			for _, p := range r.pieces {
				if err := r.rows.add(m, x, p); err != nil {
					return err
				}
			}
			first = end
		}
	}
	return nil
}

// seqOf is the sequence that a cell belongs to as it is written: a stream holds
// one sequence; without streams there is one sequence at a time.
func (r *replayer) seqOf(k *cache, cell uint32) int32 {
	if k.stream > 0 {
		return int32(cell / k.cells)
	}
	return int32(r.step.Seq)
}

// take accounts for the cells that an evaluation writes, in order of its tokens.
func (r *replayer) take(k *cache, cells []uint32, t uint64) {
	next := map[int32]int32{}
	for _, c := range cells {
		seq := r.seqOf(k, c)
		pos, ok := next[seq]
		if !ok {
			pos = r.pos[seq]
		}
		next[seq] = pos + 1
		k.blocks.Alloc(c, seq, pos, t)
		k.blocks.Write(c, seq, pos, t)
	}
	k.next = next
}

// loadCells expands a load from a KV cache: the cells in use by sequence, then the
// padding with no sequence.
func (r *replayer) loadCells(m *moment, a *access, x *row) error {
	v := a.cells
	r.runs = v.runs(r.runs[:0])
	if v.read != r.evals {
		v.read = r.evals
		ranges := make([]region.CellRange, 0, len(r.runs))
		for _, c := range r.runs {
			if c.Seq >= 0 {
				ranges = append(ranges, c.CellRange)
			}
		}
		v.blocks.Read(x.time, ranges...)
	}
	for _, c := range r.runs {
		x.seq = c.Seq
		r.pieces = v.at(r.pieces[:0], c.First, c.End)
		for _, p := range r.pieces {
			if err := r.rows.add(m, x, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// Operation marks that say, after each evaluation (Index = step), how many cells of
// the KV cache are in use and how many bytes they hold over all layers.
const (
	MarkCells = "kv_cells"
	MarkBytes = "kv_bytes"
	// MarkTokens says how many tokens the decode call had that the evaluation
	// belongs to; once a call.
	MarkTokens = "tokens"
	// MarkClear says that all cells were given back.
	MarkClear = "kv_clear"
)

// cacheMarks says how full the KV cache is after an evaluation.
func (r *replayer) cacheMarks(t uint64) error {
	cells, bytes := 0, uint64(0)
	for _, g := range r.groups {
		n := g.blocks.InUse()
		cells = max(cells, n)
		for _, k := range g.layers {
			bytes += uint64(n) * k.cellBytes
		}
		if g.wrote == r.evals {
			for seq, pos := range g.next {
				r.pos[seq] = pos
			}
		}
	}
	m := observe.Mark{Kind: observe.MarkOperation, Name: MarkCells, Index: r.evals, Seq: -1, Start: t, End: t, Value: uint64(cells)}
	if err := r.sink.Mark(m); err != nil {
		return err
	}
	m.Name, m.Value = MarkBytes, bytes
	if err := r.sink.Mark(m); err != nil {
		return err
	}
	if r.told == r.res.Steps || !r.inStep {
		return nil // a decode call may start several graphs
	}
	r.told = r.res.Steps
	m.Name, m.Value = MarkTokens, uint64(r.step.Tokens)
	return r.sink.Mark(m)
}

// mappings tells the engine's mappings as objects: what is no tensor lies in one of
// them. They come last: their number differs from run to run, the numbers of tensors
// must not.
func (r *replayer) mappings() error {
	if r.maps == nil {
		return nil
	}
	for i := range r.maps.All {
		p := &r.maps.All[i]
		_, err := r.objects.add(observe.Object{
			Name: p.Name(), Class: observe.ClassRuntime, Kind: "mapping", Space: observe.SpaceHost, Base: p.Start, Size: p.End - p.Start,
			Layer: observe.NoLayer, Born: r.res.Start, Buffer: p.Perms,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

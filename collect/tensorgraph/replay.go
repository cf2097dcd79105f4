package tensorgraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Options say how to expand a graph log.
type Options struct {
	RunID      string
	BlockCells int // cells a KV block, 16 if 0
}

// Result is what a graph log says beside its stream.
type Result struct {
	Engine    trace.Engine
	End       *trace.End // nil: the child died or was killed
	Torn      error      // why reading stopped early, nil if it did not
	Outputs   []trace.Output
	Trials    []trace.Trial
	Blocks    []trace.KVBlockRow
	Caches    []CacheBlocks
	Steps     int    // calls of decode
	Evals     int    // graph evaluations
	Templates int    // distinct graphs
	Decoded   uint64 // decode steps
	LogBytes  int64
	// DecodeLogBytes are the bytes of the log that the decode steps took,
	// templates included.
	DecodeLogBytes int64
	UpperBound     uint64 // accesses whose rows were not read, so all were counted
	UnknownCells   uint64 // cache stores whose cells were not read: their bytes and lives are missing
	OutOfOrder     uint64 // evaluations outside any step
	Rows           uint64
	Start, Stop    uint64 // first and last time seen
}

// CacheBlocks are the lives of the blocks of the KV caches whose cells are taken
// and freed together: those of all layers, or of those with a sliding window.
type CacheBlocks struct {
	Layers    []int32 // in order, each once
	CellBytes uint64  // bytes a cell, over all layers, K and V
	Blocks    []region.KVBlock
}

// replayer expands a graph log.
type replayer struct {
	opt      Options
	sink     observe.Sink
	objects  *registry
	rows     *rows
	tables   ggml.Tables
	programs map[uint32]*program
	caches   map[uint32]*cache // by object
	groups   []*group
	pos      map[int32]int32 // next position by sequence
	maps     *region.Maps
	res      *Result
	step     trace.Step
	inStep   bool
	evals    uint64
	phase    observe.Mark // under way
	loadEnd  uint64
	loaded   bool
	stored   int // objects whose load has been told
	told     int // decode calls whose tokens have been told
	model    trace.Model
	runs     []region.CellRun
	pieces   []pieces
	teardown uint64
	busy     uint64 // end of what was last done for a request
}

// Replay expands the graph log at path into the sink. A log with a torn end is
// expanded as far as it goes; the result says so.
func Replay(path string, opt Options, sink observe.Sink) (*Result, error) {
	if opt.BlockCells <= 0 {
		opt.BlockCells = 16
	}
	log, err := trace.OpenGraphLog(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r := &replayer{
		opt: opt, sink: sink, objects: newRegistry(sink), rows: newRows(sink, opt.RunID), programs: map[uint32]*program{},
		caches: map[uint32]*cache{}, pos: map[int32]int32{}, res: &Result{},
	}
	last := log.Offset()
	for {
		kind, payload, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := r.record(kind, payload); err != nil {
			return nil, run.Errorf(run.ClassOf(err), "%s: record before byte %d: %w", path, log.Offset(), err)
		}
		if r.inStep && !r.step.Prefill {
			r.res.DecodeLogBytes += log.Offset() - last
		}
		last = log.Offset()
	}
	r.res.Torn, r.res.LogBytes = log.Torn(), log.Offset()
	if err := r.end(); err != nil {
		return nil, err
	}
	return r.res, nil
}

func (r *replayer) record(kind uint8, p []byte) error {
	switch kind {
	case trace.KindTables:
		return unmarshal(p, &r.tables)
	case trace.KindModel:
		return unmarshal(p, &r.model)
	case trace.KindIdle:
		return nil
	case trace.KindEngine:
		return unmarshal(p, &r.res.Engine)
	case trace.KindBuffer:
		var b ggml.Buffer
		err := unmarshal(p, &b)
		r.objects.buffers[b.ID] = b
		return err
	case trace.KindMaps:
		maps, err := region.ReadMaps(bytes.NewReader(p))
		if err != nil {
			return err
		}
		r.maps = maps
		return nil
	case trace.KindTemplate:
		return r.template(p)
	case trace.KindEval:
		prog := r.programs[ggml.EvalTemplate(p)]
		if prog == nil {
			return run.Errorf(run.Corrupt, "evaluation of graph template %d, which was never told", ggml.EvalTemplate(p))
		}
		e, err := ggml.DecodeEvalUpTo(p, prog.t.Values())
		if err != nil {
			return run.Errorf(run.Corrupt, "%w", err)
		}
		return r.eval(prog, e)
	case trace.KindStep:
		s, err := trace.DecodeStep(p)
		if err != nil {
			return run.Errorf(run.Corrupt, "%w", err)
		}
		return r.beginStep(s)
	case trace.KindMark:
		m, err := trace.DecodeMark(p)
		if err != nil {
			return run.Errorf(run.Corrupt, "%w", err)
		}
		return r.mark(m)
	case trace.KindKV:
		var op trace.KVOp
		if err := unmarshal(p, &op); err != nil {
			return err
		}
		return r.kvOp(op)
	case trace.KindOutput:
		var o trace.Output
		err := unmarshal(p, &o)
		r.res.Outputs = append(r.res.Outputs, o)
		return err
	case trace.KindTrial:
		var t trace.Trial
		err := unmarshal(p, &t)
		r.res.Trials = append(r.res.Trials, t)
		return err
	case trace.KindEnd:
		r.res.End = &trace.End{}
		return unmarshal(p, r.res.End)
	}
	return run.Errorf(run.Corrupt, "record of unknown kind %d: written by a newer tierscope?", kind)
}

func unmarshal(p []byte, v any) error {
	if err := json.Unmarshal(p, v); err != nil {
		return run.Errorf(run.Corrupt, "%w", err)
	}
	return nil
}

func (r *replayer) template(p []byte) error {
	t, err := ggml.DecodeTemplate(p)
	if err != nil {
		return run.Errorf(run.Corrupt, "%w", err)
	}
	r.objects.loaded, r.objects.now = r.loadEnd, max(r.loadEnd, r.step.Start)
	prog, err := r.compile(t)
	if err != nil {
		return err
	}
	r.programs[t.ID] = prog
	r.res.Templates++
	return r.loadWeights()
}

// mark passes a mark on. Times of the run's beginning and end are taken from
// the phases.
func (r *replayer) mark(m observe.Mark) error {
	r.seen(m.Start)
	r.seen(m.End)
	switch {
	case m.Kind == observe.MarkPhase && m.Name == observe.PhaseWeightLoad:
		r.loadEnd = m.End
	case m.Kind == observe.MarkPhase && m.Name == observe.PhaseTeardown:
		r.teardown = m.Start
		// Not at m.Start: the calibration in between belongs to no request.
		if err := r.endPhase(r.busy); err != nil {
			return err
		}
	case m.Kind == observe.MarkToken || m.Kind == observe.MarkRequest:
		r.busy = max(r.busy, m.End)
	}
	return r.sink.Mark(m)
}

func (r *replayer) seen(t uint64) {
	if r.res.Start == 0 || t < r.res.Start {
		r.res.Start = t
	}
	r.res.Stop = max(r.res.Stop, t)
}

func (r *replayer) endPhase(at uint64) error {
	m := r.phase
	r.phase = observe.Mark{}
	if m.Name == "" {
		return nil
	}
	m.End = max(at, m.Start)
	return r.sink.Mark(m)
}

func (r *replayer) beginStep(s trace.Step) error {
	name := observe.PhaseDecode
	if s.Prefill {
		name = observe.PhasePrefill
	}
	if r.phase.Name != name {
		if err := r.endPhase(s.Start); err != nil {
			return err
		}
		r.phase = observe.Mark{Kind: observe.MarkPhase, Name: name, Index: uint64(s.Request), Seq: -1, Start: s.Start}
	}
	r.step, r.inStep = s, true
	r.res.Steps++
	if !s.Prefill {
		r.res.Decoded++
	}
	r.seen(s.Start)
	return nil
}

// kvOp frees or moves cells.
func (r *replayer) kvOp(op trace.KVOp) error {
	// What happened before must be told before: the cells' values end here.
	if err := r.rows.flush(); err != nil {
		return err
	}
	before := r.used()
	for _, g := range r.groups {
		switch op.Op {
		case trace.KVClear:
			g.blocks.Clear(op.At)
		case trace.KVRemove:
			g.blocks.FreeSeq(op.Seq, op.P0, op.P1, op.At)
		case trace.KVShift:
			g.blocks.Shift(op.Seq, op.P0, op.P1, op.Delta, op.At)
		default:
			return run.Errorf(run.Corrupt, "KV operation %q is unknown", op.Op)
		}
	}
	switch op.Op {
	case trace.KVClear:
		clear(r.pos)
	case trace.KVRemove:
		if op.Seq < 0 {
			clear(r.pos)
		} else if op.P1 < 0 {
			r.pos[op.Seq] = max(op.P0, 0)
		}
	}
	r.seen(op.At)
	r.inStep = false
	return r.sink.Mark(observe.Mark{Kind: observe.MarkOperation, Name: "kv_" + op.Op, Seq: op.Seq, Start: op.At, End: op.At, Value: uint64(before - r.used())})
}

// used is the number of cells in use, over all groups.
func (r *replayer) used() int {
	n := 0
	for _, g := range r.groups {
		n += g.blocks.InUse()
	}
	return n
}

// end flushes, ends what is still under way and tells the KV blocks.
func (r *replayer) end() error {
	if err := r.endPhase(r.busy); err != nil {
		return err
	}
	if err := r.rows.flush(); err != nil {
		return err
	}
	r.res.Rows = r.rows.next
	if err := r.mappings(); err != nil {
		return err
	}
	died := r.teardown
	if died == 0 {
		died = r.res.Stop
	}
	for _, o := range r.objects.all {
		o.Died = died
		if err := r.sink.Object(o); err != nil {
			return err
		}
	}
	r.res.Blocks = r.kvBlocks()
	return nil
}

// kvBlocks are the lives of the blocks of every layer's K and V.
func (r *replayer) kvBlocks() []trace.KVBlockRow {
	var out []trace.KVBlockRow
	for _, g := range r.groups {
		lives := CacheBlocks{Blocks: g.blocks.Rows()}
		for _, k := range g.layers {
			lives.CellBytes += k.cellBytes
			lives.Layers = append(lives.Layers, r.objects.all[k.object-1].Layer)
		}
		slices.Sort(lives.Layers)
		lives.Layers = slices.Compact(lives.Layers)
		r.res.Caches = append(r.res.Caches, lives)
		for _, b := range lives.Blocks {
			for _, k := range g.layers {
				o := &r.objects.all[k.object-1]
				// Row counts from the base in steps of the pitch; streams lie further apart.
				stream := uint64(b.FirstCell / max(k.cells, 1))
				base := o.Base + stream*(k.stream-uint64(k.cells)*k.pitchOf())
				out = append(out, b.Row(regionID(o), base, k.pitchOf()))
			}
		}
	}
	return out
}

// name of a request in the request_id column.
func requestName(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// clock places a node of an evaluation in time.
type clock struct {
	start, end uint64
	frac       []float64
	times      []ggml.NodeTime
}

// at is the time at which node n begins; n = number of nodes is the end.
func (c *clock) at(n int32) uint64 {
	lo, hi := c.start, c.end
	f0, f1 := 0.0, 1.0
	for _, t := range c.times {
		if int32(t.Node)+1 > n {
			hi, f1 = t.At, c.frac[min(int(t.Node)+1, len(c.frac)-1)]
			break
		}
		lo, f0 = t.At, c.frac[min(int(t.Node)+1, len(c.frac)-1)]
	}
	if f1 <= f0 || hi <= lo {
		return lo
	}
	return lo + uint64(math.Round((c.frac[n]-f0)/(f1-f0)*float64(hi-lo)))
}

package compat

import (
	"context"

	"github.com/tierscope/tierscope/analyze"
	tables "github.com/tierscope/tierscope/analyze/mrm"
	source "github.com/tierscope/tierscope/collect/mrm"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// forFigures are the metrics that metrics.csv, figures and index need.
const forFigures = tables.Retention | tables.WriteOnce | tables.ReadFreq | tables.WorkingSet

// writeTrace writes trace, region map and life cycle in one pass over the
// source, and works out the figures.
func (j *job) writeTrace(ctx context.Context) (*tables.Result, error) {
	r, err := trace.Open(j.src.Trace)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w, err := trace.Create(j.path(source.TraceFile), trace.Options{Columns: observe.ColsCompat})
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	state := tables.New(tables.Options{Metrics: forFigures, Memory: j.Memory})
	defer state.Close()
	l := region.NewLabeller(j.Policy, nil)
	l.Register(j.Ranges)
	var host keepHost
	var phases phases
	labels, err := region.ReadLabelled(r, l, observe.ColsCompat|observe.ColSpace, func(b *observe.Batch) error {
		if ctx.Err() != nil {
			return run.Errorf(run.Interrupted, "export of %s: interrupted; nothing was written", j.Input)
		}
		out := host.rows(b)
		out.Phase = phases.generation(out.Phase, out.Len)
		if err := state.Observe(&out); err != nil {
			return err
		}
		return w.Accesses(&out)
	})
	if err != nil {
		return nil, err
	}
	if len(j.Ranges) > 0 && !labels.Here {
		return nil, run.Errorf(run.Misuse, "%s has labels: ranges are for a trace without; leave them out", j.src.Trace)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	j.res.Files = append(j.res.Files, source.TraceFile)
	j.res.Rows, j.res.Skipped = uint64(w.Rows()), labels.Skipped+host.left
	j.noteTrace(r, labels, host.left)
	if err := j.writeRegions(labels); err != nil {
		return nil, err
	}
	return state.Result()
}

// noteTrace says what the format could not hold.
func (j *job) noteTrace(r *trace.Reader, labels *region.Labels, otherSpaces uint64) {
	note := func(code, severity string, count uint64, text string) {
		j.notes.Add(run.Note{Code: code, Severity: severity, Count: count, Text: text})
	}
	if labels.Here {
		note("labelled_here", run.Info, labels.Unknown, "the trace had no labels; mrm-trace's rules gave them, and so many rows stayed unknown")
	}
	if labels.Skipped > 0 {
		note("unknown_skipped", run.Warning, labels.Skipped, "rows that no rule knows were left out")
	}
	if otherSpaces > 0 {
		note("other_spaces", run.Warning, otherSpaces, "rows of device memory were left out: mrm-trace has one address space")
	}
	if r.Has()&observe.ColSize != 0 {
		note("points", run.Info, 0, "every access is a point at its first byte: mrm-trace has no sizes")
	}
	if n := r.Skipped(); n > 0 {
		note("out_of_range", run.Warning, n, "numbers of the source do not fit their column and are null now")
	}
}

// writeRegions writes region map and life cycle: the labeller's, else the
// source's, else empty ones.
func (j *job) writeRegions(labels *region.Labels) error {
	regions, blocks := labels.Map, labels.Blocks
	if !labels.Here && j.src.Has(source.RegionFile) {
		err := trace.ReadRegionMap(j.src.Path(source.RegionFile), func(r *trace.RegionRow) error { regions = append(regions, *r); return nil })
		if err != nil {
			return err
		}
	}
	if !labels.Here && j.src.Has(source.LifecycleFile) {
		err := trace.ReadKVBlocks(j.src.Path(source.LifecycleFile), func(r *trace.KVBlockRow) error { blocks = append(blocks, *r); return nil })
		if err != nil {
			return err
		}
	}
	if !labels.Here && !j.src.Has(source.RegionFile) {
		j.notes.Add(run.Note{Code: "no_region_map", Severity: run.Info, Text: "the source has no region map; the one written is empty"})
	}
	j.res.Regions, j.res.KVBlocks = len(regions), len(blocks)
	if err := writeTable(j, source.RegionFile, trace.CreateRegionMap, regions); err != nil {
		return err
	}
	return writeTable(j, source.LifecycleFile, trace.CreateKVBlocks, blocks)
}

func writeTable[T any](j *job, name string, create func(string, trace.Options) (*trace.Table[T], error), rows []T) error {
	t, err := create(j.path(name), trace.Options{})
	if err != nil {
		return err
	}
	defer t.Abort()
	if err := t.Write(rows...); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	j.res.Files = append(j.res.Files, name)
	return nil
}

// draw writes the figures and returns what the index row needs of the tables.
func (j *job) draw(r *tables.Result) (index run.IndexFigures, err error) {
	pictures, err := Pictures(r)
	if err != nil {
		return index, err
	}
	for _, p := range pictures {
		if p.PNG == nil {
			j.notes.Add(run.Note{Code: "not_drawn", Severity: run.Info, Text: p.Name + " was not drawn: there is nothing in " + p.Table})
			continue
		}
		if err := j.file(p.Name, p.PNG); err != nil {
			return index, err
		}
	}
	named := map[string]*analyze.Table{}
	all := r.Tables()
	for i := range all {
		named[all[i].Name] = &all[i]
	}
	sum := func(table, column string) (total float64, n int) {
		t := named[table]
		for _, row := range t.Rows {
			if v, ok := number(row[t.Index(column)]); ok {
				total, n = total+v, n+1
			}
		}
		return total, n
	}
	if v, n := sum("retention_summary", "retention_p99_s"); n > 0 {
		index.RetentionP99 = run.Known(v / float64(n))
	}
	if v, n := sum("write_once", "write_once_ratio"); n > 0 {
		index.WriteOnceMean = run.Known(v / float64(n))
	}
	if v, n := sum("working_set_summary", "total_pages"); n > 0 {
		index.WorkingSetPages = run.Known(int64(v))
	}
	return index, nil
}

// phases turns prefill and decode into generation, by code of the dictionary.
type phases struct {
	from *observe.Dict
	to   *observe.Dict
	code []uint32
	buf  []uint32
}

func (p *phases) generation(c observe.Strings, n int) observe.Strings {
	if c.Form == observe.Absent {
		return c
	}
	if p.from != c.Dict {
		p.from, p.to, p.code = c.Dict, observe.NewDict(), p.code[:0]
	}
	for len(p.code) < c.Dict.Len() {
		s := c.Dict.String(uint32(len(p.code)))
		if s == observe.PhasePrefill || s == observe.PhaseDecode {
			s = observe.PhaseGeneration
		}
		p.code = append(p.code, p.to.Code(s))
	}
	p.buf = p.buf[:0]
	for i := range n {
		v := uint32(0)
		if !c.Null(i) {
			v = p.code[c.At(i)]
		}
		p.buf = append(p.buf, v)
	}
	out := observe.Strings{Column: observe.SliceOf(p.buf), Dict: p.to}
	out.Nulls = c.Nulls
	return out
}

// keepHost leaves out rows of other address spaces than the host's.
type keepHost struct{ left uint64 }

func (k *keepHost) rows(b *observe.Batch) observe.Batch {
	if b.Space.Form == observe.Absent {
		return *b
	}
	host, known := b.Space.Dict.Lookup(observe.SpaceHost)
	keep := make([]int32, 0, b.Len)
	for i := range b.Len {
		if b.Space.Null(i) || known && b.Space.At(i) == host {
			keep = append(keep, int32(i))
		}
	}
	k.left += uint64(b.Len - len(keep))
	if len(keep) == b.Len {
		return *b
	}
	return b.Keep(keep)
}

package experiment

import (
	"context"
	"slices"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// figures is the sink at the end of the corridor: every analysis of a run, fed
// by one pass.
type figures struct {
	ctx      context.Context
	traffic  *analyze.Traffic
	lifetime *analyze.Lifetime
	growth   *analyze.Growth
	regions  *analyze.Regions
	compat   *mrm.State
	objects  []observe.Object // by id - 1
	phases   []run.Phase
	unknown  uint64 // bytes of traffic in no known region
	bytes    uint64
	lean     *lean // nil: memory does not matter
}

// analysisMemory bounds what the compatible tables hold before they spill: the
// observer's memory is part of what is reported.
const analysisMemory = 4 << 20

func newFigures(ctx context.Context, temp string) *figures {
	return &figures{
		ctx: ctx, traffic: analyze.NewTraffic(), lifetime: analyze.NewLifetime(), growth: analyze.NewGrowth(), regions: analyze.NewRegions(),
		compat: mrm.New(mrm.Options{Memory: analysisMemory, TempDir: temp, Check: func() error { return analyze.Interrupted(ctx) }}),
	}
}

// Object implements [observe.Sink]. An object told again says when it died.
func (f *figures) Object(o observe.Object) error {
	switch n := uint32(len(f.objects)); {
	case o.ID == 0 || o.ID > n+1:
		return run.Errorf(run.Corrupt, "object %d comes where %d is due: objects are numbered from 1 without gaps", o.ID, n+1)
	case o.ID <= n:
		f.objects[o.ID-1] = o
		return nil
	}
	f.objects = append(f.objects, o)
	f.lifetime.Object(o)
	return nil
}

// Mark implements [observe.Sink].
func (f *figures) Mark(m observe.Mark) error {
	switch {
	case m.Kind == observe.MarkPhase:
		f.phases = append(f.phases, run.Phase{Name: m.Name, Start: m.Start, End: m.End})
	case m.Name == tensorgraph.MarkCells:
		f.growth.Cells(m.Index, m.Value, m.Start)
	case m.Name == tensorgraph.MarkTokens:
		f.traffic.Tokens(uint32(m.Index), m.Value)
	case m.Name == tensorgraph.MarkBytes:
		f.growth.Bytes(m.Index, m.Value)
	case m.Name == tensorgraph.MarkClear:
		f.lifetime.Free(observe.ClassKVCache)
	}
	return nil
}

// Accesses implements [observe.Sink].
func (f *figures) Accesses(b *observe.Batch) error {
	if err := analyze.Interrupted(f.ctx); err != nil {
		return err
	}
	if f.lean != nil {
		f.lean.look()
	}
	for _, a := range []analyze.Analysis{f.traffic, f.lifetime, f.compat} {
		if err := a.Observe(b); err != nil {
			return err
		}
	}
	f.count(b)
	return f.regions.Observe(b)
}

// points takes accesses without sizes, from which only mrm-trace's figures follow.
func (f *figures) points(b *observe.Batch) error {
	if err := analyze.Interrupted(f.ctx); err != nil {
		return err
	}
	return f.compat.Observe(b)
}

// count adds up how much of the traffic has no known region.
func (f *figures) count(b *observe.Batch) {
	code, ok := b.RegionType.Dict.Lookup(observe.ClassUnknown)
	for i := range b.Len {
		n := b.Size.At(i)
		f.bytes += n
		if ok && b.RegionType.At(i) == code {
			f.unknown += n
		}
	}
}

// tables are the tables of our own figures and mrm-trace's metrics.
func (f *figures) tables(compat *mrm.Result, log *tensorgraph.Result) ([]analyze.Table, error) {
	traffic, err := f.traffic.Tables()
	if err != nil {
		return nil, err
	}
	if log.UpperBound > 0 {
		bound(traffic)
	}
	life, err := f.lifetime.Tables()
	if err != nil {
		return nil, err
	}
	f.nameObjects(traffic)
	out := append(traffic, f.growth.Table(f.traffic))
	out = append(out, life...)
	out = append(out, blockTable(log.Caches, f.traffic.Start()), f.objectTable())
	if compat.HasCSV() {
		t, err := metricsTable(compat.CSV())
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// nameObjects puts the names of objects beside their ids in traffic_by_object.
func (f *figures) nameObjects(tables []analyze.Table) {
	for i := range tables {
		t := &tables[i]
		c := t.Index("object")
		if t.Name != "traffic_by_object" || c < 0 {
			continue
		}
		t.Columns = slices.Insert(t.Columns, c+1, analyze.TableColumn{Name: "name", Exactness: analyze.Exact})
		for k, row := range t.Rows {
			var name any
			if id, ok := row[c].(uint64); ok && id > 0 && id <= uint64(len(f.objects)) {
				name = f.objects[id-1].Name
			}
			t.Rows[k] = slices.Insert(row, c+1, name)
		}
	}
}

// shownObjects is how many objects the table of the busiest holds.
const shownObjects = 40

func (f *figures) objectTable() analyze.Table {
	t := analyze.Table{Name: "objects"}
	for _, c := range [][2]string{{"name", ""}, {"region_type", ""}, {"layer", ""}, {"size", "B"}, {"dtype", ""}, {"buffer", ""}, {"bytes_read", "B"}, {"bytes_written", "B"}} {
		t.Columns = append(t.Columns, analyze.TableColumn{Name: c[0], Unit: c[1], Exactness: analyze.Exact})
	}
	for _, o := range f.busiest(shownObjects) {
		var layer any
		if o.Layer != observe.NoLayer {
			layer = int64(o.Layer)
		}
		read, written, _ := f.traffic.ObjectFlow(o.ID)
		t.Rows = append(t.Rows, []any{o.Name, o.Class, layer, o.Size, o.DType, o.Buffer, read, written})
	}
	return t
}

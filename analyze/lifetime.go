package analyze

import (
	"maps"
	"slices"

	"github.com/tierscope/tierscope/internal/hist"
	"github.com/tierscope/tierscope/observe"
)

// Lifetime measures how long values must be kept: from the write of a byte to its
// last read before it is written again or freed, weighted by bytes. A byte is
// followed by range: each object has two interval maps, last write and last read.
// Loads of KV cells that hold nothing read no value.
//
// Values that are still there when the trace ends are counted with the life
// seen so far, and said apart as open.
type Lifetime struct {
	objects map[uint32]*objectValues
	classes map[string]*lives
	codes   codes
	ord     uint64
	hulls   uint64
}

// lives are the ended values of a class.
type lives struct {
	life  hist.Hist // ns, weighted by bytes
	never uint64    // bytes written and never read
	open  uint64    // bytes of values alive at the end
	total uint64
}

// objectValues are the values that an object's bytes hold.
//
// An object that is written or read by columns (a transposed cache) has a pitch:
// ranges then run over the columns of one row, and each stands for rows times
// its bytes.
type objectValues struct {
	class         string
	size          uint64
	pitch, rows   uint64
	writes, reads spans
}

// NewLifetime returns an empty state.
func NewLifetime() *Lifetime {
	return &Lifetime{objects: map[uint32]*objectValues{}, classes: map[string]*lives{}}
}

// Object tells the size of an object before its first access.
func (l *Lifetime) Object(o observe.Object) {
	if l.objects[o.ID] == nil {
		l.objects[o.ID] = &objectValues{class: o.Class, size: o.Size}
	}
}

// Columns implements [Analysis].
func (l *Lifetime) Columns() observe.Cols {
	return observe.ColTime | observe.ColOpType | observe.ColObject | observe.ColOffset | observe.ColSize | observe.ColCount | observe.ColStride | observe.ColSeqID
}

// Observe implements [Analysis].
func (l *Lifetime) Observe(b *observe.Batch) error {
	l.codes.learn(b)
	for i := range b.Len {
		o := l.objects[b.Object.At(i)]
		if o == nil {
			continue
		}
		op := l.codes.opOf(b, i)
		if op == codeOther || op == codeLoad && o.class == observe.ClassKVCache && b.SeqID.Null(i) {
			continue
		}
		l.ord++
		off, size, count, stride := b.Offset.At(i), b.Size.At(i), uint64(b.Count.At(i)), b.Stride.At(i)
		l.touch(o, op == codeStore, off, size, count, stride, b.Time.At(i))
	}
	return nil
}

// touch is an access to an object. An object whose first access is by columns
// (count pieces that leave no row out) is followed by columns from then on: it is
// one group of rows, or several behind each other (the streams of a cache), and byte
// c of every row of group g is column g*pitch + c.
func (l *Lifetime) touch(o *objectValues, store bool, off, size, count, stride, at uint64) {
	count = max(count, 1)
	piece, group := size/count, stride*count
	byColumns := count > 1 && group > 0 && o.size%group == 0 && off%group+piece <= stride
	if o.pitch == 0 && byColumns && len(o.writes.s)+len(o.reads.s) == 0 {
		o.pitch, o.rows = stride, count
	}
	switch {
	case o.pitch == 0:
		for k := range count {
			l.event(o, store, off+k*stride, off+k*stride+piece, at)
		}
	case byColumns && stride == o.pitch && count == o.rows:
		c := off/group*stride + off%group
		l.event(o, store, c, c+piece, at)
	default:
		group = o.pitch * o.rows
		first, last := off/group, (off+size+group-1)/group
		if count > 1 || off%group != 0 || size%group != 0 {
			// Part of some rows of an object followed by columns: taken for all
			// columns of its groups, and counted so that the figure can say so.
			l.hulls++
			last = (off + (count-1)*stride + piece + group - 1) / group
		}
		l.event(o, store, first*o.pitch, last*o.pitch, at)
	}
}

func (l *Lifetime) event(o *objectValues, store bool, start, end, at uint64) {
	x := span{start, end, l.ord, at}
	if !store {
		o.reads.assign(x)
		return
	}
	l.close(o, start, end, false)
	o.writes.assign(x)
}

// close ends the values in [start, end) of an object.
func (l *Lifetime) close(o *objectValues, start, end uint64, open bool) {
	c := l.classes[o.class]
	if c == nil {
		c = &lives{}
		l.classes[o.class] = c
	}
	rows := max(o.rows, 1)
	o.writes.each(start, end, func(w span) {
		bytes := (w.end - w.start) * rows
		c.total += bytes
		if open {
			c.open += bytes
		}
		read := uint64(0)
		o.reads.each(w.start, w.end, func(r span) {
			if r.ord < w.ord {
				return
			}
			n := (r.end - r.start) * rows
			read += n
			c.life.Add(r.at-min(w.at, r.at), n)
		})
		c.never += bytes - read
	})
}

// Free ends the values of all objects of a class: their memory was given back.
func (l *Lifetime) Free(class string) {
	for _, o := range l.objects {
		if o.class == class {
			l.close(o, 0, ^uint64(0), false)
			o.writes.s, o.reads.s = nil, nil
		}
	}
}

// Hulls is the number of accesses whose bytes were rounded to whole rows or
// columns of their object.
func (l *Lifetime) Hulls() uint64 { return l.hulls }

// Tables implements [Analysis]: lifetime_by_region and lifetime_distribution.
func (l *Lifetime) Tables() ([]Table, error) {
	for _, id := range slices.Sorted(maps.Keys(l.objects)) {
		// What a graph leaves in a compute buffer is given back with the graph.
		o := l.objects[id]
		l.close(o, 0, ^uint64(0), o.class != observe.ClassActivation)
	}
	sum := Table{Name: "lifetime_by_region", Columns: columns("region_type", "", "bytes_total", "B", "p50_s", "s", "p90_s", "s", "p99_s", "s", "max_s", "s", "never_read_bytes", "B", "open_bytes", "B")}
	for i := 2; i <= 4; i++ {
		sum.Columns[i].Exactness = Sketched
	}
	sum.Columns[5].Exactness = Interpolated
	dist := Table{Name: "lifetime_distribution", Columns: columns("region_type", "", "lower_s", "s", "upper_s", "s", "bytes", "B")}
	dist.Columns[3].Exactness = Interpolated
	for _, name := range slices.Sorted(maps.Keys(l.classes)) {
		c := l.classes[name]
		if c.total == 0 {
			continue
		}
		row := []any{name, c.total, nil, nil, nil, nil, c.never, c.open}
		if c.life.Total() > 0 {
			for i, q := range []float64{0.5, 0.9, 0.99} {
				row[2+i] = seconds(c.life.Quantile(q))
			}
			row[5] = seconds(c.life.Max())
		}
		sum.Rows = append(sum.Rows, row)
		c.life.Each(func(lo, hi, n uint64) {
			dist.Rows = append(dist.Rows, []any{name, seconds(lo), seconds(hi + 1), n})
		})
	}
	return []Table{sum, dist}, nil
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

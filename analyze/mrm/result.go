package mrm

import (
	"math"
	"slices"
	"strings"

	"github.com/tierscope/tierscope/internal/spill"
)

// Result is the finished tables. They are kept by column and made into rows when
// asked for. Safe for concurrent reading.
type Result struct {
	want    Metrics
	regions []region
	ids     []uint32
	types   []typeResult // by name
	names   []string     // by number of a type
	order   []uint32     // regions by id
	median  []float64    // by region
	gap     struct{ store, load bool }
	notes   notes
	rows    uint64
}

// typeResult is what is said of a region type.
type typeResult struct {
	name string

	regions                  uint64 // with retention
	p50, p90, p99, retention float64
	sets, pages, maxPages    uint64
	writeOnce, readsPerWrite kahan
	stride, medianStride     kahan
	samePage                 kahan

	intervals           uint64
	iai50, iai90, iai99 int64
	iaiMean             float64
	suitability         string
	lifetimes           []float64
}

// Result works the tables out. The state is not to be used afterwards but for
// Close. Without regions, or rows at all, tables are empty.
func (s *State) Result() (*Result, error) {
	r := &Result{want: s.want, ids: s.labels.ids, notes: s.notes, rows: s.rows}
	for i := range s.labels.types.Len() {
		r.names = append(r.names, s.labels.types.String(uint32(i)))
	}
	if s.want&Locality != 0 {
		if err := s.reorder(); err != nil {
			return nil, err
		}
		var err error
		if r.median, err = s.medians(); err != nil {
			return nil, err
		}
	}
	types := make([]typeResult, len(r.names))
	for i := range types {
		types[i].name = r.names[i]
	}
	if s.want&(WriteOnce|WorkingSet|InterAccess) != 0 {
		d := s.newDigest()
		for i := range s.logs {
			if err := d.partition(&s.logs[i], 1); err != nil {
				return nil, err
			}
		}
		for i := range types {
			if err := types[i].intervalsOf(&d.types[i]); err != nil {
				return nil, err
			}
		}
	}
	r.regions = s.regions
	r.order = make([]uint32, len(r.ids))
	for i := range r.order {
		r.order[i] = uint32(i)
	}
	slices.SortFunc(r.order, func(a, b uint32) int { return int(int64(r.ids[a]) - int64(r.ids[b])) })
	r.perType(types)
	slices.SortFunc(types, func(a, b typeResult) int { return strings.Compare(a.name, b.name) })
	r.types = types
	return r, nil
}

// perType sums regions up by type.
func (r *Result) perType(types []typeResult) {
	for i := range r.regions {
		g := &r.regions[i]
		r.gap.store = r.gap.store || g.stores == g.untimedStores
		r.gap.load = r.gap.load || g.loads == g.untimedLoads
	}
	for _, i := range r.order {
		g := &r.regions[i]
		if g.minType >= 0 && r.want&Locality != 0 {
			t := &types[g.minType]
			stride, median, same := r.locality(i)
			t.stride.add(stride)
			t.medianStride.add(median)
			t.samePage.add(same)
		}
		if g.typ < 0 {
			continue
		}
		t := &types[g.typ]
		if _, _, ns, ok := r.retention(g); ok {
			t.regions++
			t.lifetimes = append(t.lifetimes, float64(ns)/1e9)
		}
		t.sets++
		t.pages += g.pages
		t.maxPages = max(t.maxPages, g.pages)
		if g.written > 0 {
			t.writeOnce.add(float64(g.once) / float64(g.written))
		}
		if g.acted() {
			_, ratio := g.reads()
			t.readsPerWrite.add(ratio)
		}
	}
	for i := range types {
		t := &types[i]
		if t.regions == 0 {
			continue
		}
		t.retention = pairwise(t.lifetimes) / float64(len(t.lifetimes))
		slices.Sort(t.lifetimes)
		t.p50, t.p90, t.p99 = quantile(t.lifetimes, 0.5), quantile(t.lifetimes, 0.9), quantile(t.lifetimes, 0.99)
		t.lifetimes = nil
		t.suitability = Suitability(t.onceMean(), t.p50, t.p99)
	}
}

// Suitability is mrm-trace's verdict on a region type by its mean write-once
// ratio and the 50th and 99th percentile of retention, in seconds.
func Suitability(writeOnce, p50, p99 float64) string {
	switch {
	case writeOnce >= 0.8 && p99 >= 10:
		return "high_mrm"
	case writeOnce >= 0.5 && p50 >= 1:
		return "medium_mrm"
	}
	return "low_mrm"
}

// onceMean is the mean write-once ratio; 0 if no region has stores.
func (t *typeResult) onceMean() float64 {
	if t.writeOnce.n == 0 {
		return 0
	}
	return t.writeOnce.mean()
}

// retention returns first write, last read and their distance, in ns; false if
// no row of the region has a time. If any region lacks a store (a load), first
// writes (last reads) are rounded to doubles, as mrm-trace does.
func (r *Result) retention(g *region) (first, last, ns int64, ok bool) {
	if !g.timed {
		return 0, 0, 0, false
	}
	f := g.firstStore
	if g.stores == g.untimedStores {
		f = g.minTime
	}
	l, ff := g.lastLoad, float64(f)
	if g.loads == g.untimedLoads {
		l = f
	}
	lf := float64(l)
	if !r.gap.store && !r.gap.load {
		return int64(f), int64(l), max(0, int64(l)-int64(f)), true
	}
	first, last = int64(f), int64(l)
	if r.gap.store {
		first = truncate(ff)
	}
	if r.gap.load {
		last = truncate(lf)
	}
	return first, last, truncate(max(0, lf-ff)), true
}

// truncate is the conversion of a double as processors do it.
func truncate(f float64) int64 {
	if f >= 1<<63 {
		return math.MinInt64
	}
	return int64(f)
}

// locality returns mean and median distance in bytes and the fraction of pairs
// on one page.
func (r *Result) locality(i uint32) (mean, median, same float64) {
	g := &r.regions[i]
	if g.n < 2 {
		return 0, 0, 0
	}
	return g.meanStride(), r.median[i], float64(g.same) / float64(g.n-1)
}

// acted reports whether a region has rows with an operation.
func (g *region) acted() bool { return g.loads+g.stores+g.others > 0 }

// reads returns the fraction of reads and the reads for each write.
func (g *region) reads() (fraction, perWrite float64) {
	if n := g.loads + g.stores; n > 0 {
		fraction = float64(g.loads) / float64(n)
	}
	if g.stores > 0 {
		perWrite = float64(g.loads) / float64(g.stores)
	}
	return fraction, perWrite
}

// intervalsOf fills in the intervals of a type.
func (t *typeResult) intervalsOf(v *intervals) error {
	n := v.log.Len()
	if n == 0 {
		return nil
	}
	t.intervals = n
	t.iaiMean = (float64(v.sumHi)*(1<<64) + float64(v.sumLo)) / float64(n)
	qs := []float64{0.5, 0.9, 0.99}
	var ranks []uint64
	var fracs []float64
	for _, q := range qs {
		lo, hi, frac := rankOf(n, q)
		ranks = append(ranks, lo, hi)
		fracs = append(fracs, frac)
	}
	vals, err := spill.Select(&v.log, ranks)
	if err != nil {
		return err
	}
	v.log.Free()
	for i, out := range []*int64{&t.iai50, &t.iai90, &t.iai99} {
		a, b := vals[2*i], vals[2*i+1]
		*out = truncate(between(float64(a), float64(b), float64(b-a), fracs[i]))
	}
	return nil
}

package mrm

import (
	"github.com/tierscope/tierscope/analyze"
)

// table says how a table comes out of a result: a row for each region or for
// each type, or none.
type table struct {
	name    string
	needs   Metrics
	columns []analyze.TableColumn
	region  func(r *Result, i uint32, row []any) []any
	typ     func(t *typeResult, row []any) []any
}

func columns(names ...string) []analyze.TableColumn {
	out := make([]analyze.TableColumn, len(names))
	for i, n := range names {
		out[i] = analyze.TableColumn{Name: n, Unit: unitOf(n), Exactness: analyze.Exact}
	}
	return out
}

// tables are the ten, in mrm-trace's order.
var tables = []table{
	{
		name: "retention_per_region", needs: Retention,
		columns: columns("region_id", "region_type", "first_write_ns", "last_read_ns", "retention_ns", "retention_s"),
		region: func(r *Result, i uint32, row []any) []any {
			first, last, ns, ok := r.retention(&r.regions[i])
			if !ok {
				return append(row, r.ids[i], r.typeOf(r.regions[i].typ), nil, nil, nil, nil)
			}
			return append(row, r.ids[i], r.typeOf(r.regions[i].typ), first, last, ns, float64(ns)/1e9)
		},
	},
	{
		name: "retention_summary", needs: Retention,
		columns: columns("region_type", "n_regions", "retention_p50_s", "retention_p90_s", "retention_p99_s", "retention_mean_s"),
		typ: func(t *typeResult, row []any) []any {
			if t.regions == 0 {
				return nil
			}
			return append(row, t.name, t.regions, t.p50, t.p90, t.p99, t.retention)
		},
	},
	{
		name: "write_once", needs: WriteOnce,
		columns: columns("region_id", "region_type", "n_written_addresses", "n_write_once_addresses", "write_once_ratio"),
		region: func(r *Result, i uint32, row []any) []any {
			g := &r.regions[i]
			if g.written == 0 {
				return nil
			}
			return append(row, r.ids[i], r.typeOf(g.typ), g.written, g.once, float64(g.once)/float64(g.written))
		},
	},
	{
		name: "read_freq", needs: ReadFreq,
		columns: columns("region_id", "region_type", "total_reads", "total_writes", "total_accesses", "read_fraction", "reads_per_write"),
		region: func(r *Result, i uint32, row []any) []any {
			g := &r.regions[i]
			if !g.acted() {
				return nil
			}
			fraction, perWrite := g.reads()
			return append(row, r.ids[i], r.typeOf(g.typ), g.loads, g.stores, g.loads+g.stores, fraction, perWrite)
		},
	},
	{
		name: "working_set_per_region", needs: WorkingSet,
		columns: columns("region_id", "unique_pages", "region_type", "working_set_bytes"),
		region: func(r *Result, i uint32, row []any) []any {
			g := &r.regions[i]
			return append(row, r.ids[i], g.pages, r.typeOf(g.typ), g.pages*pageBytes)
		},
	},
	{
		name: "working_set_summary", needs: WorkingSet,
		columns: columns("region_type", "n_regions", "total_pages", "total_bytes", "mean_pages_per_region", "max_pages_per_region"),
		typ: func(t *typeResult, row []any) []any {
			if t.sets == 0 {
				return nil
			}
			return append(row, t.name, t.sets, t.pages, t.pages*pageBytes, float64(t.pages)/float64(t.sets), t.maxPages)
		},
	},
	{
		name: "locality_per_region", needs: Locality,
		columns: columns("region_id", "region_type", "n_accesses", "mean_stride_bytes", "median_stride_bytes", "same_page_fraction"),
		region: func(r *Result, i uint32, row []any) []any {
			g := &r.regions[i]
			mean, median, same := r.locality(i)
			return append(row, r.ids[i], r.typeOf(g.minType), g.n, mean, median, same)
		},
	},
	{
		name: "locality_summary", needs: Locality,
		columns: columns("region_type", "mean_stride_bytes", "median_stride_bytes", "same_page_fraction"),
		typ: func(t *typeResult, row []any) []any {
			if t.stride.n == 0 {
				return nil
			}
			return append(row, t.name, t.stride.mean(), t.medianStride.mean(), t.samePage.mean())
		},
	},
	{
		name: "iai", needs: InterAccess,
		columns: columns("region_type", "n_intervals", "iai_p50_ns", "iai_p90_ns", "iai_p99_ns", "iai_mean_ns"),
		typ: func(t *typeResult, row []any) []any {
			if t.intervals == 0 {
				return nil
			}
			return append(row, t.name, t.intervals, t.iai50, t.iai90, t.iai99, t.iaiMean)
		},
	},
	{
		name: "suitability", needs: forSuitability,
		columns: columns("region_type", "write_once_ratio_mean", "retention_p99_s", "retention_p50_s", "suitability"),
		typ: func(t *typeResult, row []any) []any {
			if t.regions == 0 {
				return nil
			}
			return append(row, t.name, t.onceMean(), t.p99, t.p50, t.suitability)
		},
	},
}

const pageBytes = 4096

// unitOf returns the unit that a column's name ends in.
func unitOf(name string) string {
	switch {
	case suffix(name, "_ns"):
		return "ns"
	case suffix(name, "_s"):
		return "s"
	case suffix(name, "_bytes"):
		return "B"
	case suffix(name, "_pages"):
		return "pages"
	}
	return ""
}

func suffix(s, end string) bool { return len(s) > len(end) && s[len(s)-len(end):] == end }

func (r *Result) typeOf(t int32) any {
	if t < 0 {
		return nil
	}
	return r.names[t]
}

// each calls f with each row of a table; the row is f's until it returns.
func (r *Result) each(t *table, f func(row []any) error) error {
	buf := make([]any, 0, len(t.columns))
	switch {
	case t.region != nil:
		for _, i := range r.order {
			if row := t.region(r, i, buf); row != nil {
				if err := f(row); err != nil {
					return err
				}
			}
		}
	case t.typ != nil:
		for i := range r.types {
			if row := t.typ(&r.types[i], buf); row != nil {
				if err := f(row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Tables returns the tables of the metrics that were asked for, in mrm-trace's
// order. It makes a row for each region; [Result.WriteJSON] and
// [Result.WriteText] do not.
func (r *Result) Tables() []analyze.Table {
	var out []analyze.Table
	for i := range tables {
		if t := &tables[i]; r.want&t.needs == t.needs {
			a, _ := r.head(t, -1)
			out = append(out, a)
		}
	}
	return out
}

// head returns the first limit rows of a table (-1: all) and how many there are
// behind.
func (r *Result) head(t *table, limit int) (a analyze.Table, left int) {
	a = analyze.Table{Name: t.name, Columns: t.columns}
	// Only f fails, and this one does not.
	_ = r.each(t, func(row []any) error {
		if limit >= 0 && len(a.Rows) == limit {
			left++
			return nil
		}
		for k, v := range row {
			if id, ok := v.(uint32); ok {
				row[k] = uint64(id)
			}
		}
		a.Rows = append(a.Rows, append([]any(nil), row...))
		return nil
	})
	return a, left
}

// Tables implements [analyze.Analysis].
func (s *State) Tables() ([]analyze.Table, error) {
	r, err := s.Result()
	if err != nil {
		return nil, err
	}
	return r.Tables(), nil
}

var _ analyze.Following[*State] = (*State)(nil)

package report

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/observe"
)

// Names of the figures; those of their tables, but for lifetimes, which is drawn
// from lifetime_distribution.
const (
	figTraffic  = "traffic_by_token"
	figKV       = "kv_growth"
	figLifetime = "lifetimes"
)

// drawLimit is the number of points above which a figure is thinned out.
const drawLimit = 4000

// regionOrder is the order of regions in legends and stacks.
var regionOrder = []string{observe.ClassWeight, observe.ClassKVCache, observe.ClassActivation,
	observe.ClassRuntime, observe.ClassUnknown}

// emptyError says that a figure has nothing to draw, and why.
type emptyError struct{ figure, why string }

func (e *emptyError) Error() string { return fmt.Sprintf("figure %s has no data: %s", e.figure, e.why) }

// columns reads the table of a figure by column name.
type columns struct {
	figure string
	t      *analyze.Table
}

// open checks that the figure's table is there and has rows and columns.
func open(d *Data, figure, table string, need ...string) (columns, error) {
	t := d.Table(table)
	c := columns{figure, t}
	if why := d.Withheld[table]; t == nil && why != "" {
		return c, c.empty("%s", why)
	}
	if t == nil {
		return c, c.empty("there is no table %s", table)
	}
	for _, n := range need {
		if t.Index(n) < 0 {
			return c, c.empty("table %s has no column %s", table, n)
		}
	}
	if len(t.Rows) == 0 {
		return c, c.empty("table %s has no rows", table)
	}
	return c, nil
}

func (c columns) empty(format string, args ...any) error {
	return &emptyError{c.figure, fmt.Sprintf(format, args...)}
}

// numbers returns a column as floats, NaN where there is no number or no column.
func (c columns) numbers(name string) []float64 {
	out := make([]float64, len(c.t.Rows))
	col := c.t.Index(name)
	for i, row := range c.t.Rows {
		out[i] = math.NaN()
		if col >= 0 {
			if x, ok := number(row[col]); ok && !math.IsInf(x, 0) {
				out[i] = x
			}
		}
	}
	return out
}

func (c columns) strings(name string) []string {
	out := make([]string, len(c.t.Rows))
	col := c.t.Index(name)
	for i, row := range c.t.Rows {
		if col >= 0 {
			out[i], _ = row[col].(string)
		}
	}
	return out
}

// traffic is bytes by step and region, thinned out.
type traffic struct {
	Steps   []float64   // first step of each point
	Last    []float64   // last step of each point
	Token   []float64   // tokens generated before the first step
	Phase   []string    // by point
	Regions []string    // in stacking order
	Read    [][]float64 // by region, by point: bytes a step
	Written [][]float64
	Total   int // steps in the table
	Widest  int // steps that a point stands for at most
}

// trafficSeries reads traffic_by_token. A region without a row in a step moved
// nothing in it.
func trafficSeries(d *Data, limit int) (*traffic, error) {
	c, err := open(d, figTraffic, "traffic_by_token", "step", "region_type", "bytes_read", "bytes_written")
	if err != nil {
		return nil, err
	}
	step, region, phase := c.numbers("step"), c.strings("region_type"), c.strings("phase")
	read, written := c.numbers("bytes_read"), c.numbers("bytes_written")
	at := map[float64]int{}
	var steps []float64
	for _, s := range step {
		if _, ok := at[s]; !ok && !math.IsNaN(s) {
			at[s] = 0
			steps = append(steps, s)
		}
	}
	sort.Float64s(steps)
	for i, s := range steps {
		at[s] = i
	}
	t := &traffic{Regions: orderRegions(region), Total: len(steps)}
	zeros := func() [][]float64 {
		m := make([][]float64, len(t.Regions))
		for i := range m {
			m[i] = make([]float64, len(steps))
		}
		return m
	}
	r, w, found := zeros(), zeros(), false
	ph, token, tokens := make([]string, len(steps)), make([]float64, len(steps)), c.numbers("token")
	code := map[string]int{}
	for i, n := range t.Regions {
		code[n] = i
	}
	for i, s := range step {
		if math.IsNaN(s) || math.IsNaN(read[i]) && math.IsNaN(written[i]) {
			continue
		}
		k, g := at[s], code[region[i]]
		ph[k], token[k], found = phase[i], tokens[i], true
		r[g][k] += zeroNaN(read[i])
		w[g][k] += zeroNaN(written[i])
	}
	if !found {
		return nil, c.empty("no row of table traffic_by_token has a step and a number of bytes")
	}
	b := thin(ph, len(steps), limit)
	t.Steps, t.Last, t.Phase, t.Widest = firsts(steps, b), lasts(steps, b), phases(ph, b), widest(b)
	t.Token = firsts(token, b)
	for i := range t.Regions {
		t.Read = append(t.Read, means(r[i], b))
		t.Written = append(t.Written, means(w[i], b))
	}
	return t, nil
}

func zeroNaN(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// orderRegions returns the distinct names: the known ones in their fixed order,
// then the others by name.
func orderRegions(names []string) []string {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	var out, rest []string
	for _, n := range regionOrder {
		if set[n] {
			out = append(out, n)
			delete(set, n)
		}
	}
	for n := range set {
		rest = append(rest, n)
	}
	slices.Sort(rest)
	return append(out, rest...)
}

// kvGrowth is the KV cache over steps, thinned out.
type kvGrowth struct {
	Steps, Last   []float64
	Phase         []string
	Cells, InUse  []float64 // at the end of the step
	Read, Padding []float64 // bytes a step; NaN where not known
	Total, Widest int
}

func kvSeries(d *Data, limit int) (*kvGrowth, error) {
	c, err := open(d, figKV, "kv_growth", "step", "bytes_in_use")
	if err != nil {
		return nil, err
	}
	order := make([]int, 0, len(c.t.Rows))
	step, use := c.numbers("step"), c.numbers("bytes_in_use")
	for i := range step {
		if !math.IsNaN(step[i]) && !math.IsNaN(use[i]) {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return nil, c.empty("no row of table kv_growth has a step and bytes_in_use")
	}
	sort.SliceStable(order, func(i, j int) bool { return step[order[i]] < step[order[j]] })
	phase := pick(c.strings("phase"), order)
	b := thin(phase, len(order), limit)
	g := &kvGrowth{Total: len(order), Widest: widest(b), Phase: phases(phase, b)}
	g.Steps, g.Last = firsts(pick(step, order), b), lasts(pick(step, order), b)
	g.InUse = lasts(pick(use, order), b)
	g.Cells = lasts(pick(c.numbers("cells_in_use"), order), b)
	g.Read = means(pick(c.numbers("bytes_read"), order), b)
	g.Padding = means(pick(c.numbers("padding_bytes_read"), order), b)
	return g, nil
}

func pick[T any](v []T, order []int) []T {
	out := make([]T, len(order))
	for i, k := range order {
		out[i] = v[k]
	}
	return out
}

func hasNumber(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return !math.IsNaN(x) })
}

package compat

import (
	"bytes"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/tierscope/tierscope/analyze"
	tables "github.com/tierscope/tierscope/analyze/mrm"
)

const (
	bins = 30
	dpi  = 150
)

// palette are colours that stay apart for those who do not tell red from green
// (Okabe and Ito).
var palette = []color.NRGBA{{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255}, {213, 94, 0, 255}}

// figure is one of mrm-trace's figures: its file and how it is drawn from its
// table. draw returns false if the table has nothing to draw.
type figure struct {
	file, table   string
	width, height vg.Length
	draw          func(*plot.Plot, *analyze.Table) (bool, error)
}

var figures = []figure{
	{"retention_histogram.png", "retention_per_region", 8 * vg.Inch, 4 * vg.Inch, drawRetention},
	{"working_set.png", "working_set_summary", 6 * vg.Inch, 4 * vg.Inch, drawWorkingSet},
	{"write_once.png", "write_once", 6 * vg.Inch, 4 * vg.Inch, drawWriteOnce},
}

// render returns the figure as PNG, or nil if there is nothing to draw.
func (f *figure) render(t *analyze.Table) ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Padding = vg.Points(6)
	ok, err := f.draw(p, t)
	if err != nil || !ok {
		return nil, err
	}
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dpi))
	margin := vg.Points(8)
	p.Draw(draw.Crop(draw.New(c), margin, -margin, margin, -margin))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Picture is one of mrm-trace's figures: its file name, the table that it is
// drawn from, and the file; nil if there is nothing to draw.
type Picture struct {
	Name, Table string
	PNG         []byte
}

// Pictures draws mrm-trace's figures from its tables. The same tables give the
// same bytes.
func Pictures(r *tables.Result) ([]Picture, error) {
	named := map[string]*analyze.Table{}
	all := r.Tables()
	for i := range all {
		named[all[i].Name] = &all[i]
	}
	out := make([]Picture, len(figures))
	for i := range figures {
		f := &figures[i]
		out[i].Name, out[i].Table = f.file, f.table
		var err error
		if out[i].PNG, err = f.render(named[f.table]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// byType collects the values of a column by region type, sorted by type. Rows
// without type or value are left out.
func byType(t *analyze.Table, column string) (types []string, values map[string][]float64) {
	typ, val := t.Index("region_type"), t.Index(column)
	values = map[string][]float64{}
	for _, row := range t.Rows {
		name, ok := row[typ].(string)
		if !ok {
			continue
		}
		v, ok := number(row[val])
		if !ok {
			continue
		}
		if values[name] == nil {
			types = append(types, name)
		}
		values[name] = append(values[name], v)
	}
	slices.Sort(types)
	return types, values
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// drawRetention draws a histogram of the retention of regions for each type,
// with bins of its own.
func drawRetention(p *plot.Plot, t *analyze.Table) (bool, error) {
	p.Title.Text = "Retention distribution by region type"
	p.X.Label.Text, p.Y.Label.Text = "Retention (s)", "Region count"
	p.Legend.Top = true
	types, values := byType(t, "retention_s")
	for i, name := range types {
		fill := palette[i%len(palette)]
		fill.A = 178
		h := histogram(values[name])
		h.FillColor = fill
		h.LineStyle.Width, h.LineStyle.Color = vg.Points(1), fill // so that a narrow bin is seen too
		p.Add(h)
		p.Legend.Add(name, h)
	}
	return len(types) > 0, nil
}

// histogram counts values in equal bins from the smallest to the largest.
func histogram(values []float64) *plotter.Histogram {
	lo, hi := slices.Min(values), slices.Max(values)
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	width := (hi - lo) / bins
	h := &plotter.Histogram{Width: width, Bins: make([]plotter.HistogramBin, bins)}
	for i := range h.Bins {
		h.Bins[i].Min, h.Bins[i].Max = lo+float64(i)*width, lo+float64(i+1)*width
	}
	for _, v := range values {
		h.Bins[min(int((v-lo)/width), bins-1)].Weight++
	}
	h.Bins = slices.DeleteFunc(h.Bins, func(b plotter.HistogramBin) bool { return b.Weight == 0 })
	return h
}

// drawWorkingSet draws the working set of each type in GiB.
func drawWorkingSet(p *plot.Plot, t *analyze.Table) (bool, error) {
	p.Title.Text = "Working set by region type"
	p.Y.Label.Text = "Working set (GB)"
	types, values := byType(t, "total_bytes")
	heights := make(plotter.Values, len(types))
	for i, name := range types {
		heights[i] = values[name][0] / (1 << 30)
	}
	return bars(p, types, heights, color.NRGBA{70, 130, 180, 255})
}

// drawWriteOnce draws the mean write-once ratio of each type's regions, and the
// limit of high_mrm.
func drawWriteOnce(p *plot.Plot, t *analyze.Table) (bool, error) {
	p.Title.Text = "Write-once ratio by region type"
	p.Y.Label.Text = "Write-once ratio"
	types, values := byType(t, "write_once_ratio")
	heights := make(plotter.Values, len(types))
	for i, name := range types {
		for _, v := range values[name] {
			heights[i] += v / float64(len(values[name]))
		}
	}
	ok, err := bars(p, types, heights, color.NRGBA{255, 127, 80, 255})
	if err != nil || !ok {
		return ok, err
	}
	limit, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: 0.8}, {X: float64(len(types)) - 0.5, Y: 0.8}})
	if err != nil {
		return false, err
	}
	limit.Color = color.NRGBA{139, 0, 0, 255}
	limit.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(limit)
	p.Legend.Add("high_mrm threshold", limit)
	p.Legend.Top, p.Legend.YOffs = true, vg.Points(16) // above the bars
	p.Y.Max = 1.05
	return true, nil
}

// bars draws a bar for each name.
func bars(p *plot.Plot, names []string, heights plotter.Values, fill color.Color) (bool, error) {
	if len(names) == 0 {
		return false, nil
	}
	b, err := plotter.NewBarChart(heights, vg.Points(min(60, 300/float64(len(names)))))
	if err != nil {
		return false, err
	}
	b.Color = fill
	b.LineStyle.Width = 0
	p.Add(b)
	p.NominalX(names...)
	p.X.Label.Text = "Region type"
	p.Y.Min = 0
	return true, nil
}

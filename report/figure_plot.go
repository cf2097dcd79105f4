package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/observe"
)

// Size of a figure: a column of a paper and a half, so that text stays readable
// at column width.
const (
	figureWidth  = 14 * vg.Centimeter
	figureHeight = 7 * vg.Centimeter
	legendWidth  = 2.7 * vg.Centimeter
	margin       = 0.2 * vg.Centimeter
	// printLimit is the number of points above which a static figure is thinned
	// out; its CSV has the points that are drawn.
	printLimit = 1500
)

// regionColors are those of the page: the palette of Okabe and Ito.
var regionColors = map[string]color.RGBA{
	observe.ClassWeight: rgb(0x0072b2), observe.ClassKVCache: rgb(0xd55e00), observe.ClassActivation: rgb(0x009e73),
	observe.ClassRuntime: rgb(0xcc79a7), observe.ClassUnknown: rgb(0x868e95),
}

var (
	otherColors = []color.RGBA{rgb(0x56b4e9), rgb(0xe69f00), rgb(0xc9b800)}
	ink, soft   = rgb(0x1c2126), rgb(0x5d6770)
	shade       = color.NRGBA{0xb8, 0x86, 0x0b, 0x30}
	lineDashes  = [][]vg.Length{nil, {6, 3}, {1.5, 2}, {7, 2, 1.5, 2}, {3, 3}}
)

func rgb(x uint32) color.RGBA { return color.RGBA{byte(x >> 16), byte(x >> 8), byte(x), 0xff} }

func regionColor(region string, others *int) color.Color {
	if c, ok := regionColors[region]; ok {
		return c
	}
	*others++
	return otherColors[(*others-1)%len(otherColors)]
}

// newPlot returns an empty plot in the house's style.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	style := func(f *font.Font, size vg.Length) { *f = sans; f.Size = size }
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		style(&a.Label.TextStyle.Font, 9)
		style(&a.Tick.Label.Font, 8)
		a.LineStyle = lineStyle(soft, 0.5)
		a.Tick.LineStyle = lineStyle(soft, 0.5)
		a.Tick.Length = 3
		a.Padding = 0
	}
	style(&p.Legend.TextStyle.Font, 8)
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.ThumbnailWidth = 18
	p.Legend.Padding = 2
	p.Y.Tick.Marker = byteTicks{}
	return p
}

func lineStyle(c color.Color, w vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: w}
}

// byteTicks are about five ticks at powers of two times 1, 2 or 4.
type byteTicks struct{}

// Ticks implements [plot.Ticker].
func (byteTicks) Ticks(lo, hi float64) []plot.Tick {
	step := math.Exp2(math.Ceil(math.Log2(math.Max(hi-lo, 1) / 6)))
	var out []plot.Tick
	for v := math.Ceil(lo/step) * step; v <= hi; v += step {
		out = append(out, plot.Tick{Value: v, Label: tickText(bytesText(v))})
	}
	return out
}

// tickText drops the zeros behind the point of a round number: 96 MiB, not 96.0.
func tickText(s string) string {
	n, unit, _ := strings.Cut(s, " ")
	if strings.Contains(n, ".") {
		n = strings.TrimRight(strings.TrimRight(n, "0"), ".")
	}
	return n + " " + unit
}

// timeTicks are the decades of a log axis of seconds.
type timeTicks struct{}

// Ticks implements [plot.Ticker].
func (timeTicks) Ticks(lo, hi float64) []plot.Tick {
	var out []plot.Tick
	from, to := int(math.Ceil(math.Log10(lo)-1e-9)), int(math.Floor(math.Log10(hi)+1e-9))
	each := max(1, (to-from+7)/8)
	for k := from; k <= to; k++ {
		t := plot.Tick{Value: math.Pow10(k)}
		if (k-from)%each == 0 {
			t.Label = tickText(secondsText(t.Value))
		}
		out = append(out, t)
	}
	return out
}

// stairs turns values that hold from xs[i] to xs[i+1], the last one to end, into
// the corners of a stepped line. Gaps (NaN) end a line.
func stairs(xs, ys []float64, end float64) []plotter.XYs {
	var out []plotter.XYs
	var now plotter.XYs
	for i := range xs {
		if math.IsNaN(ys[i]) {
			if len(now) > 0 {
				out = append(out, now)
			}
			now = nil
			continue
		}
		next := end
		if i+1 < len(xs) {
			next = xs[i+1]
		}
		now = append(now, plotter.XY{X: xs[i], Y: ys[i]}, plotter.XY{X: next, Y: ys[i]})
	}
	if len(now) > 0 {
		out = append(out, now)
	}
	return out
}

// addLine adds a stepped line and its legend.
func addLine(p *plot.Plot, name string, xs, ys []float64, end float64, c color.Color, dash []vg.Length) error {
	for i, part := range stairs(xs, ys, end) {
		l, err := plotter.NewLine(part)
		if err != nil {
			return err
		}
		l.LineStyle = lineStyle(c, 1.1)
		l.LineStyle.Dashes = dash
		p.Add(l)
		if i == 0 {
			p.Legend.Add(name, l)
		}
	}
	return nil
}

// addArea fills between two stepped lines.
func addArea(p *plot.Plot, name string, xs, low, high []float64, end float64, c color.Color) error {
	top, bottom := stairs(xs, high, end)[0], stairs(xs, low, end)[0]
	ring := append(plotter.XYs{}, top...)
	for i := len(bottom) - 1; i >= 0; i-- {
		ring = append(ring, bottom[i])
	}
	a, err := plotter.NewPolygon(ring)
	if err != nil {
		return err
	}
	a.Color, a.LineStyle.Width = c, 0
	p.Add(a)
	p.Legend.Add(name, a)
	return nil
}

// addPrefills shades the steps of prefill up to the height top.
func addPrefills(p *plot.Plot, phase []string, xs []float64, end, top float64) error {
	first := true
	for _, s := range spans(phase) {
		if s.Phase != observe.PhasePrefill {
			continue
		}
		to := end
		if s.To < len(xs) {
			to = xs[s.To]
		}
		// At least a hair's width, or single steps among thousands vanish.
		to = math.Max(to, xs[s.From]+(end-xs[0])/400)
		box, err := plotter.NewPolygon(plotter.XYs{{X: xs[s.From]}, {X: to}, {X: to, Y: top}, {X: xs[s.From], Y: top}})
		if err != nil {
			return err
		}
		box.Color, box.LineStyle.Width = shade, 0
		p.Add(box)
		if first {
			p.Legend.Add("prefill", box)
			first = false
		}
	}
	return nil
}

func stepEnd(last []float64) float64 { return last[len(last)-1] + 1 }

func drawTraffic(d *Data) (string, *analyze.Table, io.WriterTo, error) {
	t, err := trafficSeries(d, printLimit)
	if err != nil {
		return figTraffic, nil, nil, err
	}
	// Prefill steps can be a hundred times a decode step: the axis fits decode,
	// and what leaves it is said.
	decode, all := peaks(t)
	label := "bytes read per step"
	top := all * 1.05
	if decode > 0 && all > 3*decode {
		top = decode * 1.3
		label += fmt.Sprintf(" (prefill to %s)", bytesText(all))
	}
	p := newPlot("step", label)
	end, others := stepEnd(t.Last), 0
	if err := addPrefills(p, t.Phase, t.Steps, end, top); err != nil {
		return figTraffic, nil, nil, err
	}
	low := make([]float64, len(t.Steps))
	for i, r := range t.Regions {
		from, high := make([]float64, len(low)), make([]float64, len(low))
		for k, v := range t.Read[i] {
			from[k], high[k] = math.Min(low[k], top), math.Min(low[k]+v, top)
			low[k] += v
		}
		if err := addArea(p, regionText(r), t.Steps, from, high, end, regionColor(r, &others)); err != nil {
			return figTraffic, nil, nil, err
		}
	}
	p.Y.Min, p.Y.Max, p.X.Min, p.X.Max = 0, math.Max(top, 1), t.Steps[0], end
	return finish(figTraffic, p, t.table())
}

func drawKV(d *Data) (string, *analyze.Table, io.WriterTo, error) {
	g, err := kvSeries(d, printLimit)
	if err != nil {
		return figKV, nil, nil, err
	}
	p := newPlot("step", "bytes of the KV cache")
	end, top := stepEnd(g.Last), 1.0
	for _, v := range [][]float64{g.InUse, g.Read, g.Padding} {
		for _, x := range v {
			top = math.Max(top, zeroNaN(x))
		}
	}
	top *= 1.05
	err = addPrefills(p, g.Phase, g.Steps, end, top)
	for i, l := range []struct {
		name string
		v    []float64
		c    color.Color
	}{{"in use", g.InUse, regionColors[observe.ClassKVCache]}, {"read in the step", g.Read, ink}, {"padding beside it", g.Padding, soft}} {
		if err == nil && hasNumber(l.v) {
			err = addLine(p, l.name, g.Steps, l.v, end, l.c, lineDashes[i])
		}
	}
	if err != nil {
		return figKV, nil, nil, err
	}
	p.Y.Min, p.Y.Max, p.X.Min, p.X.Max = 0, top, g.Steps[0], end
	return finish(figKV, p, g.table())
}

func drawLifetimes(d *Data) (string, *analyze.Table, io.WriterTo, error) {
	l, err := lifetimeSeries(d)
	if err != nil {
		return figLifetime, nil, nil, err
	}
	p := newPlot("lifetime", "share of the region's bytes")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, timeTicks{}
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0 %"}, {Value: .25, Label: "25 %"}, {Value: .5, Label: "50 %"},
		{Value: .75, Label: "75 %"}, {Value: 1, Label: "100 %"}}
	end, others := l.Edges[len(l.Edges)-1], 0
	if end <= l.Edges[0] {
		end = l.Edges[0] * 10
	}
	t := &analyze.Table{Name: figLifetime, Columns: []analyze.TableColumn{{Name: "lifetime_s", Unit: "s"}}}
	for i, r := range l.Regions {
		if err := addLine(p, regionText(r), l.Edges, l.Share[i], end, regionColor(r, &others), lineDashes[i%len(lineDashes)]); err != nil {
			return figLifetime, nil, nil, err
		}
		t.Columns = append(t.Columns, analyze.TableColumn{Name: r + "_share"})
	}
	for k, e := range l.Edges {
		row := []any{e}
		for i := range l.Regions {
			row = append(row, l.Share[i][k])
		}
		t.Rows = append(t.Rows, row)
	}
	p.Y.Min, p.Y.Max, p.X.Min, p.X.Max = 0, 1.02, l.Edges[0], end
	return finish(figLifetime, p, t)
}

// finish draws the plot with its legend to the right of it, where it hides
// nothing.
func finish(name string, p *plot.Plot, t *analyze.Table) (string, *analyze.Table, io.WriterTo, error) {
	svg := vgsvg.New(figureWidth, figureHeight)
	c := draw.Crop(draw.New(svg), margin, -margin, margin, -margin)
	legend := p.Legend
	p.Legend = plot.NewLegend()
	p.Draw(draw.Crop(c, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-legendWidth+margin, 0, 0, 0))
	return name, t, svg, nil
}

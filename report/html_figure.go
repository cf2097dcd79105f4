package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/observe"
)

// figureView is a figure as the template prints it.
type figureView struct {
	Name    string
	Label   string // what a screen reader says
	Caption string
	Thinned string // says that points were left out
	Groups  []choices
	JSON    template.JS
	Why     string // why there is nothing to draw; "" = there is
	Table   *tableView
}

// choices is a group of switches of which one is on.
type choices struct {
	Name, Legend string
	Options      []choice
}

type choice struct {
	Value, Label string
	On           bool
}

// floats are written to JSON with all digits, NaN as null.
type floats []float64

// MarshalJSON implements [json.Marshaler].
func (f floats) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 12*len(f)+2)
	out = append(out, '[')
	for i, x := range f {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			out = append(out, "null"...)
		} else {
			out = append(out, raw(x)...)
		}
	}
	return append(out, ']'), nil
}

// series is a line or layer of a figure, as the page's script reads it.
type series struct {
	Name   string `json:"name"`
	Label  string `json:"label"`
	Class  string `json:"class"` // colour
	Values floats `json:"values,omitempty"`
}

// span is a run of points of one phase, To exclusive.
type span struct {
	Phase string `json:"phase"`
	From  int    `json:"from"`
	To    int    `json:"to"`
}

func spans(phase []string) []span {
	var out []span
	for i, p := range phase {
		if i == 0 || p != phase[i-1] {
			out = append(out, span{Phase: p, From: i})
		}
		out[len(out)-1].To = i + 1
	}
	return out
}

func mustJSON(v any) template.JS {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // finite numbers and strings only
	}
	return template.JS(b)
}

// reason returns why a figure is empty.
func reason(err error) string {
	var e *emptyError
	if errors.As(err, &e) {
		return e.why
	}
	return err.Error()
}

func thinned(total, drawn, widest int, how string) string {
	if total == drawn {
		return ""
	}
	return fmt.Sprintf("%s steps are drawn as %s points of up to %s consecutive steps; %s.",
		human(int64(total), ""), human(int64(drawn), ""), human(int64(widest), ""), how)
}

func (p *page) trafficFigure(d *Data) *figureView {
	v := &figureView{Name: figTraffic, Label: "Bytes moved in each step, by region"}
	t, err := trafficSeries(d, drawLimit)
	if err != nil {
		v.Why = reason(err)
		return v
	}
	var read, written []series
	for i, r := range t.Regions {
		read = append(read, series{r, regionText(r), p.color(r), t.Read[i]})
		written = append(written, series{r, regionText(r), p.color(r), t.Written[i]})
	}
	v.JSON = mustJSON(map[string]any{"x": floats(t.Steps), "last": floats(t.Last), "token": floats(t.Token),
		"phases": spans(t.Phase), "read": read, "written": written})
	scale := choices{"scale", "Scale", []choice{{"linear", "linear", true}, {"log", "log", false}}}
	v.Caption = "Bytes per step (one evaluation of the model's graph), stacked by region. " +
		"On the log scale the regions are lines of their own, not stacked, and zeros are not drawn."
	if decode, all := peaks(t); decode > 0 && all > 3*decode {
		scale.Options = []choice{{"decode", "linear, decode", true}, {"linear", "linear, all", false}, {"log", "log", false}}
		v.Caption += fmt.Sprintf(" The first scale fits decode steps: prefill steps, of up to %s, leave it at the top, where their size is written.", bytesText(all))
	}
	v.Groups = []choices{{"metric", "Bytes", []choice{{"read", "read", true}, {"written", "written", false}}}, scale}
	v.Thinned = thinned(t.Total, len(t.Steps), t.Widest, "a point is their mean, so single steps may lie above it")
	small, _ := trafficSeries(d, tableLimit) // as it did above, it does not fail
	v.Table = p.tableOf(small.table(), figTraffic+"_steps", "The same as a table", "").folded()
	v.Table.Text = thinned(small.Total, len(small.Steps), small.Widest, "a row is their mean")
	for i, c := range v.Table.Columns {
		v.Table.Columns[i].Notes = onColumn(p.Notes, figTraffic, c.Name)
	}
	return v
}

// peaks returns the largest read of a decode step, and of any step.
func peaks(t *traffic) (decode, all float64) {
	for i, ph := range t.Phase {
		sum := 0.0
		for _, r := range t.Read {
			sum += r[i]
		}
		if all = max(all, sum); ph == observe.PhaseDecode {
			decode = max(decode, sum)
		}
	}
	return decode, all
}

// table returns the points as a table, a column a region.
func (t *traffic) table() *analyze.Table {
	out := &analyze.Table{Name: figTraffic + "_steps", Columns: []analyze.TableColumn{
		{Name: "step"}, {Name: "last_step"}, {Name: "phase"}}}
	for _, kind := range []string{"read", "written"} {
		for _, r := range t.Regions {
			out.Columns = append(out.Columns, analyze.TableColumn{Name: r + "_" + kind, Unit: "B"})
		}
	}
	for i := range t.Steps {
		row := []any{t.Steps[i], t.Last[i], t.Phase[i]}
		for _, kind := range [][][]float64{t.Read, t.Written} {
			for _, r := range kind {
				row = append(row, r[i])
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func (p *page) kvFigure(d *Data) *figureView {
	v := &figureView{Name: figKV, Label: "Bytes of the KV cache in use and read, by step"}
	g, err := kvSeries(d, drawLimit)
	if err != nil {
		v.Why = reason(err)
		return v
	}
	lines := []series{{"bytes_in_use", "in use", "kv_cache", g.InUse}}
	if hasNumber(g.Read) {
		lines = append(lines, series{"bytes_read", "read in the step", "ink", g.Read})
	}
	if hasNumber(g.Padding) {
		lines = append(lines, series{"padding_bytes_read", "padding beside it", "soft", g.Padding})
	}
	v.JSON = mustJSON(map[string]any{"x": floats(g.Steps), "last": floats(g.Last), "phases": spans(g.Phase),
		"lines": lines, "cells": floats(g.Cells)})
	v.Caption = "Bytes of the cells in use after each step, and what the step read of them: where the two lines are one, a step reads all of the cache. " +
		"Padding is named along with the cells in use, because the engine rounds their number up, but holds nothing; it is not in the bytes read."
	v.Thinned = thinned(g.Total, len(g.Steps), g.Widest, "a point is the last level and the mean of what was read")
	small, _ := kvSeries(d, tableLimit) // as it did above, it does not fail
	v.Table = p.tableOf(small.table(), figKV+"_steps", "The same as a table", "").folded()
	v.Table.Text = thinned(small.Total, len(small.Steps), small.Widest, "a row is the last level and the mean of what was read")
	return v
}

func (g *kvGrowth) table() *analyze.Table {
	out := &analyze.Table{Name: figKV + "_steps", Columns: []analyze.TableColumn{{Name: "step"}, {Name: "last_step"}, {Name: "phase"},
		{Name: "cells_in_use"}, {Name: "bytes_in_use", Unit: "B"}, {Name: "bytes_read", Unit: "B"}, {Name: "padding_bytes_read", Unit: "B"}}}
	for i := range g.Steps {
		out.Rows = append(out.Rows, []any{g.Steps[i], g.Last[i], g.Phase[i],
			orNil(g.Cells[i]), orNil(g.InUse[i]), orNil(g.Read[i]), orNil(g.Padding[i])})
	}
	return out
}

func orNil(x float64) any {
	if math.IsNaN(x) {
		return nil
	}
	return x
}

func (p *page) lifetimeFigure(d *Data) *figureView {
	v := &figureView{Name: figLifetime, Label: "Lifetime of values, by bytes and region"}
	l, err := lifetimeSeries(d)
	if err != nil {
		v.Why = reason(err)
		return v
	}
	var share, bytes []series
	for i, r := range l.Regions {
		share = append(share, series{r, regionText(r), p.color(r), l.Share[i]})
		bytes = append(bytes, series{r, regionText(r), p.color(r), l.Bytes[i]})
	}
	v.JSON = mustJSON(map[string]any{"x": floats(l.Edges), "share": share, "bytes": bytes})
	v.Caption = "Lifetime of a value: from its write to the last read before the next write or the end of its object. " +
		"Share: of a region's bytes, those that were needed for at most so long. Bytes: those in each bucket of lifetimes. " +
		"Figures are exact at the edges of the buckets and held level between them."
	v.Groups = []choices{{"view", "Show", []choice{{"share", "cumulative share", true}, {"bytes", "bytes", false}}}}
	v.Table = p.tableOf(d.Table("lifetime_distribution"), "lifetime_distribution", "The same as a table", "").folded()
	return v
}

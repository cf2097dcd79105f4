package reporttest

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// EmptyFigures returns the figures of the open page that have no data or no
// paint: pixels in the colour of each of their series.
func (b *Browser) EmptyFigures() []string {
	var bad []string
	b.Eval(`[...document.querySelectorAll("figure")].filter(f => {
		if (f.dataset.empty !== "false") return true;
		const c = charts.all.find(c => c.figure === f), canvas = f.querySelector("canvas");
		if (!c || !canvas || c.plot.data[0].length === 0) return true;
		const copy = document.createElement("canvas"), seen = new Set();
		copy.width = canvas.width; copy.height = canvas.height;
		const to = copy.getContext("2d", { willReadFrequently: true }); // of the figure's own, the browser warns
		to.drawImage(canvas, 0, 0);
		const px = to.getImageData(0, 0, copy.width, copy.height).data;
		for (let i = 0; i < px.length; i += 4) if (px[i + 3] === 255) seen.add(px[i] + "," + px[i + 1] + "," + px[i + 2]);
		const rgb = s => s.match(/\d+/g).slice(0, 3).join();
		const painted = c.plot.series.slice(1).filter(s => [s.fill, s.stroke].map(p => p?.()).some(p => p && seen.has(rgb(p))));
		return painted.length === 0;
	}).map(f => f.dataset.figure)`, &bad)
	return bad
}

// Table reads a table back from the page: data-value by row and cell; a missing
// cell is nil.
func (b *Browser) Table(name string) (columns []string, rows [][]*string) {
	at := strconv.Quote(fmt.Sprintf("[data-table=%q]", name))
	b.Eval(`[...document.querySelector(`+at+`).tHead.rows[0].cells].map(c => c.dataset.column)`, &columns)
	b.Eval(`[...document.querySelector(`+at+`).tBodies[0].rows].map(r => [...r.cells].map(c => c.hasAttribute("data-missing") ? null : c.dataset.value))`, &rows)
	return columns, rows
}

// SameCell reports whether a cell read back is the value it was made from.
func SameCell(got *string, want any) bool {
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	switch w := want.(type) {
	case uint64:
		x, err := strconv.ParseUint(*got, 10, 64)
		return err == nil && x == w
	case int64:
		x, err := strconv.ParseInt(*got, 10, 64)
		return err == nil && x == w
	case float64:
		x, err := strconv.ParseFloat(*got, 64)
		return err == nil && (x == w || math.IsNaN(x) && math.IsNaN(w))
	case bool:
		return *got == strconv.FormatBool(w)
	}
	return *got == want
}

// Drawn is the JSON beside a figure.
type Drawn struct {
	X, Last       []float64
	Phases        []Span
	Read, Written []struct {
		Name   string
		Values []float64
	}
	Lines, Share, Bytes []struct {
		Name   string
		Values []*float64
	}
	Cells []*float64
}

// Drawn returns what a figure of the open page was drawn from.
func (b *Browser) Drawn(figure string) Drawn {
	var text string
	b.Eval(`document.getElementById("data-`+figure+`").textContent`, &text)
	var d Drawn
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		b.t.Fatalf("%s: %v", figure, err)
	}
	return d
}

// Span is a run of points of one phase, To exclusive.
type Span struct {
	Phase    string
	From, To int
}

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/analyze"
)

// emptyFigures returns the figures of the open page that have no data or no
// paint: pixels in the colour of each of their series.
func emptyFigures(b *browser) []string {
	var bad []string
	b.eval(`[...document.querySelectorAll("figure")].filter(f => {
		if (f.dataset.empty !== "false") return true;
		const c = charts.all.find(c => c.figure === f), canvas = f.querySelector("canvas");
		if (!c || !canvas || c.plot.data[0].length === 0) return true;
		const px = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
		for (let i = 0; i < px.length; i += 4) if (px[i + 3] === 255) seen.add(px[i] + "," + px[i + 1] + "," + px[i + 2]);
		const rgb = s => s.match(/\d+/g).slice(0, 3).join();
		const painted = c.plot.series.slice(1).filter(s => [s.fill, s.stroke].map(p => p?.()).some(p => p && seen.has(rgb(p))));
		return painted.length === 0;
	}).map(f => f.dataset.figure)`, &bad)
	return bad
}

// grid reads a table back from the page: data-value by row and cell; a missing
// cell is nil.
func grid(b *browser, name string) (columns []string, rows [][]*string) {
	at := strconv.Quote(fmt.Sprintf("[data-table=%q]", name))
	b.eval(`[...document.querySelector(`+at+`).tHead.rows[0].cells].map(c => c.dataset.column)`, &columns)
	b.eval(`[...document.querySelector(`+at+`).tBodies[0].rows].map(r => [...r.cells].map(c => c.hasAttribute("data-missing") ? null : c.dataset.value))`, &rows)
	return columns, rows
}

// sameCell reports whether a cell read back is the value it was made from.
func sameCell(got *string, want any) bool {
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

func checkTable(t *testing.T, b *browser, want *analyze.Table) {
	t.Helper()
	columns, rows := grid(b, want.Name)
	if len(columns) != len(want.Columns) || len(rows) != len(want.Rows) {
		t.Fatalf("%s: page has %d columns and %d rows, table %d and %d", want.Name, len(columns), len(rows), len(want.Columns), len(want.Rows))
	}
	for r := range rows {
		for c := range columns {
			if columns[c] != want.Columns[c].Name || !sameCell(rows[r][c], want.Rows[r][c]) {
				t.Errorf("%s: row %d, %s: page has %v, table %v", want.Name, r, columns[c], rows[r][c], want.Rows[r][c])
			}
		}
	}
}

// drawn is the JSON beside a figure.
type drawn struct {
	X, Last       []float64
	Phases        []span
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

func drawnOf(b *browser, figure string) drawn {
	var text string
	b.eval(`document.getElementById("data-`+figure+`").textContent`, &text)
	var d drawn
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		b.t.Fatalf("%s: %v", figure, err)
	}
	return d
}

func TestPageShowsTheTables(t *testing.T) {
	b := startBrowser(t)
	d := sample(smallRun)
	b.open(d, 1200, 900)
	if bad := emptyFigures(b); len(bad) > 0 {
		t.Errorf("figures without data or paint: %v", bad)
	}
	for i := range d.Tables {
		if n := d.Tables[i].Name; n != "traffic_by_token" && n != "kv_growth" {
			checkTable(t, b, &d.Tables[i])
		}
	}
	for _, f := range append(slices.Clone(d.Facts), d.Machine...) {
		var got *string
		b.eval(fmt.Sprintf(`(e => e.classList.contains("missing") ? null : e.dataset.value)(document.querySelector('[data-fact="%s"]'))`, f.Name), &got)
		if !sameCell(got, f.Value) {
			t.Errorf("fact %s: page has %v, not %v", f.Name, got, f.Value)
		}
	}

	// What is drawn, point by point, and the same as a table.
	fig := drawnOf(b, figTraffic)
	_, wide := grid(b, figTraffic+"_steps")
	tab := d.Table("traffic_by_token")
	if len(fig.X) != 303 || len(wide) != 303 || len(fig.Read) != 4 {
		t.Fatalf("%d points, %d rows, %d regions drawn", len(fig.X), len(wide), len(fig.Read))
	}
	for _, row := range tab.Rows {
		i := int(row[0].(uint64))
		r := slices.IndexFunc(fig.Read, func(s struct {
			Name   string
			Values []float64
		}) bool {
			return s.Name == row[4]
		})
		if fig.X[i] != float64(i) || fig.Read[r].Values[i] != float64(row[5].(uint64)) || fig.Written[r].Values[i] != float64(row[6].(uint64)) {
			t.Fatalf("step %d, %s: %v read and %v written are drawn, not %v and %v", i, row[4], fig.Read[r].Values[i], fig.Written[r].Values[i], row[5], row[6])
		}
		if !sameCell(wide[i][3+r], row[5]) || !sameCell(wide[i][7+r], row[6]) || *wide[i][2] != row[2] {
			t.Fatalf("step %d, %s: the table says %s %s %s", i, row[4], *wide[i][2], *wide[i][3+r], *wide[i][7+r])
		}
	}
	// uPlot got the sums of the stack, the whole first.
	var top []float64
	b.eval(`charts.all[0].plot.data[1]`, &top)
	for i := range top {
		if want := fig.Read[0].Values[i] + fig.Read[1].Values[i] + fig.Read[2].Values[i] + fig.Read[3].Values[i]; top[i] != want {
			t.Fatalf("step %d: the stack is %v high, not %v", i, top[i], want)
		}
	}
	kv := drawnOf(b, figKV)
	for i, row := range d.Table("kv_growth").Rows {
		for k, col := range []int{4, 5, 6} {
			if *kv.Lines[k].Values[i] != float64(row[col].(uint64)) {
				t.Fatalf("kv_growth, step %d: %s is drawn as %v, not %v", i, kv.Lines[k].Name, *kv.Lines[k].Values[i], row[col])
			}
		}
	}
	b.quiet()
}

func TestPageByKeyboard(t *testing.T) {
	b := startBrowser(t)
	d := sample(smallRun)
	b.open(d, 1200, 900)
	column := func(name string) []string {
		columns, rows := grid(b, "layers")
		var out []string
		for _, r := range rows {
			if v := r[slices.Index(columns, name)]; v != nil {
				out = append(out, *v)
			} else {
				out = append(out, "")
			}
		}
		return out
	}
	state := func() (s string) {
		b.eval(`document.querySelector('[data-table=layers] th[data-column=activation]').getAttribute("aria-sort")`, &s)
		return s
	}
	before := column("activation")
	b.eval(`document.querySelector('[data-table=layers] th[data-column=activation] button').focus()`, nil)
	for _, press := range []struct {
		key, sorted string
		code        int
	}{{"Enter", "descending", 13}, {" ", "ascending", 32}} {
		b.key(press.key, press.code)
		if state() != press.sorted {
			t.Fatalf("after %q the column is sorted %q, not %s", press.key, state(), press.sorted)
		}
		var got, want []float64
		for _, s := range column("activation") {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, x)
		}
		want = slices.Clone(got)
		slices.Sort(want)
		if press.sorted == "descending" {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) || len(got) != layers+1 {
			t.Errorf("after %q: %v", press.key, got)
		}
	}
	if slices.Equal(before, column("activation")) {
		t.Error("sorting moved nothing")
	}
	// The layer of "outside the layers" is missing: it stays last either way.
	for range 2 {
		b.eval(`document.querySelector('[data-table=layers] th[data-column=layer] button').focus()`, nil)
		b.key("Enter", 13)
		if l := column("layer"); l[layers] != "" {
			t.Errorf("layers sorted: %v", l)
		}
	}

	// The cursor of a chart.
	b.eval(`document.querySelector('[data-figure=traffic_by_token] .chart').focus()`, nil)
	b.key("ArrowRight", 39)
	b.key("ArrowRight", 39)
	var at string
	b.eval(`document.querySelector('[data-figure=traffic_by_token] .legend').textContent`, &at)
	if !strings.Contains(at, "step 1 · decode · token 0") || !strings.Contains(at, "92.1 MiB") {
		t.Errorf("the second step reads %q", at)
	}
	// A region can be switched off; the scale follows a radio button.
	b.eval(`document.querySelector('[data-figure=traffic_by_token] .legend button').focus()`, nil)
	b.key("Enter", 13)
	var series int
	b.eval(`charts.all[0].plot.series.length - 1`, &series)
	if series != 3 {
		t.Errorf("%d of 4 regions are drawn with one switched off", series)
	}
	b.key("Enter", 13)
	b.eval(`document.querySelector('[data-figure=traffic_by_token] input[name$=scale]:checked').focus()`, nil)
	b.key("ArrowRight", 39)
	b.key("ArrowRight", 39)
	var distr int
	b.eval(`charts.all[0].plot.scales.y.distr`, &distr)
	if distr != 3 {
		t.Error("two steps to the right of the first scale is not log")
	}
	b.eval(`document.querySelector('[data-figure=lifetimes] input:checked').focus()`, nil)
	b.key("ArrowRight", 39)
	if bad := emptyFigures(b); len(bad) > 0 {
		t.Errorf("after switching, figures without paint: %v", bad)
	}
	b.shot("log")

	// Raw numbers, and back.
	read := func() (s string) {
		b.eval(`document.querySelector('[data-table=traffic_by_region] td[data-value="0"] .text').textContent + "|" +
			document.querySelector('[data-fact="KV bytes written per token"]').textContent`, &s)
		return s
	}
	human := read()
	b.eval(`document.getElementById("raw").focus()`, nil)
	b.key("Enter", 13)
	if got := read(); got != "0|23040 B" {
		t.Errorf("raw numbers read %q", got)
	}
	b.key("Enter", 13)
	if got := read(); got != human || human != "0 B|22.5 KiB" {
		t.Errorf("numbers read %q, then %q", human, got)
	}
	b.quiet()
}

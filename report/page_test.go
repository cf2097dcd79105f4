package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/report/reporttest"
)

func checkTable(t *testing.T, b *browser, want *analyze.Table) {
	t.Helper()
	columns, rows := b.Table(want.Name)
	if len(columns) != len(want.Columns) || len(rows) != len(want.Rows) {
		t.Fatalf("%s: page has %d columns and %d rows, table %d and %d", want.Name, len(columns), len(rows), len(want.Columns), len(want.Rows))
	}
	for r := range rows {
		for c := range columns {
			if columns[c] != want.Columns[c].Name || !reporttest.SameCell(rows[r][c], want.Rows[r][c]) {
				t.Errorf("%s: row %d, %s: page has %v, table %v", want.Name, r, columns[c], rows[r][c], want.Rows[r][c])
			}
		}
	}
}

func TestPageShowsTheTables(t *testing.T) {
	b := startBrowser(t)
	d := sample(smallRun)
	b.open(d, 1200, 900)
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("figures without data or paint: %v", bad)
	}
	for i := range d.Tables {
		if n := d.Tables[i].Name; n != "traffic_by_token" && n != "kv_growth" {
			checkTable(t, b, &d.Tables[i])
		}
	}
	for _, f := range append(slices.Clone(d.Facts), d.Machine...) {
		var got *string
		b.Eval(fmt.Sprintf(`(e => e.classList.contains("missing") ? null : e.dataset.value)(document.querySelector('[data-fact="%s"]'))`, f.Name), &got)
		if !reporttest.SameCell(got, f.Value) {
			t.Errorf("fact %s: page has %v, not %v", f.Name, got, f.Value)
		}
	}

	// What is drawn, point by point, and the same as a table.
	fig := b.Drawn(figTraffic)
	_, wide := b.Table(figTraffic + "_steps")
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
		if !reporttest.SameCell(wide[i][3+r], row[5]) || !reporttest.SameCell(wide[i][7+r], row[6]) || *wide[i][2] != row[2] {
			t.Fatalf("step %d, %s: the table says %s %s %s", i, row[4], *wide[i][2], *wide[i][3+r], *wide[i][7+r])
		}
	}
	// uPlot got the sums of the stack, the whole first.
	var top []float64
	b.Eval(`charts.all[0].plot.data[1]`, &top)
	for i := range top {
		if want := fig.Read[0].Values[i] + fig.Read[1].Values[i] + fig.Read[2].Values[i] + fig.Read[3].Values[i]; top[i] != want {
			t.Fatalf("step %d: the stack is %v high, not %v", i, top[i], want)
		}
	}
	kv := b.Drawn(figKV)
	for i, row := range d.Table("kv_growth").Rows {
		for k, col := range []int{4, 5, 6} {
			if *kv.Lines[k].Values[i] != float64(row[col].(uint64)) {
				t.Fatalf("kv_growth, step %d: %s is drawn as %v, not %v", i, kv.Lines[k].Name, *kv.Lines[k].Values[i], row[col])
			}
		}
	}
	b.Quiet()
}

func TestPageByKeyboard(t *testing.T) {
	b := startBrowser(t)
	d := sample(smallRun)
	b.open(d, 1200, 900)
	column := func(name string) []string {
		columns, rows := b.Table("layers")
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
		b.Eval(`document.querySelector('[data-table=layers] th[data-column=activation]').getAttribute("aria-sort")`, &s)
		return s
	}
	before := column("activation")
	b.Eval(`document.querySelector('[data-table=layers] th[data-column=activation] button').focus()`, nil)
	for _, press := range []struct {
		key, sorted string
		code        int
	}{{"Enter", "descending", 13}, {" ", "ascending", 32}} {
		b.Key(press.key, press.code)
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
		b.Eval(`document.querySelector('[data-table=layers] th[data-column=layer] button').focus()`, nil)
		b.Key("Enter", 13)
		if l := column("layer"); l[layers] != "" {
			t.Errorf("layers sorted: %v", l)
		}
	}

	// The cursor of a chart.
	b.Eval(`document.querySelector('[data-figure=traffic_by_token] .chart').focus()`, nil)
	b.Key("ArrowRight", 39)
	b.Key("ArrowRight", 39)
	var at string
	b.Eval(`document.querySelector('[data-figure=traffic_by_token] .legend').textContent`, &at)
	if !strings.Contains(at, "step 1 · decode · token 0") || !strings.Contains(at, "92.1 MiB") {
		t.Errorf("the second step reads %q", at)
	}
	// A region can be switched off; the scale follows a radio button.
	b.Eval(`document.querySelector('[data-figure=traffic_by_token] .legend button').focus()`, nil)
	b.Key("Enter", 13)
	var series int
	b.Eval(`charts.all[0].plot.series.length - 1`, &series)
	if series != 3 {
		t.Errorf("%d of 4 regions are drawn with one switched off", series)
	}
	b.Key("Enter", 13)
	b.Eval(`document.querySelector('[data-figure=traffic_by_token] input[name$=scale]:checked').focus()`, nil)
	b.Key("ArrowRight", 39)
	b.Key("ArrowRight", 39)
	var distr int
	b.Eval(`charts.all[0].plot.scales.y.distr`, &distr)
	if distr != 3 {
		t.Error("two steps to the right of the first scale is not log")
	}
	b.Eval(`document.querySelector('[data-figure=lifetimes] input:checked').focus()`, nil)
	b.Key("ArrowRight", 39)
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("after switching, figures without paint: %v", bad)
	}
	b.Shot("log")

	// Raw numbers, and back.
	read := func() (s string) {
		b.Eval(`document.querySelector('[data-table=traffic_by_region] td[data-value="0"] .text').textContent + "|" +
			document.querySelector('[data-fact="KV bytes written per token"]').textContent`, &s)
		return s
	}
	human := read()
	b.Eval(`document.getElementById("raw").focus()`, nil)
	b.Key("Enter", 13)
	if got := read(); got != "0|23040 B" {
		t.Errorf("raw numbers read %q", got)
	}
	b.Key("Enter", 13)
	if got := read(); got != human || human != "0 B|22.5 KiB" {
		t.Errorf("numbers read %q, then %q", human, got)
	}
	b.Quiet()
}

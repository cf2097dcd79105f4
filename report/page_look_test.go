package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

func TestPageLooks(t *testing.T) {
	b := startBrowser(t)
	b.open(sample(smallRun), 1200, 900)
	look := func() (page, weight string) {
		b.Eval(`getComputedStyle(document.body).backgroundColor`, &page)
		b.Eval(`charts.all[2].plot.series[1].stroke()`, &weight)
		return page, weight
	}
	// Text is told from its ground by the 4.5 to 1 that WCAG asks for.
	contrast := func(what string) {
		t.Helper()
		var worst float64
		b.Eval(`Math.min(...["ink", "soft", "accent", "warning", "invalid"].map(n => {
			const light = s => s.match(/\d+/g).slice(0, 3).map(x => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
				.reduce((a, x, i) => a + x * [0.2126, 0.7152, 0.0722][i], 0.05);
			const a = light(charts.color(n)), p = light(charts.color("page"));
			return Math.max(a, p) / Math.min(a, p);
		}))`, &worst)
		if worst < 4.5 {
			t.Errorf("%s: text has a contrast of only %.1f", what, worst)
		}
	}
	lightPage, lightLine := look()
	contrast("light")
	b.Shot("light")
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	b.Settle()
	darkPage, darkLine := look()
	if darkPage == lightPage || darkLine == lightLine {
		t.Errorf("a dark system changes the page from %s to %s, its lines from %s to %s", lightPage, darkPage, lightLine, darkLine)
	}
	contrast("dark")
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("in the dark, figures without paint: %v", bad)
	}
	b.Shot("dark")
	b.Eval(`document.querySelector("#theme input:checked").focus()`, nil)
	b.Key("ArrowRight", 39) // auto -> light
	if p, l := look(); p != lightPage || l != lightLine {
		t.Errorf("light theme on a dark system gives %s and %s", p, l)
	}
	b.Key("ArrowRight", 39)
	if p, _ := look(); p != darkPage {
		t.Errorf("dark theme gives %s", p)
	}

	b.Size(390, 800)
	b.Settle()
	var wide int
	b.Eval(`document.documentElement.scrollWidth`, &wide)
	if wide > 390 {
		t.Errorf("on a phone of 390 the page is %d wide", wide)
	}
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("on a phone, figures without paint: %v", bad)
	}
	b.Shot("narrow")

	// On A4 with margins nothing is cut off, and the paper is white.
	b.Size(720, 1000)
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	b.Settle()
	b.Eval(`document.documentElement.scrollWidth`, &wide)
	if p, _ := look(); wide > 720 || p != lightPage {
		t.Errorf("on paper of 720 the page is %d wide and %s", wide, p)
	}
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
	var pdf struct{ Data string }
	b.Call("Page.printToPDF", map[string]any{"printBackground": true}, &pdf)
	raw, err := base64.StdEncoding.DecodeString(pdf.Data)
	if err != nil || !bytes.HasPrefix(raw, []byte("%PDF-")) || len(raw) < 20_000 {
		t.Errorf("printing gives %d bytes: %v", len(raw), err)
	}
	b.File("print.pdf", raw)
	if p, _ := look(); p != darkPage {
		t.Errorf("after printing the page is %s, not as dark as before", p)
	}

	// Each thing to press or fill in has a name, each figure a table.
	var nameless []string
	b.Eval(`[...document.querySelectorAll("button, input, [tabindex], figure")].filter(e =>
		e.matches("figure") ? !e.querySelector("table") : !(e.textContent.trim() || e.ariaLabel || e.labels?.[0]?.textContent.trim())).map(e => e.outerHTML.slice(0, 80))`, &nameless)
	if len(nameless) > 0 {
		t.Errorf("without a name or table: %q", nameless)
	}
	b.Quiet()
}

func TestPageWithoutData(t *testing.T) {
	b := startBrowser(t)
	for _, c := range []struct {
		name string
		d    *Data
		why  string
	}{
		{"no tables", &Data{Title: "none"}, "there is no table kv_growth"},
		{"no rows", &Data{Tables: []analyze.Table{{Name: "kv_growth", Columns: cols("step", "bytes_in_use")}}}, "table kv_growth has no rows"},
		{"no numbers", &Data{Tables: []analyze.Table{withRows(analyze.Table{Name: "kv_growth", Columns: cols("step", "bytes_in_use")}, []any{uint64(1), nil})}}, "no row of table kv_growth has a step and bytes_in_use"},
		{"no column", &Data{Tables: []analyze.Table{withRows(analyze.Table{Name: "kv_growth", Columns: cols("step")}, []any{uint64(1)})}}, "table kv_growth has no column bytes_in_use"},
	} {
		b.open(c.d, 1000, 700)
		if got := b.EmptyFigures(); !slices.Equal(got, []string{figTraffic, figKV, figLifetime}) {
			t.Errorf("%s: empty figures: %v", c.name, got)
		}
		var text string
		b.Eval(`document.querySelector("[data-figure=kv_growth] .empty").innerText`, &text)
		if text != "No data: "+c.why+"." {
			t.Errorf("%s: the page says %q", c.name, text)
		}
	}
	// One empty figure among good ones is found too.
	d := sample(smallRun)
	d.Tables = slices.DeleteFunc(d.Tables, func(t analyze.Table) bool { return t.Name == "lifetime_distribution" })
	b.open(d, 1000, 700)
	if got := b.EmptyFigures(); !slices.Equal(got, []string{figLifetime}) {
		t.Errorf("empty figures: %v", got)
	}
	b.Quiet()
}

func TestPageOfALongRun(t *testing.T) {
	b := startBrowser(t)
	d := sample([]request{{500, 60_000, false}, {20, 40_000, true}})
	b.open(d, 1200, 900)
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("figures without data or paint: %v", bad)
	}
	fig := b.Drawn(figTraffic)
	if n := len(fig.X); n > drawLimit+10 || n < drawLimit/2 {
		t.Errorf("%d points are drawn", n)
	}
	// Both prefills are points of their own, and no byte is lost by averaging.
	if len(fig.Phases) != 4 || fig.Phases[2].To-fig.Phases[2].From != 1 {
		t.Errorf("phases drawn: %v", fig.Phases)
	}
	sum, want := 0.0, 0.0
	for i, v := range fig.Read[2].Values {
		sum += v * (fig.Last[i] - fig.X[i] + 1)
	}
	for _, row := range d.Table("traffic_by_token").Rows {
		if row[4] == fig.Read[2].Name {
			want += float64(row[5].(uint64))
		}
	}
	if math.Abs(sum-want) > 1e-9*want {
		t.Errorf("%s: points stand for %v bytes, steps for %v", fig.Read[2].Name, sum, want)
	}
	var caption string
	b.Eval(`document.querySelector("[data-figure=traffic_by_token] .thinned").textContent`, &caption)
	if want := fmt.Sprintf("100,002 steps are drawn as %s points of up to 26 consecutive steps", human(int64(len(fig.X)), "")); !strings.HasPrefix(caption, want) {
		t.Errorf("the page says %q, not %q", caption, want)
	}
	kv := b.Drawn(figKV)
	last := d.Table("kv_growth").Rows
	if got := *kv.Lines[0].Values[len(kv.X)-1]; got != float64(last[len(last)-1][4].(uint64)) {
		t.Errorf("the cache ends at %v", got)
	}
	b.Shot("long")
	b.Quiet()
}

// Names come from models and configs: they are text, whatever they hold.
func TestPageIsSafe(t *testing.T) {
	b := startBrowser(t)
	evil := `</script><script>document.title="owned"</script><img src=x onerror="document.title='owned'">`
	d := sample(smallRun[:1])
	d.Title, d.Summary = evil, []string{evil}
	d.Facts = []Fact{{evil, evil, evil}}
	d.Notes = []run.Note{{Code: evil, Severity: run.Wrong, Text: evil, Figures: []string{"metrics", evil}, Count: 1}}
	for i := range d.Tables {
		t := &d.Tables[i]
		for r := range t.Rows {
			if c := t.Index("region_type"); c >= 0 && t.Rows[r][c] == "runtime" {
				t.Rows[r][c] = evil
			}
		}
	}
	b.open(d, 1200, 900)
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("figures without data or paint: %v", bad)
	}
	var title, heading string
	var images int
	b.Eval(`document.title`, &title)
	b.Eval(`document.querySelector("h1").textContent`, &heading)
	b.Eval(`document.images.length`, &images)
	if title != evil || heading != evil || images != 0 {
		t.Errorf("title %q, heading %q, %d images", title, heading, images)
	}
	if fig := b.Drawn(figTraffic); fig.Read[3].Name != evil {
		t.Errorf("region drawn as %q", fig.Read[3].Name)
	}
	b.Quiet()
}

func TestScriptFormatsLikeCells(t *testing.T) {
	b := startBrowser(t)
	b.open(sample(smallRun[:1]), 1000, 700)
	xs := []float64{0, 1, 999, 1000, 1023, 1024, 23040, 1047000, 1048064, 96_600_000, 1 << 40, 0.5, 0.001, 2176, -2176, 18.5 * 1024 * 1024 / 10, 9.9996e-4, 1.125, 12.3e-6, 9.994e-7, 9.9999e-4, 119.99, 120, 7199, 7200, 1e6, 1e-10, -2048, 3e15}
	in, err := json.Marshal(xs)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Bytes, Seconds []string }
	b.Eval(fmt.Sprintf(`({bytes: %s.map(format.bytes), seconds: %s.map(format.seconds)})`, in, in), &got)
	for i, x := range xs {
		if w := human(x, "B"); got.Bytes[i] != w {
			t.Errorf("%v bytes: script %q, cell %q", x, got.Bytes[i], w)
		}
		if w := human(x, "s"); got.Seconds[i] != w {
			t.Errorf("%v seconds: script %q, cell %q", x, got.Seconds[i], w)
		}
	}
}

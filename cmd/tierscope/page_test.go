package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/internal/hist"
	"github.com/tierscope/tierscope/report/reporttest"
	"github.com/tierscope/tierscope/trace"
)

// tierscope runs the program in dir and returns what it printed.
func tierscope(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "tierscope", args...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr = dir, &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tierscope %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}

// observed runs the program on a model and returns the run directory.
func observed(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := fetch.Libs(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Runs []struct {
			RunDir string `json:"run_dir"`
			Valid  bool
		}
	}
	text := tierscope(t, dir, append([]string{"run", "--threads", "1", "--out", "out", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Runs) != 1 || !doc.Runs[0].Valid {
		t.Fatalf("run --json: %v\n%s", err, text)
	}
	return filepath.Join(dir, doc.Runs[0].RunDir)
}

// synthetic runs a small random model.
func synthetic(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	tierscope(t, dir, "model", "synth", "--out", "tiny.gguf", "--width", "64", "--vocab", "256", "--layers", "2", "--heads", "4", "--kv-heads", "2")
	return observed(t, dir, append([]string{"--model", "tiny.gguf", "--context", "256", "--tokens", "12", "--calibration-pairs", "4",
		"--prompt", "a first prompt of some length, so that it is seen", "--prompt", "a second one"}, args...)...)
}

func TestPageOfASyntheticRun(t *testing.T) {
	b := reporttest.Start(t)
	for _, c := range []struct {
		name string
		args []string
	}{{"plain", nil}, {"transposed cache", []string{"--flash-attn", "off"}}} {
		t.Run(c.name, func(t *testing.T) {
			run := synthetic(t, c.args...)
			c := countAgain(t, run, true)
			p := openPage(t, b, filepath.Join(run, "report.html"), run)
			p.files()
			p.counted(c)
			p.lifetimes(c)
			b.Quiet()
		})
	}
}

func TestPageOfARealRun(t *testing.T) {
	b := reporttest.Start(t)
	model, err := fetch.Model(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	run := observed(t, t.TempDir(), "--model", model, "--context", "256", "--tokens", "16", "--calibration-pairs", "5",
		"--prompt", "Why is the sky blue?", "--prompt", "Name three rivers.", "--prompt", "Count to five.")
	c := countAgain(t, run, false)
	p := openPage(t, b, filepath.Join(run, "report.html"), run)
	p.files()
	p.counted(c)
	for _, look := range []struct {
		scheme string
		width  int
	}{{"light", 1200}, {"dark", 1200}, {"light", 390}} {
		b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": look.scheme}}}, nil)
		b.Size(look.width, 900)
		b.Settle()
		if bad := b.EmptyFigures(); len(bad) > 0 {
			t.Errorf("%s, %d wide: figures without paint: %v", look.scheme, look.width, bad)
		}
		b.Shot("run-" + look.scheme + "-" + strconv.Itoa(look.width))
	}
	b.Quiet()

	// Drawn again from the log, the report is the same to the byte.
	again := tierscope(t, run, "report", "--input", ".")
	if page, err := os.ReadFile(filepath.Join(run, "report.html")); err != nil || string(page) != again {
		t.Errorf("report drawn again has %d bytes, the run's own %d (%v)", len(again), len(page), err)
	}
}

// A run that died before its first evaluation shows empty figures, not zeros.
func TestPageWithoutEvaluations(t *testing.T) {
	b := reporttest.Start(t)
	run := synthetic(t)
	path := filepath.Join(run, trace.GraphLogName)
	log, err := trace.OpenGraphLog(path)
	if err != nil {
		t.Fatal(err)
	}
	end := log.Offset()
	for kind := uint8(0); kind != trace.KindTemplate; {
		end = log.Offset()
		if kind, _, err = log.Next(); errors.Is(err, io.EOF) || err != nil {
			t.Fatal("no template in the log")
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, end); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(run, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	tierscope(t, run, "recover", ".")
	b.Open(filepath.Join(run, "report.html"), 1200, 900)
	if got := b.EmptyFigures(); !slices.Equal(got, []string{"traffic_by_token", "kv_growth", "lifetimes"}) {
		t.Errorf("empty figures: %v", got)
	}
	var text string
	b.Eval(`document.body.innerText`, &text)
	for _, want := range []string{"No data: table traffic_by_token has no rows.", "No data: table kv_growth has no rows.", "This run is not valid.",
		"killed before the run ended", "No graph was evaluated"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	var numbers []string
	b.Eval(`[...document.querySelectorAll("#summary [data-fact]")].map(e => e.dataset.fact)`, &numbers)
	if len(numbers) > 0 {
		t.Errorf("facts of a run that ran nothing: %q", numbers)
	}
	b.Shot("run-empty")
	b.Quiet()
}

// page is the open report of a run.
type page struct {
	*reporttest.Browser
	t   *testing.T
	run string
}

func openPage(t *testing.T, b *reporttest.Browser, file, run string) *page {
	t.Helper()
	b.Open(file, 1200, 900)
	if bad := b.EmptyFigures(); len(bad) > 0 {
		t.Errorf("figures without data or paint: %v", bad)
	}
	return &page{b, t, run}
}

// table reads a CSV file of the run.
func (p *page) table(name string) (head []string, rows [][]string) {
	p.t.Helper()
	f, err := os.Open(filepath.Join(p.run, name))
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 2 {
		p.t.Fatalf("%s: %d lines, %v", name, len(all), err)
	}
	return all[0], all[1:]
}

// same compares a cell of the page with one of a file: as numbers to the last bit,
// else as text.
func same(onPage *string, inFile string) bool {
	if onPage == nil || inFile == "" {
		return onPage == nil && inFile == ""
	}
	a, err1 := strconv.ParseFloat(*onPage, 64)
	b, err2 := strconv.ParseFloat(inFile, 64)
	if err1 == nil && err2 == nil {
		return a == b
	}
	return *onPage == inFile
}

// files compares every table of the page with the file of its name.
func (p *page) files() {
	p.t.Helper()
	var shown []string
	p.Eval(`[...document.querySelectorAll("table[data-table]")].map(t => t.dataset.table)`, &shown)
	compared := 0
	for _, name := range shown {
		file := "tables/" + name + ".csv"
		switch {
		case name == "metrics":
			file = "metrics.csv"
		case name == "layers", strings.HasSuffix(name, "_steps"):
			continue // drawn from tables that have files: compared below
		}
		head, want := p.table(file)
		columns, got := p.Table(name)
		if !slices.Equal(columns, head) || len(got) != min(len(want), 400) {
			p.t.Errorf("%s: the page has %d rows of %v, the file %d of %v", name, len(got), columns, len(want), head)
			continue
		}
		for r := range got {
			for c := range columns {
				if !same(got[r][c], want[r][c]) {
					p.t.Errorf("%s, row %d, %s: the page has %v, the file %q", name, r, columns[c], got[r][c], want[r][c])
				}
			}
		}
		compared++
	}
	if compared < 7 {
		p.t.Errorf("only %d tables on the page have a file: %v", compared, shown)
	}
	var weakened []string
	p.Eval(`[...document.querySelectorAll("#notes .where")].flatMap(w => [...w.querySelectorAll("code")].slice(1).map(c => c.textContent))
		.filter(n => !document.querySelector('[data-table="' + n + '"], [data-figure="' + n + '"]'))`, &weakened)
	if len(weakened) > 0 {
		p.t.Errorf("notes weaken figures that the page does not have: %q", weakened)
	}
	head, rows := p.table("tables/traffic_by_token.csv")
	fig := p.Drawn("traffic_by_token")
	for _, row := range rows {
		at := slices.Index(fig.X, p.float(row[slices.Index(head, "step")]))
		for i := range fig.Read {
			if fig.Read[i].Name == row[slices.Index(head, "region_type")] {
				p.equal("drawn, step "+row[0]+", "+fig.Read[i].Name, []float64{fig.Read[i].Values[at], fig.Written[i].Values[at]},
					[]float64{p.float(row[slices.Index(head, "bytes_read")]), p.float(row[slices.Index(head, "bytes_written")])})
			}
		}
	}
	head, rows = p.table("tables/kv_growth.csv")
	kv := p.Drawn("kv_growth")
	for i, row := range rows {
		for _, l := range kv.Lines {
			p.equal("drawn, KV step "+row[0]+", "+l.Name, []float64{*l.Values[i]}, []float64{p.float(row[slices.Index(head, l.Name)])})
		}
	}
}

func (p *page) float(s string) float64 {
	p.t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return x
}

func (p *page) equal(what string, got, want []float64) {
	p.t.Helper()
	if !slices.Equal(got, want) {
		p.t.Errorf("%s: the page has %v, counted again it is %v", what, got, want)
	}
}

// fact reads a figure beside the summary.
func (p *page) fact(name string) float64 {
	p.t.Helper()
	var v string
	p.Eval(`document.querySelector('#summary [data-fact="`+name+`"]').dataset.value`, &v)
	return p.float(v)
}

// each calls f with the cells of each row of a table by column name; a missing cell
// is "".
func (p *page) each(table string, f func(cell func(string) string)) {
	p.t.Helper()
	columns, rows := p.Table(table)
	if len(rows) == 0 {
		p.t.Errorf("%s has no rows on the page", table)
	}
	for _, r := range rows {
		f(func(column string) string {
			if v := r[slices.Index(columns, column)]; v != nil {
				return *v
			}
			return ""
		})
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// counted compares the page with what the Parquet files say.
func (p *page) counted(c *recount) {
	p.t.Helper()
	decodes := float64(len(c.decodes))
	fig := p.Drawn("traffic_by_token")
	if len(fig.X) != len(c.phases) {
		p.t.Errorf("%d steps are drawn, the trace has %d", len(fig.X), len(c.phases))
	}
	for i, x := range fig.X {
		for r := range fig.Read {
			d := c.steps[[2]string{number(uint64(x)), fig.Read[r].Name}]
			p.equal("step "+number(uint64(x))+", "+fig.Read[r].Name, []float64{fig.Read[r].Values[i], fig.Written[r].Values[i]},
				[]float64{float64(d.read), float64(d.written)})
		}
	}
	kv := p.Drawn("kv_growth")
	for i, x := range kv.X {
		step := number(uint64(x))
		d := c.steps[[2]string{step, "kv_cache"}]
		p.equal("KV at step "+step, []float64{*kv.Lines[0].Values[i], *kv.Lines[1].Values[i], *kv.Lines[2].Values[i]},
			[]float64{float64(c.inUse[step]), float64(d.read), float64(d.padding)})
	}
	seen := 0
	p.each("traffic_by_region", func(cell func(string) string) {
		class := cell("region_type")
		d, one := c.regions[class], c.decode[class]
		p.equal(class, []float64{p.float(cell("bytes_read")), p.float(cell("bytes_written")), p.float(cell("padding_bytes_read")),
			p.float(cell("decode_bytes_read_per_token")), p.float(cell("decode_bytes_written_per_token"))},
			[]float64{float64(d.read), float64(d.written), float64(d.padding), float64(one.read) / decodes, float64(one.written) / decodes})
		seen++
	})
	if seen != len(c.regions) {
		p.t.Errorf("%d regions on the page, %d in the trace", seen, len(c.regions))
	}
	seen = 0
	p.each("traffic_by_layer", func(cell func(string) string) {
		k := [2]string{cell("layer"), cell("region_type")}
		d := c.layers[k]
		p.equal("layer "+k[0]+", "+k[1], []float64{p.float(cell("bytes_read")), p.float(cell("bytes_written")), p.float(cell("decode_bytes_read_per_token"))},
			[]float64{float64(d.read), float64(d.written), float64(c.dlayers[k].read) / decodes})
		seen++
	})
	if seen != len(c.layers) {
		p.t.Errorf("%d rows by layer on the page, %d in the trace", seen, len(c.layers))
	}
	p.each("layers", func(cell func(string) string) {
		sum := 0.0
		for class := range c.regions {
			sum += float64(c.dlayers[[2]string{cell("layer"), class}].read) / decodes
		}
		if got := p.float(cell("decode_bytes_read_per_token")); math.Abs(got-sum) > 1e-12*sum {
			p.t.Errorf("layer %s: the page has %v, counted again it is %v", cell("layer"), got, sum)
		}
	})
	named := map[string]bytesMoved{}
	for id, d := range c.objects {
		o := c.known[id]
		add(named, o.Name+" "+number(o.Size), d)
	}
	p.each("objects", func(cell func(string) string) {
		d, ok := named[cell("name")+" "+cell("size")]
		if moved := p.float(cell("bytes_read")) + p.float(cell("bytes_written")); !ok || moved > float64(d.read+d.written) {
			p.t.Errorf("object %s of %s bytes moved %v, counted again %v", cell("name"), cell("size"), moved, d)
		}
	})
	p.equal("facts", []float64{p.fact("tokens generated"), p.fact("weights read per token"), p.fact("KV cache read per token"), p.fact("KV cache written per token"), p.fact("KV cache at its fullest")},
		[]float64{float64(c.tokens), float64(c.decode["weight"].read) / decodes, float64(c.decode["kv_cache"].read) / decodes,
			float64(c.decode["kv_cache"].written) / decodes, float64(c.peak)})
}

// lifetimes compares with what following every byte says.
func (p *page) lifetimes(c *recount) {
	p.t.Helper()
	seen := 0
	p.each("lifetime_by_region", func(cell func(string) string) {
		l := c.lives[cell("region_type")]
		if l == nil {
			p.t.Errorf("%s has lifetimes on the page only", cell("region_type"))
			return
		}
		seen++
		p.equal("bytes of "+cell("region_type"), []float64{p.float(cell("bytes_total")), p.float(cell("never_read_bytes")), p.float(cell("open_bytes"))},
			[]float64{float64(l.total), float64(l.never), float64(l.open)})
		for name, q := range map[string]float64{"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99} {
			if got := p.float(cell(name)); !l.quantile(q, got, hist.RelativeError) {
				p.t.Errorf("%s of %s: the page has %v s, byte by byte it is not that", name, cell("region_type"), got)
			}
		}
		p.equal("longest of "+cell("region_type"), []float64{p.float(cell("max_s"))}, []float64{l.longest()})
	})
	for _, l := range c.lives {
		if l.total == 0 {
			seen++ // only read: nothing was written that could live
		}
	}
	if seen != len(c.lives) {
		p.t.Errorf("lifetimes of %d regions on the page, %d in the trace", seen, len(c.lives))
	}
}

package report

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// svgContent returns the colours that a drawing fills and strokes with, and its
// texts. A drawing that is not XML fails the test.
func svgContent(t *testing.T, path string) (colors map[string]int, texts []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	colors = map[string]int{}
	for d := xml.NewDecoder(f); ; {
		tok, err := d.Token()
		if err == io.EOF {
			return colors, texts
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch e := tok.(type) {
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" {
				texts = append(texts, s)
			}
		case xml.StartElement:
			for _, a := range e.Attr {
				for _, s := range strings.Split(a.Value, ";") {
					if k, v, ok := strings.Cut(s, ":"); ok && (k == "fill" || k == "stroke") {
						colors[v]++
					}
				}
			}
		}
	}
}

func TestFiguresShowTheTables(t *testing.T) {
	dir := t.TempDir()
	d := sample(smallRun)
	paths, err := Figures(dir, d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	want := []string{"traffic_by_token.svg", "traffic_by_token.csv", "kv_growth.svg", "kv_growth.csv", "lifetimes.svg", "lifetimes.csv"}
	if !slices.Equal(names, want) {
		t.Errorf("files: %v", names)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != len(want) {
		t.Errorf("the folder has %d entries: %v", len(there), err)
	}
	for name, c := range map[string]struct {
		colors, texts []string
	}{
		"traffic_by_token": {[]string{"#0072B2", "#D55E00", "#009E73"}, []string{"weights", "KV cache", "activations", "step", "96 MiB"}},
		"kv_growth":        {[]string{"#D55E00", "#1C2126", "#5D6770"}, []string{"in use", "padding beside it", "12 MiB"}},
		"lifetimes":        {[]string{"#0072B2", "#D55E00", "#009E73", "#CC79A7"}, []string{"lifetime", "100 %", "1 ms"}},
	} {
		colors, texts := svgContent(t, filepath.Join(dir, name+".svg"))
		for _, k := range c.colors {
			if colors[k] < 2 { // once in the legend, once in the plot
				t.Errorf("%s: colour %s is used %d times", name, k, colors[k])
			}
		}
		for _, k := range c.texts {
			if !slices.Contains(texts, k) {
				t.Errorf("%s: no text %q in %q", name, k, texts)
			}
		}
	}

	tab := d.Table("traffic_by_token")
	rows := readCSV(t, filepath.Join(dir, "traffic_by_token.csv"))
	if len(rows) != 304 {
		t.Fatalf("traffic_by_token.csv has %d lines", len(rows))
	}
	for _, row := range tab.Rows {
		c := slices.Index(rows[0], row[4].(string)+"_read")
		if got := rows[1+row[0].(uint64)][c]; got != strconv.FormatUint(row[5].(uint64), 10) {
			t.Errorf("step %v, %s: the CSV says %s, the table %v", row[0], row[4], got, row[5])
		}
	}
	for i, row := range readCSV(t, filepath.Join(dir, "kv_growth.csv"))[1:] {
		if want := d.Table("kv_growth").Rows[i]; row[4] != raw(want[4]) || row[6] != raw(want[6]) {
			t.Errorf("kv_growth.csv, line %d: %v, not %v", i+2, row, want)
		}
	}
	life := readCSV(t, filepath.Join(dir, "lifetimes.csv"))
	for c, share := range life[len(life)-1][1:] {
		if x, err := strconv.ParseFloat(share, 64); err != nil || math.Abs(x-1) > 1e-12 {
			t.Errorf("lifetimes.csv: %s ends at %s", life[0][c+1], share)
		}
	}

	// Nothing is overwritten.
	if _, err := Figures(dir, d); run.ClassOf(err) != run.Misuse || !strings.Contains(err.Error(), "traffic_by_token.svg exists") {
		t.Errorf("a second time: %v", err)
	}
	if _, err := Figures(filepath.Join(dir, "none"), d); run.ClassOf(err) != run.IO || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no folder: %v", err)
	}
}

func TestFiguresOfEmptySeriesFail(t *testing.T) {
	for _, table := range []string{"traffic_by_token", "kv_growth", "lifetime_distribution"} {
		figure := strings.Replace(table, "lifetime_distribution", figLifetime, 1)
		for name, empty := range map[string]func(*analyze.Table){
			"no rows":    func(t *analyze.Table) { t.Rows = nil },
			"no numbers": func(t *analyze.Table) { clearNumbers(t) },
			"no table":   func(t *analyze.Table) { t.Name = "other" },
			"no column":  func(t *analyze.Table) { t.Columns[len(t.Columns)-3].Name, t.Columns[len(t.Columns)-1].Name = "x", "y" },
		} {
			d, dir := sample(smallRun[:1]), t.TempDir()
			empty(d.Table(table))
			_, err := Figures(dir, d)
			if run.ClassOf(err) != run.Invalid || !strings.Contains(err.Error(), "figure "+figure+" has no data: ") {
				t.Errorf("%s, %s: %v", table, name, err)
			}
			if there, _ := os.ReadDir(dir); len(there) > 0 {
				t.Errorf("%s, %s: %v was written", table, name, there)
			}
		}
	}
}

func clearNumbers(t *analyze.Table) {
	for _, row := range t.Rows {
		for c := range row {
			if _, ok := number(row[c]); ok {
				row[c] = nil
			}
		}
	}
}

// Odd but legal tables are drawn, not refused and not a panic.
func TestFiguresOfOddTables(t *testing.T) {
	one := func(name string, columns []analyze.TableColumn, rows ...[]any) analyze.Table {
		return analyze.Table{Name: name, Columns: columns, Rows: rows}
	}
	d := &Data{Tables: []analyze.Table{
		one("traffic_by_token", cols("step", "region_type", "bytes_read", "bytes_written"), []any{uint64(7), "mine", uint64(0), nil}),
		one("kv_growth", cols("step", "bytes_in_use"), []any{uint64(7), 0.0}, []any{uint64(3), 5.0}),
		one("lifetime_distribution", cols("region_type", "lower_s", "upper_s", "bytes"), []any{"mine", 0.0, 0.0, uint64(1)},
			[]any{"yours", 2.0, math.Inf(1), 5.0}, []any{nil, 0.0, 1.0, 5.0}),
	}}
	if _, err := Figures(t.TempDir(), d); err != nil {
		t.Error(err)
	}
	render(t, d)
}

func TestThinKeepsEveryPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "points")
		limit := rapid.IntRange(4, 500).Draw(t, "limit")
		many := rapid.IntRange(1, 200).Draw(t, "points a phase")
		phase := make([]string, n)
		values := make([]float64, n)
		sum := 0.0
		for i := range phase {
			phase[i] = []string{"prefill", "decode"}[i/many%2]
			values[i] = float64(i * i)
			sum += values[i]
		}
		b := thin(phase, n, limit)
		// A change of phase may cost a bucket beyond the limit.
		if len(b) > max(limit+limit/4, 1) {
			t.Fatalf("%d buckets for a limit of %d", len(b), limit)
		}
		at, got := 0, 0.0
		mean := means(values, b)
		for i, k := range b {
			if k.from != at || k.to <= k.from {
				t.Fatalf("bucket %v after %d", k, at)
			}
			at = k.to
			got += mean[i] * float64(k.to-k.from)
		}
		if at != n || math.Abs(got-sum) > 1e-9*sum {
			t.Fatalf("buckets end at %d of %d; they stand for %v of %v", at, n, got, sum)
		}
		changes := (n - 1) / many
		for i, p := range phases(phase, b) {
			if changes <= limit/4 && p != phase[b[i].from] || p == "mixed" && n <= limit {
				t.Fatalf("bucket %v is %s", b[i], p)
			}
		}
	})
}

func TestLifetimeShares(t *testing.T) {
	d := &Data{Tables: []analyze.Table{{Name: "lifetime_distribution", Columns: cols("region_type", "lower_s", "upper_s", "bytes"), Rows: [][]any{
		{"weight", 1.0, 10.0, uint64(10)},
		{"kv_cache", 0.1, 1.0, uint64(30)}, {"kv_cache", 1.0, 10.0, uint64(10)},
		{"activation", 0.0, 0.1, uint64(3)}, {"activation", 0.1, 1.0, uint64(1)},
	}}}}
	l, err := lifetimeSeries(d)
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for r, want := range map[string]struct{ share, bytes []float64 }{
		"weight":     {[]float64{0, 0, 0, 1}, []float64{nan, nan, 10, nan}},
		"kv_cache":   {[]float64{0, 0, .75, 1}, []float64{nan, 30, 10, nan}},
		"activation": {[]float64{0, .75, 1, 1}, []float64{3, 1, nan, nan}},
	} {
		i := slices.Index(l.Regions, r)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !slices.EqualFunc(l.Share[i], want.share, same) || !slices.EqualFunc(l.Bytes[i], want.bytes, same) {
			t.Errorf("%s: shares %v, bytes %v", r, l.Share[i], l.Bytes[i])
		}
	}
	if !slices.Equal(l.Edges, []float64{1e-9, .1, 1, 10}) {
		t.Errorf("edges %v", l.Edges)
	}
}

func BenchmarkRender(b *testing.B) {
	d := sample([]request{{500, 100_000, false}})
	for b.Loop() {
		if err := Render(io.Discard, d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_001, "ns/step")
}

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

func render(t *testing.T, d *Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVendoredFilesAreUnchanged(t *testing.T) {
	for name, want := range map[string]string{
		"vendor/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"vendor/uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		sum := sha256.Sum256([]byte(asset(name)))
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s has SHA-256 %s, not that of uplot 1.6.32", name, got)
		}
	}
	if !strings.Contains(asset("vendor/uPlot.LICENSE"), "MIT License") {
		t.Error("the licence of uPlot is not beside it")
	}
}

// Each script and style of the page is named by hash, and nothing else may load.
func TestPolicyNamesWhatIsInThePage(t *testing.T) {
	page := render(t, sample(smallRun[:1]))
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil || !strings.HasPrefix(policy[1], "default-src &#39;none&#39;;") && !strings.HasPrefix(policy[1], "default-src 'none';") {
		t.Fatalf("policy: %q", policy)
	}
	allowed := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1])
	inside := regexp.MustCompile(`(?s)<(?:script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(page, -1)
	if len(inside) != len(styles)+len(scripts) {
		t.Errorf("%d scripts and styles in the page, %d embedded", len(inside), len(styles)+len(scripts))
	}
	for _, m := range inside {
		sum := sha256.Sum256([]byte(m[1]))
		if !strings.Contains(allowed, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("the policy does not allow %.60q", m[1])
		}
	}
	for _, bad := range []string{"unsafe-inline", "unsafe-eval", "http:", "https:", "*"} {
		if strings.Contains(allowed, bad) {
			t.Errorf("the policy has %q", bad)
		}
	}
	markup := regexp.MustCompile(`(?s)<(script|style)[^>]*>.*?</(script|style)>`).ReplaceAllString(page, "")
	if m := regexp.MustCompile(`(?i)\s(src|srcset|data|action|style|on[a-z]+)=|<link|<iframe|<img|<object|<base`).FindString(markup); m != "" {
		t.Errorf("the page has %q", m)
	}
	for _, m := range inside {
		if bad := regexp.MustCompile(`@import|url\(|\bfetch\(|XMLHttpRequest|\bimport\(|WebSocket|sendBeacon|\beval\(`).FindString(m[1]); bad != "" {
			t.Errorf("%.40q has %q", m[1], bad)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "#") || !strings.Contains(page, `id="`+m[1][1:]+`"`) {
			t.Errorf("a link leads to %q", m[1])
		}
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	once, again := render(t, sample(smallRun)), render(t, sample(smallRun))
	if once != again {
		t.Error("the same data gives two pages")
	}
}

func TestNotesStandBesideWhatTheyWeaken(t *testing.T) {
	d := sample(smallRun)
	d.Notes = []run.Note{
		{Code: "general", Severity: run.Info, Text: "about nothing"},
		{Code: "on_table", Severity: run.Warning, Text: "about a table", Figures: []string{"traffic_by_region"}},
		{Code: "on_column", Severity: run.Warning, Text: "about a column", Figures: []string{"lifetime_by_region.p99_s"}},
		{Code: "on_fact", Severity: run.Wrong, Text: "about a fact", Figures: []string{"decode speed"}, Count: 4321},
		{Code: "on_figure", Severity: run.Warning, Text: "about a figure", Figures: []string{"kv_growth", "lifetimes"}},
	}
	page := render(t, d)
	between := func(from, to string) string {
		_, rest, ok := strings.Cut(page, from)
		part, _, ok2 := strings.Cut(rest, to)
		if !ok || !ok2 {
			t.Fatalf("no part of the page from %q to %q", from, to)
		}
		return part
	}
	for _, c := range []struct{ from, to, has string }{
		{`<aside class="invalid"`, "</aside>", "about a fact"},
		{`data-fact="decode speed"`, "</div>", `<a href="#note-1">Note 1</a> about a fact`},
		{`<section id="regions"`, "<figure|<table", "about a table"},
		{`<section id="lifetime"`, "<figure", "about a column"},
		{`<section id="lifetime"`, "<figure", "about a figure"},
		{`<section id="kv"`, "<figure", "about a figure"},
		{`data-column="p99_s"`, "</th>", `href="#note-3"`},
		{`id="note-1"`, "</li>", "(4,321)"},
		{`id="note-5"`, "</li>", "no figure depends on it"},
	} {
		to, _, _ := strings.Cut(c.to, "|")
		if strings.Contains(c.to, "|") {
			to = "<table"
		}
		if got := between(c.from, to); !strings.Contains(got, c.has) {
			t.Errorf("from %s: no %q in %.300q", c.from, c.has, got)
		}
	}
	if got := between(`data-column="p50_s"`, "</th>"); strings.Contains(got, "note") {
		t.Errorf("a note on p99 marks p50: %s", got)
	}
	if got := between(`<section id="traffic"`, "</section>"); strings.Contains(got, "Note ") {
		t.Error("the traffic has a note that is not about it")
	}
	all := between(`<ol class="notes">`, "</ol>")
	for _, n := range d.Notes {
		if strings.Count(all, n.Text) != 1 {
			t.Errorf("the list of notes has %q %d times", n.Text, strings.Count(all, n.Text))
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	good := analyze.Table{Name: "t", Columns: []analyze.TableColumn{{Name: "a"}}}
	for _, c := range []struct {
		name string
		d    Data
		has  string
	}{
		{"a name twice", Data{Tables: []analyze.Table{good, good}}, `table 1: the name "t" is empty or used twice`},
		{"no name", Data{Tables: []analyze.Table{{}}}, "is empty or used twice"},
		{"a short row", Data{Tables: []analyze.Table{withRows(good, []any{})}}, "table t: row 0 has 0 cells, the table has 1 columns"},
		{"a wrong type", Data{Tables: []analyze.Table{withRows(good, []any{nil}, []any{int32(1)})}}, "table t: row 1, column a: a cell cannot be a int32"},
		{"a wrong fact", Data{Facts: []Fact{{"f", []byte{}, ""}}}, `fact "f": a value cannot be a []uint8`},
		{"a wrong fact of the machine", Data{Machine: []Fact{{"m", 1, ""}}}, `fact "m": a value cannot be a int`},
	} {
		err := Render(io.Discard, &c.d)
		if err == nil || !strings.Contains(err.Error(), c.has) || run.ClassOf(err) != run.Invalid {
			t.Errorf("%s: %v, class %d", c.name, err, run.ClassOf(err))
		}
	}
}

type brokenPipe struct{ left int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestRenderReturnsWriteErrors(t *testing.T) {
	d := sample(smallRun)
	size := len(render(t, d))
	for _, left := range []int{0, size / 2, size - 1} {
		if err := Render(&brokenPipe{left}, d); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after %d of %d bytes: %v", left, size, err)
		}
	}
}

func TestLongTablesSayThatTheyAreCut(t *testing.T) {
	big := analyze.Table{Name: "objects", Columns: []analyze.TableColumn{{Name: "id"}}}
	for i := range uint64(1234) {
		big.Rows = append(big.Rows, []any{i})
	}
	page := render(t, &Data{Tables: []analyze.Table{big}})
	if !strings.Contains(page, "The first 400 of 1,234 rows.") || strings.Count(page, `<td data-value=`) != 400 {
		t.Error("a table of 1,234 rows is not cut to 400, or does not say so")
	}
}

func TestHuman(t *testing.T) {
	for _, c := range []struct {
		v    any
		unit string
		want string
	}{
		{nil, "B", "–"}, {"", "", "–"}, {"text", "B", "text"}, {true, "", "yes"}, {false, "", "no"},
		{uint64(0), "B", "0 B"}, {uint64(1023), "B", "1,023 B"}, {uint64(1024), "B", "1.00 KiB"}, {uint64(23040), "B/token", "22.5 KiB/token"},
		{uint64(96_600_000), "B", "92.1 MiB"}, {uint64(1048063), "B", "1,023 KiB"}, {uint64(1048064), "B", "1.00 MiB"},
		{uint64(math.MaxUint64), "B", "16.0 EiB"}, {uint64(math.MaxUint64), "", "18,446,744,073,709,551,615"}, {int64(-2048), "B", "−2.00 KiB"},
		{0.0, "s", "0 s"}, {38e-6, "s", "38.0 µs"}, {9.9996e-4, "s", "1.00 ms"}, {uint64(2176), "B", "2.13 KiB"}, {1.5e-9, "s", "1.50 ns"}, {119.0, "s", "119 s"}, {120.0, "s", "2.00 min"}, {7200.0, "s", "2.00 h"},
		{uint64(1500), "ns", "1.50 µs"}, {int64(12), "ms", "12.0 ms"}, {2.0, "us", "2.00 µs"},
		{0.99812, "", "0.9981"}, {1.0, "", "1"}, {1234567.0, "", "1,234,567"}, {-1234.5, "", "−1,235"}, {1e20, "", "1.000e+20"}, {1.23e-7, "", "1.230e−7"},
		{math.Inf(1), "s", "∞"}, {math.Inf(-1), "", "−∞"}, {math.NaN(), "", "not a number"}, {int64(7), "pages", "7"},
	} {
		if got := human(c.v, c.unit); got != c.want {
			t.Errorf("human(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{"bytes_read": "Bytes read", "kv_block": "KV block", "p50_s": "p50", "retention_p99_s": "Retention p99",
		"n_regions": "Number of regions", "step": "Step", "s": "S", "iai_mean_ns": "IAI mean", "": "", "évict": "évict"} {
		if got := words(in); got != want {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}

package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/internal/hist"
	"github.com/tierscope/tierscope/run"
)

// page is what the template prints.
type page struct {
	Policy   string
	Styles   []template.CSS
	Scripts  []template.JS
	Title    string
	Version  string
	Summary  []string
	Facts    []factView
	Sections []section
	Notes    []noteView
	Wrong    []noteView // those that make figures wrong or incomplete
	Machine  []factView
	Method   []string

	classes  map[string]string // colour class of regions that are not known
	withheld map[string]string
}

type factView struct {
	Name, Text, Raw, Unit string
	Missing               bool
	Notes                 []noteView
}

// section is a heading with what stands under it: notes first, then figures and
// tables.
type section struct {
	ID, Title string
	Notes     []noteView
	Figure    *figureView
	Tables    []*tableView
}

// known are the tables that have their place on the page.
var known = []string{"traffic_by_token", "traffic_by_layer", "traffic_by_region", "kv_growth", "kv_blocks",
	"lifetime_by_region", "lifetime_distribution", "objects", "metrics"}

func newPage(d *Data) *page {
	p := &page{Policy: policy, Styles: styles, Scripts: scripts, Title: d.Title, Version: run.Version,
		Summary: d.Summary, Method: d.Method, Notes: numbered(d.Notes), classes: map[string]string{}, withheld: d.Withheld}
	for _, n := range p.Notes {
		if n.Severity == run.Wrong {
			p.Wrong = append(p.Wrong, n)
		}
	}
	p.Facts, p.Machine = p.facts(d.Facts), p.facts(d.Machine)
	t := d.Table
	add := func(id, title string, fig *figureView, used []*analyze.Table, tables ...*tableView) {
		s := section{ID: id, Title: title, Figure: fig, Tables: tables}
		names := []string{id}
		if fig != nil {
			names = append(names, fig.Name)
		}
		s.Notes = naming(p.Notes, names...)
		for _, u := range used {
			if u == nil {
				continue
			}
			for _, n := range onTable(p.Notes, u) {
				if !slices.ContainsFunc(s.Notes, func(m noteView) bool { return m.N == n.N }) {
					s.Notes = append(s.Notes, n)
				}
			}
		}
		slices.SortFunc(s.Notes, func(a, b noteView) int { return a.N - b.N })
		p.Sections = append(p.Sections, s)
	}

	byRegion := t("traffic_by_region")
	add("traffic", "Traffic by region", p.trafficFigure(d), []*analyze.Table{t("traffic_by_token")})
	add("kv", "Growth of the KV cache", p.kvFigure(d), []*analyze.Table{t("kv_growth"), t("kv_blocks")},
		p.tableOf(t("kv_blocks"), "kv_blocks", "Blocks of the KV cache", "A block is some cells in a row; it has a line for each of its lives, from its first write to when it was freed. Times count from the first access of the run.").maybe(t("kv_blocks")))
	life := t("lifetime_by_region")
	lifeView := p.tableOf(life, "lifetime_by_region", "Lifetimes by region",
		fmt.Sprintf("Quantiles are weighted by bytes; they come from buckets and lie within %.1f %% of the true value. Never read bytes were written in vain. "+
			"Open bytes were still alive when the run ended: their lifetimes are lower bounds.", 100*hist.RelativeError))
	add("lifetime", "Lifetime of values", p.lifetimeFigure(d), []*analyze.Table{life, t("lifetime_distribution")}, barred(lifeView, life, "bytes_total"))
	layers := t("traffic_by_layer")
	long := p.tableOf(layers, "traffic_by_layer", "Every layer and region", "").maybe(layers).folded()
	add("layers", "Traffic by layer", nil, []*analyze.Table{layers}, p.layerTable(layers), long)
	regionView := p.tableOf(byRegion, "traffic_by_region", "Bytes moved by region", "Sums over the run, and what one decode token moves.")
	add("regions", "Regions", nil, []*analyze.Table{byRegion, t("objects")}, barred(regionView, byRegion, "decode_bytes_read_per_token"),
		p.tableOf(t("objects"), "objects", "Busiest objects", "Those whose bytes were read and written most. All of them are in traffic_by_object.csv and objects.parquet.").maybe(t("objects")))
	add("metrics", "Metrics of mrm-trace", nil, []*analyze.Table{t("metrics")},
		p.tableOf(t("metrics"), "metrics", "Summary by region type", "The figures of metrics.csv as mrm-trace defines them, unweighted over regions. Retention runs from a region's first write to its last read."))

	var rest []*analyze.Table
	var views []*tableView
	for i := range d.Tables {
		if k := &d.Tables[i]; !slices.Contains(known, k.Name) {
			rest = append(rest, k)
			views = append(views, p.tableOf(k, k.Name, words(k.Name), ""))
		}
	}
	if len(rest) > 0 {
		add("more", "Further tables", nil, rest, views...)
	}
	return p
}

// maybe leaves out a table that a run need not have: nil if there is none.
func (v *tableView) maybe(t *analyze.Table) *tableView {
	if t == nil {
		return nil
	}
	return v
}

func barred(v *tableView, t *analyze.Table, column string) *tableView {
	if t == nil {
		return v
	}
	return v.bars(t, column)
}

func (p *page) facts(facts []Fact) []factView {
	var out []factView
	for _, f := range facts {
		out = append(out, factView{Name: f.Name, Text: Format(f.Value, f.Unit), Raw: raw(f.Value), Unit: f.Unit,
			Missing: f.Value == nil, Notes: naming(p.Notes, f.Name)})
	}
	return out
}

// color returns the CSS class that stands for the colour of a region type: the
// same for a known type on every page.
func (p *page) color(region string) string {
	if slices.Contains(regionOrder, region) {
		return region
	}
	c, ok := p.classes[region]
	if !ok {
		c = []string{"other0", "other1", "other2"}[len(p.classes)%3]
		p.classes[region] = c
	}
	return c
}

// Package report turns the tables of a run into what people read: one page that
// opens offline, and static figures for a paper.
//
// The page is one HTML file. It loads nothing: scripts and styles are inside and
// named by hash in its content security policy, so no other code can run. Every
// table cell carries its raw number as data-value (empty = missing, +Inf =
// unbounded), next to the text that people read. Every figure is
//
//	<figure data-figure="kv_growth" data-empty="false">
//
// and is drawn from the JSON in <script type="application/json"
// id="data-kv_growth">, which holds exactly the points that are drawn. A figure
// without data says why and has data-empty="true".
package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

// Fact is one named figure. Value is what a cell of an [analyze.Table] can be;
// nil is printed as missing.
type Fact struct {
	Name  string
	Value any
	Unit  string // as in [analyze.TableColumn]
}

// Data is what a report is made of. Tables that the page knows by name get a
// section or figure of their own; all others are shown as they are. Notes stand
// beside the tables, columns ("column" or "table.column") and facts that their
// Figures name.
type Data struct {
	Title   string
	Summary []string // plain sentences, most important first
	Facts   []Fact
	Tables  []analyze.Table
	Notes   []run.Note
	Machine []Fact
	Method  []string // plain sentences: how the figures came about
	// Withheld says of tables that are missing why they cannot be known, by
	// name; the page prints it in their place.
	Withheld map[string]string
}

// Table returns the table called name, or nil.
func (d *Data) Table(name string) *analyze.Table {
	for i := range d.Tables {
		if d.Tables[i].Name == name {
			return &d.Tables[i]
		}
	}
	return nil
}

// Render writes the page. The same data gives the same bytes. Apart from errors
// of w, which are returned wrapped, it fails with class [run.Invalid] on data
// that cannot be shown: two tables of one name, a row that is not as wide as its
// table, a cell of a type that [analyze.Table] does not allow. Nothing of d is
// changed or kept.
func Render(w io.Writer, d *Data) error {
	if err := d.check(); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := pageTemplate.Execute(b, newPage(d)); err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	return nil
}

// check finds what would make a page that lies by omission.
func (d *Data) check() error {
	seen := map[string]bool{}
	for i := range d.Tables {
		t := &d.Tables[i]
		if t.Name == "" || seen[t.Name] {
			return run.Errorf(run.Invalid, "report: table %d: the name %q is empty or used twice", i, t.Name)
		}
		seen[t.Name] = true
		for r, row := range t.Rows {
			if len(row) != len(t.Columns) {
				return run.Errorf(run.Invalid, "report: table %s: row %d has %d cells, the table has %d columns",
					t.Name, r, len(row), len(t.Columns))
			}
			for c, v := range row {
				if !cellType(v) {
					return run.Errorf(run.Invalid, "report: table %s: row %d, column %s: a cell cannot be a %T",
						t.Name, r, t.Columns[c].Name, v)
				}
			}
		}
	}
	for _, f := range append(d.Facts[:len(d.Facts):len(d.Facts)], d.Machine...) {
		if !cellType(f.Value) {
			return run.Errorf(run.Invalid, "report: fact %q: a value cannot be a %T", f.Name, f.Value)
		}
	}
	return nil
}

func cellType(v any) bool {
	switch v.(type) {
	case nil, int64, uint64, float64, string, bool:
		return true
	}
	return false
}

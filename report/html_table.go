package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/analyze"
)

// tableLimit is the number of rows that a table on the page has at most.
const tableLimit = 400

// tableView is a table as the template prints it.
type tableView struct {
	Name    string
	Title   string
	Text    string // how to read it
	Columns []columnView
	Rows    [][]cellView
	Cut     string // says that rows were left out
	Why     string // why there is nothing; "" = there is something
	Folded  bool   // behind a line to click on
}

type columnView struct {
	Name, Label, Unit string
	Numeric           bool
	Quality           string // exactness, where it is not exact
	Notes             []noteView
}

type cellView struct {
	Raw, Text string
	Missing   bool
	Long      bool   // may wrap
	Region    string // class of the colour of the region that the cell names
	Bar       []barPart
}

// barPart is a piece of a bar; positions in percent of the longest bar.
type barPart struct{ Class, X, Width string }

// tableOf returns the view of t; a nil or empty table gives a view that says why.
func (p *page) tableOf(t *analyze.Table, name, title, text string) *tableView {
	v := &tableView{Name: name, Title: title, Text: text}
	switch {
	case t == nil && p.withheld[name] != "":
		v.Why = p.withheld[name]
		return v
	case t == nil:
		v.Why = "the run has no table " + name
		return v
	case len(t.Rows) == 0:
		v.Why = "table " + name + " has no rows"
		return v
	}
	region := t.Index("region_type")
	for c, col := range t.Columns {
		k := columnView{Name: col.Name, Label: words(col.Name), Unit: unitOf(col), Numeric: numeric(t, c), Notes: onColumn(p.Notes, t.Name, col.Name)}
		if unitInText(k.Unit) {
			_, per, _ := strings.Cut(k.Unit, "/")
			if k.Unit = ""; per != "" && !strings.HasSuffix(col.Name, "_per_"+per) {
				k.Unit = "per " + per
			}
		}
		if col.Exactness != "" && col.Exactness != analyze.Exact {
			k.Quality = string(col.Exactness)
		}
		v.Columns = append(v.Columns, k)
	}
	// The cells say the unit that fits; what it is per stands in the heading.
	units := make([]string, len(t.Columns))
	for c, col := range t.Columns {
		units[c] = unitOf(col)
		if base, _, _ := strings.Cut(units[c], "/"); unitInText(base) {
			units[c] = base
		}
	}
	rows := t.Rows
	if len(rows) > tableLimit {
		v.Cut = fmt.Sprintf("The first %s of %s rows.", human(int64(tableLimit), ""), human(int64(len(rows)), ""))
		rows = rows[:tableLimit]
	}
	for _, row := range rows {
		cells := make([]cellView, len(row))
		for c, x := range row {
			cells[c] = cellView{Raw: raw(x), Text: human(x, units[c]), Missing: x == nil}
			cells[c].Long = len(cells[c].Text) > 40
			if c == region {
				name, _ := x.(string)
				cells[c].Region = p.color(name)
				if name != "" {
					cells[c].Text = regionText(name)
				}
			}
		}
		v.Rows = append(v.Rows, cells)
	}
	return v
}

// numeric reports whether a column holds numbers only, and at least one.
func numeric(t *analyze.Table, c int) bool {
	found := false
	for _, row := range t.Rows {
		switch row[c].(type) {
		case nil:
		case string, bool:
			return false
		default:
			found = true
		}
	}
	return found
}

// bars puts a bar of one colour into each cell of a column, the longest for the
// largest value.
func (v *tableView) bars(t *analyze.Table, column string) *tableView {
	c, region := t.Index(column), t.Index("region_type")
	if v.Why != "" || c < 0 {
		return v
	}
	top := 0.0
	for _, row := range t.Rows[:len(v.Rows)] {
		x, _ := number(row[c])
		top = max(top, x)
	}
	for i, row := range t.Rows[:len(v.Rows)] {
		if x, _ := number(row[c]); x > 0 && region >= 0 {
			v.Rows[i][c].Bar = []barPart{{v.Rows[i][region].Region, "0", percent(x, top)}}
		}
	}
	return v
}

func percent(x, of float64) string {
	return strconv.FormatFloat(100*x/of, 'f', 2, 64)
}

// folded puts the table behind a line to click on; nil stays nil.
func (v *tableView) folded() *tableView {
	if v != nil {
		v.Folded = v.Why == ""
	}
	return v
}

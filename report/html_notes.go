package report

import (
	"slices"
	"strings"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

// noteView is a note with its number on the page, from 1.
type noteView struct {
	run.Note
	N int
}

// Where says what the note weakens, for the list of all notes.
func (n noteView) Where() string { return strings.Join(n.Figures, ", ") }

// CountText is the note's count as people write it.
func (n noteView) CountText() string { return human(n.Count, "") }

// numbered puts the notes that make figures wrong first, then warnings.
func numbered(notes []run.Note) []noteView {
	rank := map[string]int{run.Wrong: 0, run.Warning: 1, run.Info: 2}
	sorted := slices.Clone(notes)
	slices.SortStableFunc(sorted, func(a, b run.Note) int { return rank[a.Severity] - rank[b.Severity] })
	out := make([]noteView, len(sorted))
	for i, n := range sorted {
		out[i] = noteView{n, i + 1}
	}
	return out
}

// naming returns the notes that weaken any of names.
func naming(all []noteView, names ...string) []noteView {
	var out []noteView
	for _, n := range all {
		if slices.ContainsFunc(names, func(s string) bool { return slices.Contains(n.Figures, s) }) {
			out = append(out, n)
		}
	}
	return out
}

// onColumn returns the notes that weaken one column of a table.
func onColumn(all []noteView, table, column string) []noteView {
	return naming(all, column, table+"."+column)
}

// onTable returns the notes that weaken a table or any of its columns.
func onTable(all []noteView, t *analyze.Table) []noteView {
	names := []string{t.Name}
	for _, c := range t.Columns {
		names = append(names, c.Name, t.Name+"."+c.Name)
	}
	return naming(all, names...)
}

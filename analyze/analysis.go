// Package analyze turns streams of accesses into figures: one file each
// analysis, one pass, with state that can be joined.
package analyze

import "github.com/tierscope/tierscope/observe"

// Analysis is a figure in the making: it sees batches, joins another state and
// reports tables. One goroutine at a time.
type Analysis interface {
	// Columns are the columns that Observe looks at; a reader may leave out
	// all others.
	Columns() observe.Cols
	// Observe takes the next batch. It keeps nothing of it.
	Observe(*observe.Batch) error
	// Tables reports; the state is not to be used afterwards.
	Tables() ([]Table, error)
}

// Commuting is an analysis whose states may be joined in any order, such as
// counts.
type Commuting[S any] interface {
	Analysis
	// Join adds the state of other, which is not to be used afterwards.
	Join(other S) error
}

// Following is an analysis whose states join only in stream order, such as
// intervals: the state keeps its unresolved heads and tails.
type Following[S any] interface {
	Analysis
	// Follow appends next, the state of the rows right behind this one's.
	// A state that is not adjacent is an error.
	Follow(next S) error
}

// Exactness says what a column's figures rest on.
type Exactness string

// How a figure came about.
const (
	Exact        Exactness = "exact"        // every access counted
	Sampled      Exactness = "sampled"      // estimated from samples
	Sketched     Exactness = "sketched"     // exact input, quantile within a stated relative error
	Interpolated Exactness = "interpolated" // rests on times placed between exact ones
	UpperBound   Exactness = "upper bound"
)

// TableColumn describes a column of a [Table].
type TableColumn struct {
	Name      string
	Unit      string // "", ns, s, B, pages, 1/s ...
	Exactness Exactness
}

// Table is a reported result. A cell is an int64, uint64, float64, string, bool, or nil where
// there is no figure.
type Table struct {
	Name    string
	Columns []TableColumn
	Rows    [][]any
}

// Index returns the position of the column called name, or -1.
func (t *Table) Index(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

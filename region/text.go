package region

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints r for a person to read.
func (r *Result) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d pages registered, %d rows labelled, %d regions, %d KV blocks\n", r.PagesRegistered, len(r.Labelled), len(r.Map), len(r.KV))
	table := func(columns []string, rows [][]any) {
		fmt.Fprintf(t, "\n%s\n", strings.Join(columns, "\t"))
		for _, row := range rows {
			writeRow(t, row)
		}
	}
	labelled := make([][]any, len(r.Labelled))
	for i := range r.Labelled {
		labelled[i] = r.Labelled[i][:]
	}
	table([]string{"sample_id", "region_type", "region_id"}, labelled)
	table(r.MapColumns, r.Map)
	table(r.KVColumns, r.KV)
	return t.Flush()
}

// WriteText prints r for a person to read.
func (r *SymbolResult) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(r.Columns, "\t"))
	for _, row := range r.Rows {
		cells := make([]any, len(row))
		for i, c := range row {
			if c != nil {
				cells[i] = *c
			}
		}
		writeRow(t, cells)
	}
	return t.Flush()
}

// writeRow prints a row; what is missing is a dash.
func writeRow(w io.Writer, row []any) {
	for i, c := range row {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		switch v := c.(type) {
		case nil:
			fmt.Fprint(w, "-")
		case string:
			fmt.Fprint(w, strings.NewReplacer("\t", " ", "\n", " ").Replace(v))
		case json.RawMessage:
			fmt.Fprint(w, cmp.Or(strings.TrimPrefix(string(v), "null"), "-"))
		default:
			fmt.Fprint(w, v)
		}
	}
	fmt.Fprintln(w)
}

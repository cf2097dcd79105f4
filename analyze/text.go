package analyze

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tierscope/tierscope/internal/units"
)

// WriteText prints a table for people: sizes and times with units, "-" where
// there is no figure. If the table is cut, left says how many rows are missing.
func (t *Table) WriteText(w io.Writer, left int) error {
	fmt.Fprintf(w, "%s (%d rows)\n", t.Name, len(t.Rows)+left)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	cells := t.headings()
	fmt.Fprintf(tw, "  %s\n", strings.Join(cells, "\t"))
	for _, row := range t.Rows {
		cells = cells[:0]
		for i, v := range row {
			cells = append(cells, cell(v, t.Columns[i].Unit))
		}
		fmt.Fprintf(tw, "  %s\n", strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(w, "  ... %d more\n", left)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// headings are the columns' names without the units that their cells have, unless
// two would be the same.
func (t *Table) headings() []string {
	out, n := make([]string, len(t.Columns)), map[string]int{}
	for i, c := range t.Columns {
		out[i] = c.Name
		for _, end := range []string{"_ns", "_s", "_bytes"} {
			if c.Unit != "" {
				out[i] = strings.TrimSuffix(out[i], end)
			}
		}
		n[out[i]]++
	}
	for i, c := range t.Columns {
		if n[out[i]] > 1 {
			out[i] = c.Name
		}
	}
	return out
}

func cell(v any, unit string) string {
	f, isFloat := v.(float64)
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return fmt.Sprintf("%.60s", printable(v))
	case bool:
		return fmt.Sprint(v)
	case int64:
		f = float64(v)
	case uint64:
		f = float64(v)
	}
	switch {
	case unit == "ns":
		return units.Seconds(f / 1e9)
	case unit == "s":
		return units.Seconds(f)
	case unit == "B", unit == "B/token": // its name says per token
		return units.Bytes(f)
	case isFloat:
		return units.Number(f)
	}
	return fmt.Sprint(v)
}

// printable keeps control characters of foreign names from the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/internal/units"
)

const pagePath = "docs/bench/trace.md"

// number prints v with the digits that mean something.
func number(v float64, unit string) string {
	if unit == "%" {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	if a := math.Abs(v); a >= 10000 {
		group := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
		for i := len(group) - 3; i > 0; i -= 3 {
			group = group[:i] + "," + group[i:]
		}
		return group
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func (f *figure) measured() string {
	s := number(f.Value, f.Unit)
	if f.Low != nil {
		s += " (" + number(*f.Low, f.Unit) + " to " + number(*f.High, f.Unit) + ")"
	}
	return s + " " + f.Unit
}

func (f *figure) target() string {
	switch {
	case f.Goal == nil:
		return "-"
	case f.Goal.AtLeast:
		return "at least " + number(f.Goal.Value, f.Unit)
	}
	return "at most " + number(f.Goal.Value, f.Unit)
}

func (f *figure) verdict() string {
	if f.Verdict == "" {
		return "-"
	}
	return f.Verdict
}

// rows are the lines of the table.
func (r *result) rows() [][]string {
	out := [][]string{{"figure", "target", "measured (95 % interval)", "n", "verdict"}}
	for i := range r.Figures {
		f := &r.Figures[i]
		out = append(out, []string{f.What, f.target(), f.measured(), fmt.Sprintf("%d %s", f.N, f.Of), f.verdict()})
	}
	return out
}

// text is the result for a terminal.
func (r *result) text() string {
	rows := r.rows()
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			width[i] = max(width[i], len(c))
		}
	}
	var b strings.Builder
	b.WriteString(r.machine() + "\n\n")
	for _, row := range rows {
		for i, c := range row {
			if i == len(row)-1 {
				b.WriteString(c + "\n")
				break
			}
			fmt.Fprintf(&b, "%-*s  ", width[i], c)
		}
	}
	return b.String()
}

func (r *result) machine() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, %s; %s mode, %.0f s, %s; load %.2f before",
		r.CPU, r.Cores, units.Bytes(float64(r.Memory)), r.OS, r.Go, r.Mode, r.Seconds, r.Started, r.Load)
}

// page is the result as a page of the manual.
func (r *result) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Speed and memory of the memory trace\n\n"+
		"Written by `go run ./bench/trace --docs`; do not edit. Measured with `%s` on this machine: %s.\n"+
		"A figure without a target is there to compare with, from the same run.\n\n", r.Command, r.machine())
	for i, row := range r.rows() {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	b.WriteString("\n## How each is measured\n\n")
	for i := range r.Figures {
		fmt.Fprintf(&b, "- **%s** (`%s`): %s\n", r.Figures[i].What, r.Figures[i].ID, r.Figures[i].How)
	}
	return b.String()
}

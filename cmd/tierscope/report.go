package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
)

func newReportCommand(a *app) *cobra.Command {
	var input, output string
	var force bool
	c := &cobra.Command{
		Use:   "report --input RUN_DIR [--output FILE|DIR]",
		Short: "Draw the report of a run again",
		Long: `Computes the figures of a run from what it recorded and writes them as one page that opens offline. --output is a
file, or a directory that gets report.html and figures/. Without it the page goes to standard output.

Of an imported run the page shows what its trace can tell; what needs sizes, steps or time that the source did not
record is withheld, and the page says so in its place.

With --json one document is printed: {"title", "summary", "facts": {NAME: {"value", "unit"}}, "machine", "tables":
{NAME: {"columns", "units", "exactness", "rows"}}, "withheld": {TABLE: WHY}, "notes"}.`,
		Example: `  tierscope report --input results/model/run --output page.html
  tierscope report --input results/model/run --output reports/
  tierscope report --input results/model/run --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if input == "" {
				return run.Errorf(run.Misuse, "report needs --input RUN_DIR")
			}
			d, err := experiment.Report(cmd.Context(), input)
			if err != nil {
				return err
			}
			switch {
			case a.json && output != "":
				return run.Errorf(run.Misuse, "--json prints the report's content: leave --output out, or redirect")
			case a.json:
				return a.printJSON(reportDocument(d))
			case output == "":
				return report.Render(a.stdout, d)
			}
			return a.writeReport(d, output, force)
		},
	}
	f := c.Flags()
	f.StringVarP(&input, "input", "i", "", "run directory (required)")
	f.StringVarP(&output, "output", "o", "", "file, or directory (existing, or ending in /)")
	f.BoolVar(&force, "force", false, "replace a file that exists")
	return c
}

// writeReport writes the page, and beside it the figures if output is a directory.
func (a *app) writeReport(d *report.Data, output string, force bool) error {
	put := report.WriteFile
	if st, err := os.Stat(output); err == nil && st.IsDir() || strings.HasSuffix(output, "/") {
		put = report.WriteDir
	}
	w, err := put(output, d, force)
	if err != nil {
		return err
	}
	for _, why := range w.Missing {
		fmt.Fprintln(a.stderr, "note:", why)
	}
	_, err = fmt.Fprintln(a.stdout, w.Paths[0])
	return err
}

// tableJSON is a table in JSON documents: names, units and exactness of the
// columns, and rows of as many cells, integers in full, missing as null.
type tableJSON struct {
	Columns   []string `json:"columns"`
	Units     []string `json:"units"`
	Exactness []string `json:"exactness"`
	Rows      [][]any  `json:"rows"`
}

func tablesJSON(list []analyze.Table) map[string]tableJSON {
	out := map[string]tableJSON{}
	for _, t := range list {
		x := tableJSON{Columns: []string{}, Units: []string{}, Exactness: []string{}, Rows: t.Rows}
		if x.Rows == nil {
			x.Rows = [][]any{}
		}
		for _, c := range t.Columns {
			x.Columns = append(x.Columns, c.Name)
			x.Units = append(x.Units, c.Unit)
			x.Exactness = append(x.Exactness, string(c.Exactness))
		}
		out[t.Name] = x
	}
	return out
}

// reportDocument is the machine-readable form of a report.
func reportDocument(d *report.Data) any {
	type fact struct {
		Value any    `json:"value"`
		Unit  string `json:"unit,omitempty"`
	}
	named := func(list []report.Fact) map[string]fact {
		out := map[string]fact{}
		for _, f := range list {
			out[f.Name] = fact{f.Value, f.Unit}
		}
		return out
	}
	withheld, notes := d.Withheld, d.Notes
	if withheld == nil {
		withheld = map[string]string{}
	}
	if notes == nil {
		notes = []run.Note{}
	}
	return map[string]any{"title": d.Title, "summary": d.Summary, "facts": named(d.Facts), "machine": named(d.Machine),
		"tables": tablesJSON(d.Tables), "withheld": withheld, "notes": notes}
}

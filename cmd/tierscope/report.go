package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

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

With --json one document is printed: {"summary", "facts", "tables", "notes"}.`,
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
			if a.json {
				return a.printJSON(reportDocument(d))
			}
			if output == "" {
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

func (a *app) writeReport(d *report.Data, output string, force bool) error {
	st, err := os.Stat(output)
	dir := err == nil && st.IsDir() || output[len(output)-1] == '/'
	page := output
	if dir {
		if err := os.MkdirAll(output, 0o755); err != nil {
			return err
		}
		page = filepath.Join(output, "report.html")
	}
	begin := run.NewAtomic
	if force {
		begin = run.ReplaceAtomic
	}
	out, err := begin(page)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := report.Render(out, d); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if dir {
		figures := filepath.Join(output, "figures")
		if err := os.MkdirAll(figures, 0o755); err != nil {
			return err
		}
		if _, err := report.Figures(figures, d); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(a.stdout, page)
	return err
}

// reportDocument is the machine-readable form of a report.
func reportDocument(d *report.Data) any {
	type table struct {
		Columns []string `json:"columns"`
		Rows    [][]any  `json:"rows"`
	}
	tables := map[string]table{}
	for _, t := range d.Tables {
		x := table{Rows: t.Rows}
		for _, c := range t.Columns {
			x.Columns = append(x.Columns, c.Name)
		}
		tables[t.Name] = x
	}
	facts := map[string]any{}
	for _, f := range d.Facts {
		facts[f.Name] = f.Value
	}
	return map[string]any{"summary": d.Summary, "facts": facts, "tables": tables, "notes": d.Notes}
}

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/collect/mrm"
	"github.com/tierscope/tierscope/run"
)

// importers are the formats that import reads.
var importers = map[string]func(ctx context.Context, file, out string) (*mrm.Result, error){
	"mrm": mrm.Import,
}

func newImportCommand(a *app) *cobra.Command {
	formats := strings.Join(slices.Sorted(maps.Keys(importers)), ", ")
	var out string
	c := &cobra.Command{
		Use:   "import FORMAT FILE --out DIR",
		Short: "Make a run of what another program recorded",
		Long: `Import reads what another program recorded and writes a run directory below
DIR, by model and run id. The source is only read, and checked against its
manifest where it has one.

Formats: ` + formats + `. mrm is a run directory of mrm-trace of any version, or a
trace.parquet of its by itself, labelled or not.`,
		Example: `  tierscope import mrm results/box-1/tiny-q4/run_fx --out results
  tierscope import mrm raw.parquet --out results --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return run.Errorf(run.Misuse, "import: want a format and a file or directory; formats are %s", formats)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			read, ok := importers[args[0]]
			if !ok {
				return run.Errorf(run.Misuse, "format %q is not known: want one of %s", args[0], formats)
			}
			res, err := read(c.Context(), args[1], out)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(res)
			}
			fmt.Fprintf(a.stdout, "%s: %d rows, %d skipped, %d lost\n", res.RunDir, res.Rows, res.Skipped, res.Lost)
			a.printNotes(res.Notes)
			return nil
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "results", "directory below which the run is written")
	return c
}

// printNotes prints notes on stderr, a line each.
func (a *app) printNotes(notes []run.Note) {
	for _, n := range notes {
		count := ""
		if n.Count > 0 {
			count = fmt.Sprintf(" (%d)", n.Count)
		}
		fmt.Fprintf(a.stderr, "%s: %s%s\n", n.Severity, n.Text, count)
	}
}

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/report/compat"
	"github.com/tierscope/tierscope/run"
)

func newExportCommand(a *app) *cobra.Command {
	var o compat.Options
	var format, policy, ranges string
	c := &cobra.Command{
		Use:   "export --input RUN_OR_TRACE --compat mrm --output DIR",
		Short: "Write a run in the form of another program",
		Long: `Export writes the run directory that mrm-trace would have written: trace,
region map, KV life cycle, metrics.csv, metadata, figures, manifest, and the
run's row in manifest.csv. A trace without labels is labelled first, as
mrm-trace does. DIR must be new or empty.`,
		Example: `  tierscope export --input results/tiny/run-1 --compat mrm --output mrm/box-1/tiny/run-1
  tierscope export -i raw.parquet --compat mrm -o out/run_fx --ranges kv_ranges.json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "mrm" {
				return run.Errorf(run.Misuse, "--compat %q: want mrm, the only form there is", format)
			}
			if o.Input == "" {
				return run.Errorf(run.Misuse, "--input: missing; name a run directory or a trace")
			}
			var err error
			if o.Policy, err = region.ParsePolicy(policy); err != nil {
				return fmt.Errorf("--unknown-policy: %w", err)
			}
			if o.Ranges, err = readRanges(ranges); err != nil {
				return err
			}
			res, err := compat.Export(c.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(res)
			}
			fmt.Fprintf(a.stdout, "%s: %d rows, %d regions, %d KV blocks\n%s\n", res.RunDir, res.Rows, res.Regions, res.KVBlocks, strings.Join(res.Files, " "))
			a.printNotes(res.Notes)
			return nil
		},
	}
	f := c.Flags()
	f.StringVarP(&o.Input, "input", "i", "", "run directory, of tierscope or mrm-trace, or a trace file")
	f.StringVarP(&o.Output, "output", "o", "", "directory to write, new or empty")
	f.StringVar(&format, "compat", "", "whose form: mrm")
	f.StringVar(&o.RunID, "run-id", "", "id of the exported run (default: the source's, else the name of DIR)")
	f.StringVar(&o.Index, "manifest-csv", "", "table of runs that gets a row (default: manifest.csv beside DIR)")
	f.StringVar(&policy, "unknown-policy", "keep", "rows without label that no rule knows: keep, skip or error")
	f.StringVar(&ranges, "ranges", "", "JSON list of addr_start, addr_end, region_type for a trace without labels")
	return c
}

// readRanges reads a range list; no path is no ranges.
func readRanges(path string) ([]region.Range, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := region.ReadRanges(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

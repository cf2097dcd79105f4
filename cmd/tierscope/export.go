package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/report/compat"
	"github.com/tierscope/tierscope/run"
)

func newExportCommand(a *app) *cobra.Command {
	var o compat.Options
	var form, format, policy, ranges string
	c := &cobra.Command{
		Use:   "export --input RUN_OR_TRACE {--compat mrm | --format parquet} --output DIR",
		Short: "Write a run in the form of another program, or all of its accesses",
		Long: `Export --compat mrm writes the run directory that mrm-trace would have written:
trace, region map, KV life cycle, metrics.csv, metadata, figures, manifest, and
the run's row in manifest.csv. A trace without labels is labelled first, as
mrm-trace does.

Export --format parquet expands the graph log of a run into trace.parquet,
objects.parquet and marks.parquet.

Both write every access, also those that the row limit of a run kept out of its
trace.parquet. DIR must be new or empty.

With --json one document is printed: {"run_dir", "run_id", "manifest_csv", "rows",
"regions", "kv_blocks", "skipped", "files", "notes"} with --compat mrm, {"dir",
"files", "rows", "objects", "marks"} with --format parquet.`,
		Example: `  tierscope export --input results/tiny/run-1 --compat mrm --output mrm/box-1/tiny/run-1
  tierscope export -i raw.parquet --compat mrm -o out/run_fx --ranges kv_ranges.json
  tierscope export -i results/tiny/run-1 --format parquet -o all`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case form == "" && format == "":
				return run.Errorf(run.Misuse, "export needs --compat mrm or --format parquet")
			case form != "" && format != "":
				return run.Errorf(run.Misuse, "--compat and --format: give one of them")
			case form != "" && form != "mrm":
				return run.Errorf(run.Misuse, "--compat %q: want mrm, the only form there is", form)
			case format != "" && format != "parquet":
				return run.Errorf(run.Misuse, "--format %q: want parquet, the only format there is", format)
			case o.Input == "":
				return run.Errorf(run.Misuse, "--input: missing; name a run directory or a trace")
			case format != "":
				if f := firstChanged(c, "run-id", "manifest-csv", "unknown-policy", "ranges"); f != "" {
					return run.Errorf(run.Misuse, "--%s goes with --compat mrm only", f)
				}
				return a.exportParquet(c.Context(), o.Input, o.Output)
			}
			var err error
			if o.Policy, err = region.ParsePolicy(policy); err != nil {
				return fmt.Errorf("--unknown-policy: %w", err)
			}
			if o.Ranges, err = readRanges(ranges); err != nil {
				return err
			}
			res, err := experiment.Export(c.Context(), o)
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
	f.StringVar(&form, "compat", "", "whose form: mrm")
	f.StringVar(&format, "format", "", "all accesses in this format: parquet")
	f.StringVar(&o.RunID, "run-id", "", "id of the exported run (default: the source's, else the name of DIR)")
	f.StringVar(&o.Index, "manifest-csv", "", "table of runs that gets a row (default: manifest.csv beside DIR)")
	f.StringVar(&policy, "unknown-policy", "keep", "rows without label that no rule knows: keep, skip or error")
	f.StringVar(&ranges, "ranges", "", "JSON list of addr_start, addr_end, region_type for a trace without labels")
	return c
}

// firstChanged returns the first of the flags that was given, "" if none.
func firstChanged(c *cobra.Command, flags ...string) string {
	for _, f := range flags {
		if c.Flags().Changed(f) {
			return f
		}
	}
	return ""
}

func (a *app) exportParquet(ctx context.Context, input, output string) error {
	x, err := experiment.ExportParquet(ctx, input, output)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(x)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %d rows, %d objects, %d marks\n%s\n", x.Dir, x.Rows, x.Objects, x.Marks, strings.Join(x.Files, " "))
	return err
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

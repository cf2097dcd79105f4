package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/internal/units"
	"github.com/tierscope/tierscope/run"
)

// analyzeFlags are the flags of analyze.
type analyzeFlags struct {
	input, compat, memory, tempDir string
	metrics                        []string
	rows                           int
}

func newAnalyzeCommand(a *app) *cobra.Command {
	var f analyzeFlags
	c := &cobra.Command{
		Use:     "analyze --input TRACE_OR_RUN",
		Aliases: []string{"analyse"},
		Short:   "Work the tables out from a trace",
		Long: `Analyze reads a trace, or that of a run directory, once and prints the ten tables
of mrm-trace: retention, write-once ratio, read frequency, working set, locality,
inter-access interval and suitability, by region and by region type.

Quantiles are exact whatever the length. What does not fit --memory goes to a
temporary file. With --json all rows come, integers in full, missing as null,
and metrics.csv as a string.

Metrics: ` + strings.Join(mrm.MetricNames, ", ") + `.`,
		Example: `  tierscope analyze --input results/tiny/run-1
  tierscope analyze -i trace.parquet --metrics retention_duration,write_once_ratio
  tierscope analyze -i trace.parquet --compat mrm --json | jq -r .metrics_csv`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.analyze(c.Context(), &f) },
	}
	c.Flags().StringVarP(&f.input, "input", "i", "", "trace file or run directory")
	c.Flags().StringVar(&f.compat, "compat", "", "only what this program has: mrm")
	c.Flags().StringSliceVarP(&f.metrics, "metrics", "m", nil, "only these metrics; may be repeated (default all)")
	c.Flags().StringVar(&f.memory, "memory", "1GiB", "memory for rows; the rest goes to a temporary file")
	c.Flags().StringVar(&f.tempDir, "temp-dir", "", "where that file lies (default the system's directory)")
	c.Flags().IntVar(&f.rows, "rows", 10, "rows of a table to print as text; -1 is all")
	return c
}

// options checks the flags.
func (f *analyzeFlags) options(ctx context.Context) (o mrm.Options, err error) {
	if f.input == "" {
		return o, run.Errorf(run.Misuse, "--input: missing; name a trace or a run directory")
	}
	if f.compat != "" && f.compat != "mrm" {
		return o, run.Errorf(run.Misuse, "--compat %q: want mrm", f.compat)
	}
	if f.rows < -1 {
		return o, run.Errorf(run.Misuse, "--rows %d: want a number of rows, or -1 for all", f.rows)
	}
	if o.Metrics, err = mrm.ParseMetrics(f.metrics); err != nil {
		return o, fmt.Errorf("--metrics: %w", err)
	}
	if o.Memory, err = units.ParseBytes(f.memory); err != nil || o.Memory == 0 {
		return o, run.Errorf(run.Misuse, "--memory %q: want a size such as 512MiB", f.memory)
	}
	o.TempDir = f.tempDir
	o.Check = func() error { return analyze.Interrupted(ctx) }
	return o, nil
}

func (a *app) analyze(ctx context.Context, f *analyzeFlags) (err error) {
	o, err := f.options(ctx)
	if err != nil {
		return err
	}
	in, _, err := analyze.OpenTrace(f.input)
	if err != nil {
		return err
	}
	defer in.Close()
	tables := mrm.New(o)
	defer tables.Close()
	if err := analyze.Read(ctx, in, rowProgress(a.stderr), tables); err != nil {
		return err
	}
	r, err := tables.Result()
	if err != nil {
		return err
	}
	if n := in.Skipped(); n > 0 {
		fmt.Fprintf(a.stderr, "note: %d numbers are out of their column's range and count as missing\n", n)
	}
	for _, n := range r.Notes() {
		fmt.Fprintln(a.stderr, "note:", n)
	}
	if a.json {
		return r.WriteJSON(a.stdout)
	}
	return r.WriteText(a.stdout, f.rows)
}

// rowProgress says every few seconds how far reading is; short inputs are done
// before it says anything.
func rowProgress(w io.Writer) func(done, total int64) {
	begun := time.Now()
	next := begun.Add(2 * time.Second)
	return func(done, total int64) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next = now.Add(5 * time.Second)
		rate := float64(done) / now.Sub(begun).Seconds()
		fmt.Fprintf(w, "read %.1f of %.1f million rows, %s left\n", float64(done)/1e6, float64(total)/1e6,
			units.Seconds(float64(total-done)/rate))
	}
}

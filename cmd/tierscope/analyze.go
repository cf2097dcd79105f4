package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/experiment"
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
		Long: `Analyze reads a trace once and prints the ten tables of mrm-trace: retention,
write-once ratio, read frequency, working set, locality, inter-access interval
and suitability, by region and by region type.

Of a run directory it prints tierscope's own tables first: bytes by step, layer,
region and object, growth of the KV cache, life of its blocks, lifetime of
values. They count every access that was observed, also those that a row limit
kept out of trace.parquet. What a run cannot know is withheld, not zero.

Quantiles of the ten tables are exact whatever the length. What does not fit
--memory goes to a temporary file.

With --json one document is printed, with all rows, integers in full, missing as
null: {"tables": {NAME: {"columns", "units", "exactness", "rows"}}, "metrics_csv",
"withheld": {TABLE: WHY}, "notes"}. With --compat mrm it is what mrm-trace's users
know, the ten tables as {NAME: {"columns", "rows"}} and "metrics_csv".

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
	if st, err := os.Stat(f.input); err == nil && st.IsDir() {
		return a.analyzeRun(ctx, f, o)
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
	return a.printTables(f, &experiment.Figures{Compat: r})
}

// analyzeRun is analyze on a run directory: with every access of its graph log,
// also those that a row limit kept out of its trace.
func (a *app) analyzeRun(ctx context.Context, f *analyzeFlags, o mrm.Options) error {
	figures, err := experiment.Analyze(ctx, f.input, o)
	if err != nil {
		return err
	}
	if len(f.metrics) > 0 {
		figures.Own, figures.Withheld = nil, nil // only those asked for
	}
	return a.printTables(f, figures)
}

// printTables prints figures as the flags ask for.
func (a *app) printTables(f *analyzeFlags, x *experiment.Figures) error {
	for _, n := range x.Compat.Notes() {
		fmt.Fprintln(a.stderr, "note:", n)
	}
	if f.compat == "mrm" && a.json {
		return x.Compat.WriteJSON(a.stdout)
	}
	if a.json {
		return a.printJSON(figuresDocument(x))
	}
	if f.compat == "" {
		for i := range x.Own {
			t := x.Own[i]
			left := 0
			if f.rows >= 0 && len(t.Rows) > f.rows {
				t.Rows, left = t.Rows[:f.rows], len(t.Rows)-f.rows
			}
			if err := t.WriteText(a.stdout, left); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(x.Withheld)) {
			fmt.Fprintf(a.stderr, "note: %s is withheld: %s\n", name, x.Withheld[name])
		}
		a.printNotes(x.Notes)
	}
	return x.Compat.WriteText(a.stdout, f.rows)
}

// figuresDocument is the machine-readable form of all figures.
func figuresDocument(x *experiment.Figures) any {
	tables := tablesJSON(append(slices.Clone(x.Own), x.Compat.Tables()...))
	doc := map[string]any{"tables": tables, "withheld": x.Withheld, "notes": x.Notes}
	if x.Withheld == nil {
		doc["withheld"] = map[string]string{}
	}
	if x.Notes == nil {
		doc["notes"] = []run.Note{}
	}
	if x.Compat.HasCSV() {
		doc["metrics_csv"] = x.Compat.CSV()
	}
	return doc
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

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/run"
)

func newRunCommand(a *app) *cobra.Command {
	var config, out string
	var resume bool
	var q quickFlags
	c := &cobra.Command{
		Use:   "run {--config FILE | --model GGUF} [--out DIR]",
		Short: "Run an experiment: observe every run of its plan",
		Long: `Runs an experiment: every model, context length, batch size and repetition of its plan, one after the other. Each is
observed and left as a run directory DIR/<model>/<run id>, which is never used again. With --model instead of
--config one model is run with a few prompts of tierscope's own, or those given.

What cannot run is refused before anything is written. Ctrl-C ends the run under way in order: what was seen is kept
and analysed, marked partial; a second Ctrl-C, or one while a run is analysed, leaves its directory as it is. --resume
goes on with a plan: its runs that are complete are not run again. A run that was killed, or found the disk full, is
finished by 'tierscope recover'. DIR/manifest.csv lists the complete runs, without warm-ups.

With --json one document is printed: {"runs": [{"run_dir", "run_id", "state", "warmup", "run_validity", "valid",
"notes", "resumed", "summary", "error"}], "summary", "error"}. "valid" is false only when figures are wrong or
incomplete; "run_validity" is the noise class. "state" is complete, partial (ended early, and sealed), unfinished (for
recover) or none (nothing ran, "run_dir" is empty). "resumed", "summary" and "error" are there if they say something.

Exit code 0: all runs are complete; 2: bad flag, config, prompt or model path; 3: a model is damaged or not supported;
4: the engine library cannot be observed; 5: disk; 6: the engine died; 130: interrupted.`,
		Example: `  tierscope run --config first-light.yaml
  tierscope run --config first-light.yaml --out results --json
  tierscope run --config first-light.yaml --resume
  tierscope run --model model.gguf --context 4096 --tokens 200 --prompt "Tell me about flash memory."`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := q.alone(cmd, config); err != nil {
				return err
			}
			cfg, err := a.experiment(config, &q)
			if err != nil {
				return err
			}
			return a.execute(cmd.Context(), &experiment.Execution{Plan: experiment.NewPlan(cfg, experiment.Strict), Out: out, Resume: resume, Pairs: q.pairs})
		},
	}
	f := c.Flags()
	f.StringVarP(&config, "config", "c", "", "experiment file")
	f.StringVarP(&out, "out", "o", "", "results directory, instead of the experiment's output.base_dir")
	f.BoolVar(&resume, "resume", false, "skip the runs of this plan that are finished")
	q.add(c)
	return c
}

// experiment is the config of a file, or the one that flags stand for.
func (a *app) experiment(config string, q *quickFlags) (*experiment.Config, error) {
	switch {
	case config != "" && q.Model != "":
		return nil, run.Errorf(run.Misuse, "--config and --model: give one of them")
	case config != "":
		cfg, warnings, err := experiment.Load(config, experiment.Strict)
		if err != nil {
			if err := experiment.PrintErrors(a.stderr, err, experiment.Strict); err != nil {
				return nil, err
			}
			return nil, silentError{err}
		}
		return cfg, experiment.PrintWarnings(a.stderr, config, warnings, experiment.Strict)
	case q.Model != "":
		return q.config()
	}
	return nil, run.Errorf(run.Misuse, "run needs --config FILE or --model GGUF; see 'tierscope run --help'")
}

// execute runs a plan and prints what it left.
func (a *app) execute(ctx context.Context, x *experiment.Execution) error {
	x.Stamp, x.Hurry = experiment.Stamp(time.Now()), a.hurry
	x.Progress = func(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }
	res, err := x.Execute(ctx)
	if a.json {
		if perr := a.printJSON(res); perr != nil {
			return perr
		}
		return err
	}
	for i := range res.Runs {
		r := &res.Runs[i]
		for _, s := range r.Summary {
			fmt.Fprintln(a.stdout, s)
		}
		if r.State == run.StateComplete || r.State == run.StatePartial {
			fmt.Fprintf(a.stdout, "report: %s\n", filepath.Join(r.Dir, "report.html"))
		}
	}
	if len(res.Runs) > 0 {
		fmt.Fprintln(a.stdout, res.Summary)
	}
	return err
}

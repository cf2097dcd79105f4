package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/run"
)

func newPlanCommand(a *app) *cobra.Command {
	var o configFlags
	c := &cobra.Command{
		Use:   "plan --config FILE",
		Short: "Show the runs that an experiment file stands for",
		Long: `Expands the sweep of an experiment file and shows its runs in order. Nothing is run, and what the file names need not
exist. The same file gives the same plan and the same hash; the time stamp of run ids is not part of it.

With --json one document is printed: {"experiment", "hash", "stamp", "total", "warmup", "actual", "plan", "runs",
"warnings"}. "hash" is the SHA-256 of "plan" without white space; "runs" has the run ids and directories under "stamp".

With --compat mrm the file is read as mrm-trace reads it; texts and exit codes are mrm-trace's.`,
		Example: `  tierscope plan --config first-light.yaml
  tierscope plan --config first-light.yaml --json | jq -r '.runs[].run_id'
  tierscope plan --config experiment.yaml --compat mrm`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.config == "" {
				return run.Errorf(run.Misuse, "plan needs --config FILE")
			}
			m, err := o.mode()
			if err != nil {
				return err
			}
			log := o.logger(a)
			cfg, warnings, err := experiment.Load(o.config, m)
			if err != nil {
				if err := experiment.PrintErrors(a.stderr, err, m); err != nil {
					return err
				}
				return silentError{err}
			}
			p := experiment.NewPlan(cfg, m)
			log.Debug("plan made", "config", o.config, "models", len(cfg.Models), "runs", len(p.Runs), "base_dir", cfg.Output.BaseDir)
			if a.json {
				d, err := p.Document(experiment.Stamp(time.Now()), warnings)
				if err != nil {
					return err
				}
				return a.printJSON(d)
			}
			if err := experiment.PrintWarnings(a.stderr, o.config, warnings, m); err != nil {
				return err
			}
			return p.Print(a.stdout)
		},
	}
	o.add(c)
	return c
}

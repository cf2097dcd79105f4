package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/run"
)

func newValidateCommand(a *app) *cobra.Command {
	var o configFlags
	var machine bool
	var out string
	c := &cobra.Command{
		Use:   "validate (--config FILE | --machine)",
		Short: "Check an experiment file, or what this machine can observe",
		Long: `Checks an experiment file and what it names on this machine: model files, prompts, the results directory.
Everything wrong is listed with its place. Exit code 2 means that the file is wrong, 1 that something
it names is.

With --json one document is printed: {"config", "valid", "errors", "warnings"}, where each error and warning has
path, kind, message and, if it has a place in the file, line and column.

With --compat mrm the file is read as mrm-trace reads it, unknown keys included; texts and exit codes are
mrm-trace's, and --json without --machine does nothing.`,
		Example: `  tierscope validate --config first-light.yaml
  tierscope validate --config first-light.yaml --json
  tierscope validate --config experiment.yaml --compat mrm
  tierscope validate --machine --out results/`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if machine {
				return machineCheck(a, c.Context(), out, o.verbose)
			}
			if o.config == "" {
				return run.Errorf(run.Misuse, "validate needs --config FILE or --machine")
			}
			m, err := o.mode()
			if err != nil {
				return err
			}
			v := experiment.Validate(o.config, m, experiment.Host(c.Context()), o.logger(a))
			if a.json && m == experiment.Strict {
				err = a.printJSON(v)
			} else {
				err = v.Print(a.stdout, a.stderr)
			}
			if err != nil || v.Valid {
				return err
			}
			return silentError{v.Err()}
		},
	}
	o.add(c)
	c.Flags().BoolVar(&machine, "machine", false, "check what this machine can observe; --config is ignored")
	c.Flags().StringVarP(&out, "out", "o", ".", "with --machine: directory whose free space is checked")
	return c
}

// configFlags are the flags of commands that read an experiment file.
type configFlags struct {
	config, compat string
	verbose        bool
}

func (o *configFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&o.config, "config", "c", "", "experiment file (YAML)")
	c.Flags().StringVar(&o.compat, "compat", "", "mrm: read, print and exit as mrm-trace does")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "log on stderr what is read and looked for")
}

func (o *configFlags) mode() (experiment.Mode, error) {
	switch o.compat {
	case "":
		return experiment.Strict, nil
	case "mrm":
		return experiment.Compat, nil
	}
	return 0, run.Errorf(run.Misuse, "--compat knows mrm, not %q", o.compat)
}

// logger returns what logs to stderr: everything with --verbose, else nothing but warnings.
func (o *configFlags) logger(a *app) *slog.Logger {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}

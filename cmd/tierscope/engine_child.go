package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/engine/llamacpp"
)

// newEngineChildCommand is how tierscope starts itself as the engine's process.
func newEngineChildCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:    llamacpp.ChildCommand,
		Short:  "Run an engine job given on standard input (started by tierscope itself)",
		Hidden: true,
		Args:   noArgs,
		Run:    func(*cobra.Command, []string) { os.Exit(llamacpp.Child(os.Stdin)) },
	}
}

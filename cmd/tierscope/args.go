package main

import (
	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/run"
)

// noArgs refuses arguments that are not flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return run.Errorf(run.Misuse, "%s: argument %q is not expected; see '%s --help'", c.Name(), args[0], c.CommandPath())
	}
	return nil
}

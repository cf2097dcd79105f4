package main

import (
	"strings"

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

// known refuses a command that there is not, and says which one may be meant.
func known(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil // the shell asks what could be
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	c, rest, _ := root.Find(args)
	if c.Runnable() || !c.HasSubCommands() {
		return nil
	}
	for _, word := range rest {
		if strings.HasPrefix(word, "-") {
			continue
		}
		c.SuggestionsMinimumDistance = 2
		hint := ""
		if like := c.SuggestionsFor(word); len(like) > 0 {
			hint = ", did you mean " + strings.Join(like, " or ") + "?"
		}
		return run.Errorf(run.Misuse, "command %q is not known%s; '%s --help' lists all", word, hint, c.CommandPath())
	}
	return nil
}

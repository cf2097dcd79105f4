package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/system/probe"
)

// touchMemory is the command that the machine check records.
const touchMemory = "touch-memory"

func newTouchMemoryCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:    touchMemory,
		Short:  "Read memory in strides, to be recorded",
		Hidden: true,
		Args:   noArgs,
		Run:    func(*cobra.Command, []string) { probe.TouchMemory() },
	}
}

// machineCheck is validate --machine: the checks of this machine, as JSON or as
// lines, and the exit code that they give.
func machineCheck(a *app, ctx context.Context, outDir string, verbose bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m, err := probe.ThisHost(outDir, self, touchMemory).Check(ctx, func(name string) {
		if verbose {
			fmt.Fprintln(a.stderr, "checking", name)
		}
	})
	if err != nil {
		return run.Errorf(run.Interrupted, "machine check was stopped: %w", err)
	}
	if a.json {
		err = a.printJSON(m)
	} else {
		err = a.printMachine(m, verbose)
	}
	if err != nil || m.ExitCode == 0 {
		return err
	}
	return silentError{run.Errorf(run.Class(m.ExitCode), "%s", m.Verdict)}
}

func (a *app) printMachine(m *probe.Machine, verbose bool) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, c := range m.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Status, c.Name, c.Detail)
		if c.Remediation != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", c.Remediation)
		}
		if verbose {
			for _, name := range slices.Sorted(maps.Keys(c.Data)) {
				fmt.Fprintf(w, "\t\t   %s: %v\n", name, c.Data[name])
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stdout, "\n"+m.Verdict)
	return err
}

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/collect"
	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/system/probe"
)

func newDoctorCommand(a *app) *cobra.Command {
	var o probe.Options
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Try what this machine can do, and say what would help",
		Long: `Tries every capability that some part of tierscope uses: memory files, debug registers, page scans, eBPF, browsers,
package clients. A capability is there when the thing itself was done, in small. For each that is missing it says
why and what would help; Debian packages are put together in one line.

With --json one document is printed: {"capabilities": [{"name", "ok", "why", "fix", "use", "demo", "package"}], "apt",
"demo_lacks", "collectors": [{"name", "sees", "needs", "costs", "cannot_see"}]}. "demo" marks what a first run needs.

Exit code 0 if all is there that a first run needs, else 4.`,
		Example: `  tierscope doctor
  tierscope doctor --json | jq -r '.capabilities[] | select(.ok | not) | .name'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, model := fetch.CachedModel()
			_, libs := fetch.CachedLibs()
			o.Fetched = model && libs
			list := probe.Capabilities(c.Context(), o)
			if err := c.Context().Err(); err != nil {
				return run.Errorf(run.Interrupted, "doctor was stopped: %w", err)
			}
			if err := a.printCapabilities(list); err != nil {
				return err
			}
			if lacks := probe.DemoLacks(list); len(lacks) > 0 {
				return run.Errorf(run.Capability, "a first run lacks %s", strings.Join(lacks, ", "))
			}
			return nil
		},
	}
	c.Flags().StringVarP(&o.Dir, "out", "o", ".", "directory for results, whose free space is checked")
	return c
}

func (a *app) printCapabilities(list []probe.Capability) error {
	apt, lacks := probe.AptLine(list), probe.DemoLacks(list)
	if a.json {
		if lacks == nil {
			lacks = []string{}
		}
		return a.printJSON(struct {
			Capabilities []probe.Capability `json:"capabilities"`
			Apt          string             `json:"apt"`
			Lacks        []string           `json:"demo_lacks"`
			Collectors   []collect.Spec     `json:"collectors"`
		}{list, apt, lacks, experiment.Specs()})
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, c := range list {
		mark := "ok"
		if !c.OK {
			mark = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, c.Why)
		if !c.OK && c.Fix != "" {
			fmt.Fprintf(w, "\t\t-> %s (for: %s)\n", c.Fix, c.Use)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range experiment.Specs() {
		fmt.Fprintf(a.stdout, "\ncollector %s\n  sees        %s\n  needs       %s\n  costs       %s\n  cannot see  %s\n", s.Name, s.Sees,
			strings.Join(s.Needs, "\n              "), s.Costs, strings.Join(s.CannotSee, "\n              "))
	}
	if apt != "" {
		fmt.Fprintf(a.stdout, "\nmissing packages:\n  %s\n", apt)
	}
	if len(lacks) == 0 {
		fmt.Fprintln(a.stdout, "\na first run (make demo) has all it needs")
	}
	return nil
}

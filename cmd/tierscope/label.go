package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
)

func newLabelCommand(a *app) *cobra.Command {
	var input, compat string
	c := &cobra.Command{
		Use:   "label --input CASE.json --compat mrm",
		Short: "Say which region each access of a case belongs to",
		Long: `Label runs the rows of a case through mrm-trace's labeller: address ranges,
then the type of the page, then symbol rules. It prints each row's region, the
region map and the life cycle of KV blocks. A case with columns and rows asks
only what the symbol rules give.`,
		Example: `  tierscope label --input case.json --compat mrm
  tierscope label --input case.json --compat mrm --json | jq .region_map`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if input == "" {
				return run.Errorf(run.Misuse, "--input: missing; name the case to label")
			}
			if compat != "mrm" {
				return run.Errorf(run.Misuse, "--compat %q: want mrm, whose labeller this is", compat)
			}
			return a.label(input)
		},
	}
	c.Flags().StringVarP(&input, "input", "i", "", "case to label (JSON)")
	c.Flags().StringVar(&compat, "compat", "", "whose labeller: mrm")
	return c
}

func (a *app) label(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := region.ReadCase(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if c.SymbolColumns != nil {
		r, err := c.Classify()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return a.printLabels(r)
	}
	r, err := c.Label()
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if r == nil {
		return err
	}
	if printed := a.printLabels(r); printed != nil {
		return printed
	}
	return err
}

// printLabels prints a result as JSON or as text.
func (a *app) printLabels(r interface{ WriteText(io.Writer) error }) error {
	if a.json {
		return a.printJSON(r)
	}
	return r.WriteText(a.stdout)
}

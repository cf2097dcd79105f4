package main

import (
	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/engine/gguf"
)

func newModelPresetsCommand(a *app) *cobra.Command {
	typ := "f16"
	c := &cobra.Command{
		Use:   "presets",
		Short: "List the shapes of published models that synth knows",
		Long: `Prints a line a preset: its parameters, the bytes of its weights at a type, what a decode token reads of them, and what it
adds to an f16 key-value cache. Shapes are from the config.json of the publisher's repository, named with --json.

With --json one document is printed: {"type", "presets": [{"name", "source", "spec", "parameters", "weight_bytes",
"decode_weight_bytes", "decode_kv_bytes"}]}.`,
		Example: `  tierscope model presets
  tierscope model presets --type q4_k_m`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			rows, err := gguf.PresetTable(typ)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"type": typ, "presets": rows})
			}
			return gguf.WritePresets(a.stdout, rows)
		},
	}
	c.Flags().StringVar(&typ, "type", typ, "type of the weights, as in synth")
	return c
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/run"
)

func newModelShowCommand(a *app) *cobra.Command {
	var tensors bool
	kv := "f16"
	c := &cobra.Command{
		Use:   "show FILE.gguf",
		Short: "Show a model's shape and what a decode token reads of it",
		Long: `Reads the header of a GGUF: shape, tensors by type, the weight bytes that one decode token must read by the tensor
table (of experts only those used, of the token embedding one row), and the key and value bytes that it adds.

With --json one document is printed: {"path", "version", "size", "alignment", "data_offset", "shape", "synthetic", "splits",
"tensors", "parameters", "weight_bytes", "by_type", "decode": {"weight_bytes", "kv_type", "kv_bytes", "reads"}, "whole"}.`,
		Example: `  tierscope model show model.gguf
  tierscope model show model.gguf --tensors
  tierscope model show model.gguf --json | jq .decode.weight_bytes`,
		Args: oneArg("FILE.gguf"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, ok := gguf.ParseType(kv)
			if !ok {
				return run.Errorf(run.Misuse, "--kv-type %q is no ggml type; f16, q8_0 and q4_0 are usual", kv)
			}
			f, err := gguf.Open(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(f.Summary(t))
			}
			return f.Summary(t).WriteText(a.stdout, tensors)
		},
	}
	c.Flags().BoolVar(&tensors, "tensors", false, "list all tensors")
	c.Flags().StringVar(&kv, "kv-type", kv, "type of the elements of the key-value cache")
	return c
}

// oneArg takes exactly one argument.
func oneArg(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return run.Errorf(run.Misuse, "%s takes one %s, not %d; see '%s --help'", c.Name(), name, len(args), c.CommandPath())
		}
		return nil
	}
}

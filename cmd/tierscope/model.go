package main

import "github.com/spf13/cobra"

func newModelCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Fetch, make and look at models",
		Long: `A model is a GGUF file. Fetch brings a small real one and the libraries that run it; synth makes one of any shape
with random weights; show says what a model holds and what a token costs; presets lists the shapes of published models.`,
	}
	c.AddCommand(newModelFetchCommand(a), newModelSynthCommand(a), newModelShowCommand(a), newModelPresetsCommand(a))
	return c
}

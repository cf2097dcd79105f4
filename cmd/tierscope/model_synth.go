package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/run"
)

func newModelSynthCommand(a *app) *cobra.Command {
	var s gguf.Spec
	var out, preset string
	var force bool
	c := &cobra.Command{
		Use:   "synth --out FILE.gguf [shape]",
		Short: "Make a model of any shape with random weights",
		Long: `Writes a GGUF that llama.cpp loads and runs: random weights, no tokenizer (it takes token numbers), the same bytes
for the same flags and seed. With --preset the shape is a published model's; --layers then takes a slice of it, which the
file records, so that a report can scale it to the whole. Nothing is overwritten without --force.

Architectures: ` + strings.Join(gguf.Archs(), ", ") + `.
Types: ` + strings.Join(gguf.Types(), ", ") + `.

With --json the document of 'model show' is printed.`,
		Example: `  tierscope model synth --out small.gguf --layers 4 --heads 8 --kv-heads 2 --width 256 --type q4_0
  tierscope model synth --out moe.gguf --experts 8 --experts-used 2
  tierscope model synth --out window.gguf --arch gemma3 --sliding-window 64 --swa-pattern 2
  tierscope model synth --out slice.gguf --preset llama-3.1-70b --layers 2 --type q4_k_m`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				return run.Errorf(run.Misuse, "--out: missing; name the file to write")
			}
			if preset != "" {
				p, err := gguf.PresetSpec(preset, s.Layers)
				if err != nil {
					return err
				}
				for _, name := range shapeFlags {
					if c.Flags().Changed(name) {
						return run.Errorf(run.Misuse, "--%s: the shape is that of --preset %s; only --layers, --type and --seed go with it", name, preset)
					}
				}
				p.Type, p.Seed = s.Type, s.Seed
				s = p
			}
			o := gguf.Options{Force: force, Progress: a.progress("synth " + out)}
			if err := gguf.Write(c.Context(), out, s, o); err != nil {
				return err
			}
			f, err := gguf.Open(out)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(f.Summary(gguf.F16))
			}
			return f.Summary(gguf.F16).WriteText(a.stdout, false)
		},
	}
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "file to write")
	f.BoolVar(&force, "force", false, "replace the file if it exists")
	f.StringVar(&preset, "preset", "", "shape of a published model; see 'model presets'")
	f.IntVar(&s.Layers, "layers", 0, "layers (2, or all of the preset)")
	f.StringVar(&s.Type, "type", "", "type of the matrices (f16)")
	f.Uint64Var(&s.Seed, "seed", 0, "seed of the weights")
	f.StringVar(&s.Arch, "arch", "", "architecture (llama; gemma3 with a window)")
	f.IntVar(&s.Heads, "heads", 0, "attention heads (4)")
	f.IntVar(&s.KVHeads, "kv-heads", 0, "heads of keys and values (as many as heads)")
	f.IntVar(&s.Width, "width", 0, "embedding length (256)")
	f.IntVar(&s.HeadDim, "head-dim", 0, "elements of a head (width / heads)")
	f.IntVar(&s.FFN, "ffn", 0, "feed-forward length, of one expert if there are (3 x width)")
	f.IntVar(&s.Vocab, "vocab", 0, "vocabulary (512 tokens)")
	f.IntVar(&s.Context, "context", 0, "trained context (2048 tokens)")
	f.IntVar(&s.Experts, "experts", 0, "experts of a layer (none)")
	f.IntVar(&s.ExpertsUsed, "experts-used", 0, "experts that a token uses (2)")
	f.IntVar(&s.SlidingWindow, "sliding-window", 0, "window of attention in tokens (none)")
	f.IntVar(&s.SWAPattern, "swa-pattern", 0, "every n-th layer sees past the window (as the architecture has it)")
	f.BoolVar(&s.Tied, "tied", false, "use the token embedding as output matrix")
	f.Float64Var(&s.RopeBase, "rope-base", 0, "base of rotary positions (10000)")
	return c
}

// shapeFlags are what a preset fixes.
var shapeFlags = []string{"arch", "heads", "kv-heads", "width", "head-dim", "ffn", "vocab", "context", "experts", "experts-used",
	"sliding-window", "swa-pattern", "tied", "rope-base"}

// progress returns a function that says on stderr, once a second at most, how
// many of how many bytes are done.
func (a *app) progress(what string) func(done, total int64) {
	start := time.Now()
	last := start
	return func(done, total int64) {
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		rate := float64(done) / last.Sub(start).Seconds()
		fmt.Fprintf(a.stderr, "%s: %d of %d MB, %.0f MB/s, %.0f s left\n", what, done/1e6, total/1e6, rate/1e6, float64(total-done)/rate)
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/experiment"
)

// quickFlags describe an experiment of one model without a file.
type quickFlags struct {
	experiment.Quick
	flash, typeK, typeV string
	noExperts           bool
	noCalibration       bool
	pairs               int
}

func (q *quickFlags) add(c *cobra.Command) {
	q.Set = experiment.Default(experiment.Strict).Settings()
	f := c.Flags()
	f.StringVarP(&q.Model, "model", "m", "", "model file (GGUF)")
	f.IntVar(&q.Context, "context", 2048, "context length in tokens, with --model")
	f.IntVar(&q.Tokens, "tokens", 96, "tokens to generate for each prompt, with --model")
	f.IntVar(&q.Batch, "batch", 1, "sequences decoded together, with --model")
	f.StringArrayVar(&q.Prompts, "prompt", nil, "prompt, may be repeated, with --model; default: tierscope's own")
	f.StringVar(&q.Set.Lib, "lib", "", "your own libllama, a file or its directory, with --model")
	f.IntVar(&q.Set.Threads, "threads", 0, "engine threads, with --model; 0: one less than there are cores")
	f.Uint32Var(&q.Set.Seed, "seed", q.Set.Seed, "seed of sampling, with --model")
	f.BoolVar(&q.Set.Callback, "layer-times", false, "exact layer times through the evaluation callback, at 3 to 9 % of decode speed, with --model")
	f.BoolVar(&q.noExperts, "no-experts", false, "do not read which experts were chosen: no callback, an upper bound, with --model")
	f.StringVar(&q.flash, "flash-attn", string(q.Set.FlashAttn), "flash attention: auto, on or off, with --model")
	f.StringVar(&q.typeK, "kv-type-k", string(q.Set.KVTypeK), "element type of keys, with --model")
	f.StringVar(&q.typeV, "kv-type-v", string(q.Set.KVTypeV), "element type of values, with --model")
	f.IntVar(&q.Set.KVBlockTokens, "kv-block", q.Set.KVBlockTokens, "tokens in a KV block, with --model")
	f.BoolVar(&q.noCalibration, "no-calibration", false, "do not measure what observing costs, with --model")
	f.IntVar(&q.pairs, "calibration-pairs", 0, "pairs of 16-token blocks that the calibration decodes; 0: 12")
}

func (q *quickFlags) config() (*experiment.Config, error) {
	q.Set.FlashAttn, q.Set.KVTypeK, q.Set.KVTypeV = experiment.FlashAttn(q.flash), experiment.KVType(q.typeK), experiment.KVType(q.typeV)
	q.Set.Experts, q.Set.Calibration = !q.noExperts, !q.noCalibration
	return q.Config()
}

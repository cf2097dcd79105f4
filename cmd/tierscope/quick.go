package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/run"
)

// quickFlags describe an experiment of one model without a file.
type quickFlags struct {
	experiment.Quick
	flash, typeK, typeV string
	noExperts           bool
	noCalibration       bool
	pairs               int
}

// withModel is in the usage of the flags that go with --model only.
const withModel = ", with --model"

func (q *quickFlags) add(c *cobra.Command) {
	q.Set = experiment.Default(experiment.Strict).Settings()
	f := c.Flags()
	f.StringVarP(&q.Model, "model", "m", "", "model file (GGUF)")
	f.IntVar(&q.Context, "context", 2048, "context length in tokens"+withModel)
	f.IntVar(&q.Tokens, "tokens", 96, "tokens to generate for each prompt"+withModel)
	f.IntVar(&q.Batch, "batch", 1, "sequences decoded together"+withModel)
	f.StringArrayVar(&q.Prompts, "prompt", nil, "prompt, may be repeated; default: tierscope's own"+withModel)
	f.StringVar(&q.Set.Lib, "lib", "", "your own libllama, a file or its directory"+withModel)
	f.IntVar(&q.Set.Threads, "threads", 0, "engine threads; 0: one less than there are cores"+withModel)
	f.Uint32Var(&q.Set.Seed, "seed", q.Set.Seed, "seed of sampling"+withModel)
	f.Float64Var(&q.Set.Temperature, "temperature", 0, "of sampling; 0: always the likeliest token"+withModel)
	f.BoolVar(&q.Set.Callback, "layer-times", false, "exact layer times through the evaluation callback, at 8 to 17 % of decode speed"+withModel)
	f.BoolVar(&q.noExperts, "no-experts", false, "do not read which experts were chosen: no callback, an upper bound"+withModel)
	f.StringVar(&q.flash, "flash-attn", string(q.Set.FlashAttn), "flash attention: auto, on or off"+withModel)
	f.StringVar(&q.typeK, "kv-type-k", string(q.Set.KVTypeK), "element type of keys"+withModel)
	f.StringVar(&q.typeV, "kv-type-v", string(q.Set.KVTypeV), "element type of values"+withModel)
	f.IntVar(&q.Set.KVBlockTokens, "kv-block", q.Set.KVBlockTokens, "tokens in a KV block"+withModel)
	f.BoolVar(&q.noCalibration, "no-calibration", false, "do not measure what observing costs"+withModel)
	f.IntVar(&q.pairs, "calibration-pairs", 0, "pairs of 16-token blocks that the calibration decodes; 0: 12")
}

// alone refuses flags that say what a config says.
func (q *quickFlags) alone(c *cobra.Command, config string) error {
	if config == "" {
		return nil
	}
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && strings.Contains(f.Usage, withModel) {
			err = run.Errorf(run.Misuse, "--%s goes with --model, not with --config: say it in %s", f.Name, config)
		}
	})
	return err
}

func (q *quickFlags) config() (*experiment.Config, error) {
	q.Set.FlashAttn, q.Set.KVTypeK, q.Set.KVTypeV = experiment.FlashAttn(q.flash), experiment.KVType(q.typeK), experiment.KVType(q.typeV)
	q.Set.Experts, q.Set.Calibration = !q.noExperts, !q.noCalibration
	return q.Config()
}

package experiment

import (
	"math/big"
	"slices"
	"strconv"
)

// MaxRuns is the most runs that a plan can have, warm-ups counted.
const MaxRuns = 1_000_000

func (c *Config) check(d *decoder, n *node, _ string) {
	if c.totalRuns(c.Sweep.Repetitions, c.Sweep.WarmupRuns).Cmp(big.NewInt(MaxRuns)) > 0 {
		d.fail(n.section("sweep"), "sweep", "too_many_runs", "the sweep makes %s runs, more than %d; split it",
			c.totalRuns(c.Sweep.Repetitions, c.Sweep.WarmupRuns), MaxRuns)
	}
	if d.mode == Compat {
		return
	}
	c.checkModels(d, n.get("models"))
	c.checkRoom(d, n.section("sweep"))
	if p := n.section("collector").get("primary"); p != nil && c.Collector.Primary != TensorGraphCollector {
		d.warn(p, "collector.primary", "no_effect", "%s is not used yet; tensorgraph observes the run", c.Collector.Primary)
	}
	if c.Prompts != nil && len(c.Tierscope.Prompts) > 0 {
		d.fail(n.section("tierscope").get("prompts"), "tierscope.prompts", "conflict", "there are prompts from prompts.source too; keep one of the two")
	}
}

// section returns the value of key, or n itself if there is none.
func (n *node) section(key string) *node {
	if s := n.get(key); s != nil {
		return s
	}
	return n
}

func (c *Config) checkModels(d *decoder, n *node) {
	first := map[string]int{}
	for i := range c.Models {
		m := &c.Models[i]
		path := "models." + strconv.Itoa(i)
		if was, ok := first[m.ID]; ok {
			d.fail(n.list[i].get("id"), path+".id", "repeated_value", "model %q is there already, as models.%d", m.ID, was)
		}
		first[m.ID] = i
		if m.Runnable() != nil {
			d.warn(n.list[i].get("engine"), path+".engine", "not_runnable", "engine %s is planned but cannot be run yet", m.Engine)
		}
	}
}

// checkRoom warns of combinations whose output cannot fit their context, unless
// every prompt says itself how much it wants.
func (c *Config) checkRoom(d *decoder, n *node) {
	own := c.Tierscope.Prompts
	if len(own) > 0 && !slices.ContainsFunc(own, func(p OwnPrompt) bool { return p.Tokens == 0 }) {
		return
	}
	for _, ctx := range c.Sweep.ContextLengths {
		for _, out := range c.Sweep.OutputTokens {
			if out >= ctx {
				d.warn(n, "sweep", "no_room", "output_tokens %d leave no room for a prompt in context_lengths %d; the output will be cut", out, ctx)
			}
		}
	}
}

// totalRuns is the number of runs with so many repetitions and warm-ups.
func (c *Config) totalRuns(repetitions, warmups int) *big.Int {
	total := new(big.Int).Add(big.NewInt(int64(repetitions)), big.NewInt(int64(warmups)))
	for _, n := range []int{len(c.Models), len(c.Sweep.ContextLengths), len(c.Sweep.BatchSizes), len(c.Sweep.OutputTokens)} {
		total.Mul(total, big.NewInt(int64(n)))
	}
	return total
}

func (m *Model) check(d *decoder, n *node, path string) {
	has := func(s *string) bool { return s != nil && *s != "" }
	if m.Engine == LlamaCPP && !has(m.Path) {
		d.fail(n, path, "value_error", "model %q uses llamacpp and needs a path", m.ID)
	}
	if m.Engine == VLLM && !has(m.Path) && !has(m.HFRepo) {
		d.fail(n, path, "value_error", "model %q uses vllm and needs hf_repo or path", m.ID)
	}
}

func (s *Settings) check(d *decoder, n *node, path string) {
	if s.KVTypeV.Quantised() && s.FlashAttn == FlashOff {
		d.fail(n.section("kv_type_v"), path+".kv_type_v", "conflict", "%s needs flash attention; set flash_attn to auto or \"on\"", s.KVTypeV)
	}
	if len(s.Prompts) > 0 && s.Prompts[0].Keep {
		d.fail(n.get("prompts").list[0].get("keep"), path+".prompts.0.keep", "conflict", "the first prompt has no conversation to go on with")
	}
}

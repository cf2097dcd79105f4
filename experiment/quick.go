package experiment

import (
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// Quick is an experiment of one model without a file.
type Quick struct {
	Model   string // path of the GGUF
	Context int    // tokens
	Tokens  int    // to generate, a prompt
	Batch   int    // sequences decoded together
	Prompts []string
	Set     Settings // tierscope's own settings; from [Config.Settings] of [Default]
}

// Config makes the experiment that q stands for. What a file could not say either
// is an error of class [run.Misuse].
func (q *Quick) Config() (*Config, error) {
	c := Default(Strict)
	id := strings.TrimSuffix(filepath.Base(q.Model), filepath.Ext(q.Model))
	if err := run.CheckName("model id", id); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	path := q.Model
	c.Experiment.Name = id
	c.Models = []Model{{ID: id, Engine: LlamaCPP, Path: &path}}
	c.Sweep.ContextLengths, c.Sweep.OutputTokens, c.Sweep.BatchSizes = []int{q.Context}, []int{q.Tokens}, []int{q.Batch}
	set := q.Set
	for _, p := range q.Prompts {
		set.Prompts = append(set.Prompts, OwnPrompt{Text: p})
	}
	c.Tierscope = &set
	return c, nil
}

func (q *Quick) check() error {
	s := &q.Set
	for _, n := range []struct {
		name      string
		v, lo, hi int
	}{
		{"context", q.Context, 1, math.MaxInt32}, {"tokens", q.Tokens, 1, math.MaxInt32}, {"batch", q.Batch, 1, math.MaxInt32},
		{"threads", s.Threads, 0, 4096}, {"kv-block", s.KVBlockTokens, 1, 1 << 20}, {"seed", int(s.Seed), 0, math.MaxUint32 - 1},
	} {
		if n.v < n.lo || n.v > n.hi {
			return run.Errorf(run.Misuse, "--%s %d: want %d to %d", n.name, n.v, n.lo, n.hi)
		}
	}
	if !(s.Temperature >= 0 && s.Temperature <= 10) {
		return run.Errorf(run.Misuse, "--temperature %g: want 0 to 10", s.Temperature)
	}
	for _, err := range []error{among("flash-attn", s.FlashAttn), among("kv-type-k", s.KVTypeK), among("kv-type-v", s.KVTypeV)} {
		if err != nil {
			return err
		}
	}
	if s.KVTypeV.Quantised() && s.FlashAttn == FlashOff {
		return run.Errorf(run.Misuse, "--kv-type-v %s needs flash attention; set --flash-attn to auto or on", s.KVTypeV)
	}
	for i, p := range q.Prompts {
		if strings.TrimSpace(p) == "" {
			return run.Errorf(run.Misuse, "--prompt: prompt %d is empty: remove it or give it text", i+1)
		}
	}
	return nil
}

// among refuses a value of a flag that is none of its type's.
func among[T interface {
	~string
	choice
}](flag string, v T) error {
	words := v.values(Strict)
	if slices.Contains(words, string(v)) {
		return nil
	}
	hint := ""
	if n := nearest(string(v), words); n != "" {
		hint = "; did you mean " + n + "?"
	}
	return run.Errorf(run.Misuse, "--%s %q: want one of %s%s", flag, string(v), strings.Join(words, ", "), hint)
}

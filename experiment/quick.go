package experiment

import (
	"path/filepath"
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

// Config makes the experiment that q stands for.
func (q *Quick) Config() (*Config, error) {
	c := Default(Strict)
	id := strings.TrimSuffix(filepath.Base(q.Model), filepath.Ext(q.Model))
	if err := run.CheckName("model id", id); err != nil {
		return nil, err
	}
	path := q.Model
	c.Experiment.Name = id
	c.Models = []Model{{ID: id, Engine: LlamaCPP, Path: &path}}
	if q.Context < 1 || q.Tokens < 1 || q.Batch < 1 {
		return nil, run.Errorf(run.Misuse, "context %d, tokens %d, batch %d: give at least 1 of each", q.Context, q.Tokens, q.Batch)
	}
	c.Sweep.ContextLengths, c.Sweep.OutputTokens, c.Sweep.BatchSizes = []int{q.Context}, []int{q.Tokens}, []int{q.Batch}
	set := q.Set
	for _, p := range q.Prompts {
		set.Prompts = append(set.Prompts, OwnPrompt{Text: p})
	}
	c.Tierscope = &set
	return c, nil
}

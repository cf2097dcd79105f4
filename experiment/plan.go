package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"
)

// Plan is what an experiment runs, in order. The same config gives the same
// plan; the time stamp of run ids is given to it from outside.
type Plan struct {
	Mode Mode
	// Config is what the plan was made from; not to be changed.
	Config *Config
	Runs   []PlannedRun
}

// PlannedRun is a run of a plan.
type PlannedRun struct {
	// ID is the run id without the time stamp behind it.
	ID            string `json:"id"`
	Model         string `json:"model"`
	ContextLength int    `json:"context_length"` // tokens
	BatchSize     int    `json:"batch_size"`     // sequences decoded together
	OutputTokens  int    `json:"output_tokens"`  // for each prompt
	// RepIndex counts from 0 within the warm-ups or the repetitions of a combination.
	RepIndex int  `json:"rep_index"`
	Warmup   bool `json:"is_warmup"`
	// Spec is the model's section of the config.
	Spec *Model `json:"-"`

	base string
}

// NewPlan expands the sweep of c. From the outside to the inside: models, context
// lengths, batch sizes, output tokens, and there warm-ups before
// repetitions. In [Compat] the ids of warm-ups carry no index, as mrm-trace has it.
func NewPlan(c *Config, m Mode) *Plan {
	p := &Plan{Mode: m, Config: c}
	for i := range c.Models {
		for _, ctx := range c.Sweep.ContextLengths {
			for _, batch := range c.Sweep.BatchSizes {
				for _, out := range c.Sweep.OutputTokens {
					r := PlannedRun{Model: c.Models[i].ID, ContextLength: ctx, BatchSize: batch, OutputTokens: out,
						Spec: &c.Models[i], base: c.Output.BaseDir}
					p.add(r)
				}
			}
		}
	}
	return p
}

// add appends the warm-ups and repetitions of one combination.
func (p *Plan) add(r PlannedRun) {
	stem := fmt.Sprintf("%s_ctx%d_batch%d_out%d_", r.Model, r.ContextLength, r.BatchSize, r.OutputTokens)
	r.Warmup = true
	for r.RepIndex = range p.Config.Sweep.WarmupRuns {
		r.ID = stem + "warmup"
		if p.Mode == Strict {
			r.ID = fmt.Sprintf("%swarmup%d", stem, r.RepIndex)
		}
		p.Runs = append(p.Runs, r)
	}
	r.Warmup = false
	for r.RepIndex = range p.Config.Sweep.Repetitions {
		r.ID = fmt.Sprintf("%srep%d", stem, r.RepIndex)
		p.Runs = append(p.Runs, r)
	}
}

// Stamp is the time stamp of run ids for t: YYYYMMDDTHHMMSSZ in UTC.
func Stamp(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// RunID is the id of the run started under stamp.
func (r *PlannedRun) RunID(stamp string) string { return r.ID + "_" + stamp }

// OutputDir is the directory of the run started under stamp:
// output.base_dir, the model's id, the run id.
func (r *PlannedRun) OutputDir(stamp string) string {
	dir := r.base
	for _, part := range []string{r.Model, r.RunID(stamp)} {
		if path.IsAbs(part) {
			dir = part
		} else {
			dir += "/" + part
		}
	}
	return cleanPath(dir)
}

// cleanPath removes what Python's pathlib removes: repeated and trailing
// slashes and single dots. Double dots stay.
func cleanPath(p string) string {
	var parts []string
	for _, s := range strings.Split(p, "/") {
		if s != "" && s != "." {
			parts = append(parts, s)
		}
	}
	clean := strings.Join(parts, "/")
	switch {
	case strings.HasPrefix(p, "//") && !strings.HasPrefix(p, "///"):
		return "//" + clean
	case strings.HasPrefix(p, "/"):
		return "/" + clean
	case clean == "":
		return "."
	}
	return clean
}

// Warmups is the number of warm-up runs.
func (p *Plan) Warmups() int {
	n := 0
	for i := range p.Runs {
		if p.Runs[i].Warmup {
			n++
		}
	}
	return n
}

// canonical is the part of a plan that is hashed. Its JSON form is fixed by Format.
type canonical struct {
	Format     int          `json:"format"`
	Experiment string       `json:"experiment"`
	Models     []Model      `json:"models"`
	Sweep      Sweep        `json:"sweep"`
	Prompts    *Prompts     `json:"prompts"`
	Policy     string       `json:"unknown_policy"`
	Analyser   Analyser     `json:"analyser"`
	Tierscope  Settings     `json:"tierscope"`
	Runs       []PlannedRun `json:"runs"`
}

// Canonical is the canonical JSON of the plan: object keys in byte order, no
// white space. What is left out is said in the package comment.
func (p *Plan) Canonical() ([]byte, error) {
	c := p.Config
	b, err := encode(canonical{Format: 1, Experiment: c.Experiment.Name, Models: c.Models, Sweep: c.Sweep, Prompts: c.Prompts,
		Policy: string(c.Labeller.UnknownPolicy), Analyser: c.Analyser, Tierscope: c.Settings(), Runs: p.Runs})
	if err != nil {
		return nil, err
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return encode(v) // maps are encoded in the order of their keys
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Hash is the SHA-256 of [Plan.Canonical] in hexadecimal.
func (p *Plan) Hash() (string, error) {
	b, err := p.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

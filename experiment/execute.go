package experiment

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tierscope/tierscope/run"
)

// RunResult is what one run of a plan left, as `run --json` prints it.
type RunResult struct {
	Dir         string     `json:"run_dir"`
	RunID       string     `json:"run_id"`
	Warmup      bool       `json:"warmup"`
	RunValidity string     `json:"run_validity"`
	Valid       bool       `json:"valid"`
	Notes       []run.Note `json:"notes"`
	Resumed     bool       `json:"resumed,omitempty"` // finished by an earlier call
	Summary     []string   `json:"summary,omitempty"`
	Error       string     `json:"error,omitempty"`
}

// Results is what a plan left.
type Results struct {
	Runs    []RunResult `json:"runs"`
	Summary string      `json:"summary"`
}

// Execution is how a plan is run.
type Execution struct {
	Plan  *Plan
	Out   string // results directory; "" = the config's
	Stamp string // of the run ids
	// Resume skips runs of the same plan that are finished already, whatever
	// their stamp.
	Resume bool
	// Progress gets one line at a time; may be nil.
	Progress func(format string, args ...any)
	// Pairs is the number of calibration pairs; 0 = the default.
	Pairs int
}

// Execute runs the plan, one run after the other. Results are complete for what
// ran, also beside an error. A run that fails does not keep the others from
// running, unless it is interrupted, its plan is wrong or the disk is full.
func (x *Execution) Execute(ctx context.Context) (*Results, error) {
	if x.Progress == nil {
		x.Progress = func(string, ...any) {}
	}
	hash, err := x.Plan.Hash()
	if err != nil {
		return nil, err
	}
	prompts, err := x.Plan.Config.LoadPrompts()
	if err != nil {
		return nil, err
	}
	if len(prompts) == 0 {
		prompts = DefaultPrompts()
	}
	res := &Results{Runs: []RunResult{}}
	var failed error
	for i := range x.Plan.Runs {
		p := &x.Plan.Runs[i]
		if done := x.finished(p, hash); done != nil {
			x.Progress("run %d of %d: %s is finished already", i+1, len(x.Plan.Runs), done.RunID)
			res.Runs = append(res.Runs, *done)
			continue
		}
		x.Progress("run %d of %d: %s", i+1, len(x.Plan.Runs), p.RunID(x.Stamp))
		one := &single{Execution: x, planned: p, hash: hash, prompts: prompts}
		r, err := one.execute(ctx)
		if r != nil {
			res.Runs = append(res.Runs, *r)
		}
		if err != nil {
			x.Progress("%s: %v", p.RunID(x.Stamp), err)
			failed = worse(failed, err)
			if c := run.ClassOf(err); c == run.Interrupted || c == run.Misuse || c == run.IO || c == run.Capability || c == run.Corrupt {
				break
			}
		}
	}
	valid, warm := 0, 0
	for _, r := range res.Runs {
		if r.Warmup {
			warm++
		} else if r.Valid {
			valid++
		}
	}
	res.Summary = fmt.Sprintf("%d of %d runs valid, %d warm-ups apart", valid, len(x.Plan.Runs)-x.Plan.Warmups(), warm)
	return res, failed
}

func worse(a, b error) error {
	if a == nil {
		return b
	}
	return a
}

// base is the directory of a planned run's model.
func (x *Execution) base() string {
	if x.Out != "" {
		return x.Out
	}
	return x.Plan.Config.Output.BaseDir
}

// finished returns the result of a finished run of the same plan and place in
// it, nil if there is none or it is not to be resumed.
func (x *Execution) finished(p *PlannedRun, hash string) *RunResult {
	if !x.Resume {
		return nil
	}
	dirs, err := filepath.Glob(filepath.Join(x.base(), p.Model, escapeGlob(p.ID)+"_*"))
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		r, err := run.Open(d)
		if err != nil || r.State != run.Finished || r.Metadata == nil || r.Metadata.PlanHash != hash || r.Manifest.State != "complete" {
			continue
		}
		v := r.Metadata.Validity
		return &RunResult{Dir: d, RunID: r.Metadata.RunID, Warmup: p.Warmup, RunValidity: v.RunValidity, Valid: v.Valid, Notes: v.Notes, Resumed: true}
	}
	return nil
}

func escapeGlob(s string) string {
	var b []byte
	for i := range len(s) {
		if c := s[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}

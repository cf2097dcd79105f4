package experiment

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tierscope/tierscope/run"
)

// States of a run's directory in a [RunResult].
const (
	StateNone       = "none"       // nothing ran: there is no directory
	StateUnfinished = "unfinished" // no manifest: 'tierscope recover' finishes it
)

// RunResult is what one run of a plan left, as `run --json` prints it.
type RunResult struct {
	Dir         string     `json:"run_dir"` // "" if nothing ran
	RunID       string     `json:"run_id"`
	State       string     `json:"state"` // complete, partial, unfinished, none
	Warmup      bool       `json:"warmup"`
	RunValidity string     `json:"run_validity"` // "" if nothing ran
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
	Error   string      `json:"error,omitempty"` // the one that Execute returned
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
	// Hurry, if not nil, is closed when an interrupted run shall not even be
	// finished: its directory is left for recover.
	Hurry <-chan struct{}
}

// Execute runs the plan, one run after the other. What cannot run is refused
// before anything is written. Results are complete for what ran, also beside an
// error, and never nil. A run that fails does not keep the others from running,
// unless it is interrupted, the disk is full or the engine cannot be observed; a
// model that the engine cannot load is not tried again.
func (x *Execution) Execute(ctx context.Context) (*Results, error) {
	if x.Progress == nil {
		x.Progress = func(string, ...any) {}
	}
	res := &Results{Runs: []RunResult{}}
	err := x.runs(ctx, res)
	valid, warm := 0, 0
	for _, r := range res.Runs {
		if r.Warmup {
			warm++
		} else if r.Valid {
			valid++
		}
	}
	res.Summary = fmt.Sprintf("%d of %d runs valid, %d warm-ups apart", valid, len(x.Plan.Runs)-x.Plan.Warmups(), warm)
	if err != nil {
		res.Error = err.Error()
	}
	return res, err
}

func (x *Execution) runs(ctx context.Context, res *Results) error {
	sh, err := x.prepare(ctx)
	if err != nil {
		return err
	}
	defer sh.close()
	var first error
	failed, total := 0, len(x.Plan.Runs)
	for i := range x.Plan.Runs {
		p := &x.Plan.Runs[i]
		if done := sh.done[p]; done != nil {
			x.Progress("run %d of %d: %s is finished already", i+1, total, done.RunID)
			res.Runs = append(res.Runs, *done)
			continue
		}
		x.Progress("run %d of %d: %s", i+1, total, p.RunID(x.Stamp))
		one := &single{Execution: x, shared: sh, planned: p}
		r, err := one.execute(ctx)
		if err != nil {
			r.Error = err.Error()
		}
		res.Runs = append(res.Runs, r)
		if err == nil {
			continue
		}
		if total == 1 || p.Spec.Runnable() == nil && stops(err) {
			return err
		}
		x.Progress("  %v", err)
		if failed++; first == nil {
			first = err
		}
	}
	if first != nil {
		return fmt.Errorf("%d of %d runs failed, the first: %w", failed, total, first)
	}
	return nil
}

// stops reports whether the runs behind one that failed with err would fail too,
// or are not wanted.
func stops(err error) bool {
	c := run.ClassOf(err)
	return c == run.Interrupted || c == run.IO || c == run.Capability
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
	dirs, err := filepath.Glob(filepath.Join(escapeGlob(x.base()), escapeGlob(p.Model), escapeGlob(p.ID)+"_*"))
	if err != nil {
		return nil
	}
	for _, d := range dirs {
		r, err := run.Open(d)
		if err != nil || r.State != run.Finished || r.Metadata == nil || r.Metadata.PlanHash != hash || r.Manifest.State != run.StateComplete {
			continue
		}
		v := r.Metadata.Validity
		return &RunResult{Dir: d, RunID: r.Metadata.RunID, State: run.StateComplete, Warmup: p.Warmup,
			RunValidity: v.RunValidity, Valid: v.Valid, Notes: listed(v.Notes), Resumed: true}
	}
	return nil
}

// listed makes no notes an empty list.
func listed(notes []run.Note) []run.Note {
	if notes == nil {
		return []run.Note{}
	}
	return notes
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

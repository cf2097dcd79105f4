package experiment

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/system/machine"
	"github.com/tierscope/tierscope/trace"
)

// defaultPairs is how many pairs of 16-token blocks the calibration takes: enough
// for an interval of about a percent on a quiet machine.
const defaultPairs = 12

// single is one run of a plan.
type single struct {
	*Execution
	*shared
	planned *PlannedRun
}

func (s *single) execute(ctx context.Context) (RunResult, error) {
	r := RunResult{RunID: s.planned.RunID(s.Stamp), State: StateNone, Warmup: s.planned.Warmup, Notes: []run.Note{}}
	if err := s.planned.Spec.Runnable(); err != nil {
		return r, err
	}
	model := s.models[*s.planned.Spec.Path]
	if model.bad != nil {
		return r, model.bad
	}
	if ctx.Err() != nil {
		return r, run.Errorf(run.Interrupted, "interrupted")
	}
	dir, err := run.Create(s.base(), s.planned.Model, r.RunID)
	if err != nil {
		return r, err
	}
	defer dir.Close()
	err = s.observe(ctx, dir, model, &r)
	if run.ClassOf(err) == run.Corrupt && r.State == run.StatePartial {
		model.bad = err
	}
	return r, err
}

// observe fills the directory of a run and says in r what became of it.
func (s *single) observe(ctx context.Context, dir *run.Dir, model *loadable, r *RunResult) error {
	meta := s.metadata(model)
	if note, ok := memoryNote(model.file, meta.Hardware.MemoryTotal); ok {
		dir.Notes.Add(note)
		s.Progress("  %s", note.Text)
	}
	w := &watch{say: s.Progress}
	err := dir.Checkpoint(meta)
	if err == nil {
		err = s.engine(ctx, dir, meta, w, s.job(model.path))
	}
	r.Dir, r.State, r.Notes = dir.Root(), StateUnfinished, dir.Notes.List()
	if w.nothing(err, dir.Path(trace.GraphLogName)) {
		if e := dir.Discard(); e != nil {
			return errors.Join(err, e)
		}
		r.Dir, r.State, r.Notes = "", StateNone, []run.Note{}
		return err
	}
	if run.ClassOf(err) == run.IO { // no room for the log: none for what follows from it
		return s.unfinished(dir, err)
	}
	meta.Clocks.Read()
	f := &finishing{
		dir: dir, notes: &dir.Notes, id: dir.ID(), meta: meta, model: model.facts, rowLimit: uint64(s.set.RowLimit), files: trace.Options{Compression: string(s.Plan.Config.Output.Compression)},
		opt: tensorgraph.Options{RunID: dir.ID(), BlockCells: s.set.KVBlockTokens},
	}
	return s.finish(ctx, f, r, err)
}

// finish seals the run. What was asked to stop is still finished: it is short.
// Asked once more, or for the first time only now, the directory is left as it is.
func (s *single) finish(ctx context.Context, f *finishing, r *RunResult, engineErr error) error {
	if ctx.Err() != nil {
		var end func()
		ctx, end = until(ctx, s.Hurry)
		defer end()
	}
	s.Progress("  expanding and analysing the trace")
	if engineErr != nil {
		f.meta.State = run.StatePartial
	}
	err := f.dir.Checkpoint(f.meta)
	if err == nil {
		err = f.write(ctx)
	}
	if err == nil {
		err = f.dir.Finish(f.meta)
	}
	if err != nil {
		if engineErr != nil && run.ClassOf(err) != run.Interrupted {
			err = run.Errorf(run.ClassOf(err), "%w (before that: %v)", err, engineErr)
		}
		return s.unfinished(f.dir, err)
	}
	r.State, r.RunValidity, r.Valid, r.Notes, r.Summary = f.meta.State, f.meta.Validity.RunValidity, f.notes.Valid(), listed(f.notes.List()), f.summary()
	if engineErr != nil {
		return engineErr
	}
	if s.planned.Warmup {
		return nil
	}
	return f.index(filepath.Join(s.base(), indexName))
}

// unfinished says what to do about a directory that could not be sealed.
func (s *single) unfinished(dir *run.Dir, err error) error {
	if run.ClassOf(err) == run.Interrupted {
		return run.Errorf(run.Interrupted, "interrupted before all was analysed; 'tierscope recover %s' finishes it", dir.Root())
	}
	return run.Errorf(run.ClassOf(err), "%w; then 'tierscope recover %s' finishes what is there", run.IOError(err), dir.Root())
}

// until is a context that ends when stop is closed, and not with ctx.
func until(ctx context.Context, stop <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if stop != nil {
		go func() {
			select {
			case <-stop:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

func (s *single) job(path string) *llamacpp.Job {
	set := &s.set
	j := &llamacpp.Job{
		Model: path, LibDir: s.lib, Context: s.planned.ContextLength, Sequences: s.planned.BatchSize, Threads: set.Threads,
		FlashAttn: string(set.FlashAttn), TypeK: string(set.KVTypeK), TypeV: string(set.KVTypeV), Seed: uint64(set.Seed), Temperature: set.Temperature, Chat: true,
		Observe: true, NodeTimes: set.Callback, Experts: set.Experts, Kill: s.Hurry,
	}
	if set.Calibration && !s.planned.Warmup {
		if j.Pairs = s.Pairs; j.Pairs == 0 {
			j.Pairs = defaultPairs
		}
	}
	for _, p := range s.prompts {
		out := p.Tokens
		if out == 0 {
			out = s.planned.OutputTokens
		}
		j.Prompts = append(j.Prompts, llamacpp.Prompt{Text: p.Text, Output: out, Keep: p.Keep, Category: p.Category})
	}
	return j
}

func (s *single) metadata(model *loadable) *run.Metadata {
	facts := model.facts
	m := run.NewMetadata()
	machine.New("").Describe(m)
	p := s.planned
	m.StartedAt = time.Now().UTC().Format(time.RFC3339)
	m.Model = run.Model{ID: p.Model, Architecture: facts.Architecture, Bytes: uint64(model.file.Size), Parameters: uint64(facts.Parameters)}
	if p.Spec.Quantisation != nil {
		m.Model.Quantisation = *p.Spec.Quantisation
	}
	if p.Spec.HFRepo != nil {
		m.Model.HFRepo = *p.Spec.HFRepo
	}
	m.Generation = run.Generation{
		ContextLength: run.Known(int64(p.ContextLength)), BatchSize: run.Known(int64(p.BatchSize)), OutputTokens: run.Known(int64(p.OutputTokens)),
		Repetition: run.Known(int64(p.RepIndex)), Seed: run.Known(int64(s.set.Seed)), Warmup: p.Warmup,
	}
	m.PlanHash = s.hash
	m.Plan = p
	m.Extra = map[string]any{"model_facts": facts, "settings": s.set, "output": s.Plan.Config.Output}
	return m
}

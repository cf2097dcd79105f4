package experiment

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/engine/fetch"
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
	planned *PlannedRun
	hash    string
	prompts []Prompt
}

func (s *single) execute(ctx context.Context) (*RunResult, error) {
	if err := s.planned.Spec.Runnable(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(*s.planned.Spec.Path)
	if err != nil {
		return nil, err
	}
	model, file, err := readModel(path)
	if err != nil {
		return nil, err
	}
	set := s.Plan.Config.Settings()
	lib, err := s.library(ctx, set.Lib)
	if err != nil {
		return nil, err
	}
	if set.Lib != "" {
		defer os.RemoveAll(lib)
		if lib, err = llamacpp.PrepareLib(set.Lib, lib); err != nil {
			return nil, err
		}
	}
	dir, err := run.Create(s.base(), s.planned.Model, s.planned.RunID(s.Stamp))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	meta := s.metadata(model, uint64(file.Size))
	if note, ok := memoryNote(file, meta.Hardware.MemoryTotal); ok {
		dir.Notes.Add(note)
	}
	if err := dir.Checkpoint(meta); err != nil {
		return nil, err
	}
	effect, engineErr := s.engine(ctx, dir, s.job(path, lib, &set))
	meta.Clocks.Read()
	f := &finishing{
		dir: dir, notes: &dir.Notes, id: dir.ID(), meta: meta, model: model, rowLimit: uint64(set.RowLimit), files: trace.Options{Compression: string(s.Plan.Config.Output.Compression)},
		opt: tensorgraph.Options{RunID: dir.ID(), BlockCells: set.KVBlockTokens, ModelPath: path, Tensors: model.tensors},
	}
	effect(meta, dir)
	if run.ClassOf(engineErr) == run.IO {
		return nil, engineErr // no room for the log: none for what follows from it
	}
	// What was asked to stop is still finished: it is short.
	return s.finish(context.WithoutCancel(ctx), f, engineErr)
}

func (s *single) finish(ctx context.Context, f *finishing, engineErr error) (*RunResult, error) {
	s.Progress("  expanding and analysing the trace")
	if err := f.write(ctx); err != nil {
		if engineErr != nil {
			return nil, engineErr
		}
		return nil, err
	}
	if engineErr != nil {
		f.meta.State = "partial"
	}
	if err := f.dir.Finish(f.meta); err != nil {
		return nil, err
	}
	if !s.planned.Warmup {
		if err := s.index(f); err != nil {
			return nil, err
		}
	}
	r := &RunResult{
		Dir: f.dir.Root(), RunID: f.dir.ID(), Warmup: s.planned.Warmup, RunValidity: f.meta.Validity.RunValidity,
		Valid: f.notes.Valid(), Notes: f.notes.List(), Summary: f.summary(),
	}
	if engineErr != nil {
		r.Error = engineErr.Error()
	}
	return r, engineErr
}

// library returns the directory of the engine libraries; for a user's own, a
// new directory to make links in.
func (s *single) library(ctx context.Context, own string) (string, error) {
	if own != "" {
		return os.MkdirTemp("", "tierscope-lib-")
	}
	return fetch.Libs(ctx, func(line string) { s.Progress("  %s", line) })
}

func (s *single) job(path, lib string, set *Settings) *llamacpp.Job {
	j := &llamacpp.Job{
		Model: path, LibDir: lib, Context: s.planned.ContextLength, Sequences: s.planned.BatchSize, Threads: set.Threads,
		FlashAttn: string(set.FlashAttn), TypeK: string(set.KVTypeK), TypeV: string(set.KVTypeV), Seed: uint64(set.Seed), Chat: true,
		Observe: true, NodeTimes: set.Callback, Experts: set.Experts,
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

func (s *single) metadata(model *modelFacts, bytes uint64) *run.Metadata {
	m := run.NewMetadata()
	machine.New("").Describe(m)
	p := s.planned
	m.StartedAt = time.Now().UTC().Format(time.RFC3339)
	m.Model = run.Model{ID: p.Model, Architecture: model.Architecture, Bytes: bytes, Parameters: uint64(model.Parameters)}
	if p.Spec.Quantisation != nil {
		m.Model.Quantisation = *p.Spec.Quantisation
	}
	if p.Spec.HFRepo != nil {
		m.Model.HFRepo = *p.Spec.HFRepo
	}
	m.Generation = run.Generation{
		ContextLength: run.Known(int64(p.ContextLength)), BatchSize: run.Known(int64(p.BatchSize)), OutputTokens: run.Known(int64(p.OutputTokens)),
		Repetition: run.Known(int64(p.RepIndex)), Seed: run.Known(int64(s.Plan.Config.Settings().Seed)), Warmup: p.Warmup,
	}
	m.PlanHash = s.hash
	m.Plan = p
	set := s.Plan.Config.Settings()
	m.Extra = map[string]any{"model_facts": model, "settings": set, "output": s.Plan.Config.Output}
	return m
}

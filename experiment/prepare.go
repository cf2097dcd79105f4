package experiment

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/internal/units"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/system/machine"
)

// shared is what the runs of a plan have in common. It is made, and with it
// refused what cannot run, before the first run makes a directory.
type shared struct {
	hash    string
	set     Settings
	prompts []Prompt
	models  map[string]*loadable       // by path as the plan has it
	done    map[*PlannedRun]*RunResult // runs that an earlier call finished
	lib     string                     // directory of the engine libraries
	scratch *scratch                   // nil unless the libraries needed links
}

// loadable is a model file that was looked at.
type loadable struct {
	path  string // absolute
	facts *modelFacts
	file  *gguf.File
	bad   error // the engine could not load it
}

func (x *Execution) prepare(ctx context.Context) (*shared, error) {
	if x.Pairs < 0 {
		return nil, run.Errorf(run.Misuse, "%d calibration pairs: give 0 or more", x.Pairs)
	}
	sh := &shared{set: x.Plan.Config.Settings(), models: map[string]*loadable{}, done: map[*PlannedRun]*RunResult{}}
	var err error
	if sh.hash, err = x.Plan.Hash(); err != nil {
		return nil, err
	}
	if sh.prompts, err = x.Plan.Config.LoadPrompts(); err != nil {
		return nil, err
	}
	if len(sh.prompts) == 0 {
		sh.prompts = DefaultPrompts()
	}
	hardware := machine.New("").Hardware()
	for i := range x.Plan.Runs {
		p := &x.Plan.Runs[i]
		if sh.done[p] = x.finished(p, sh.hash); p.Spec.Runnable() != nil || sh.done[p] != nil {
			continue
		}
		if err := sh.model(*p.Spec.Path); err != nil {
			return nil, err
		}
		m := sh.models[*p.Spec.Path]
		s := &single{Execution: x, shared: sh, planned: p}
		if err := s.job(m.path).Check(); err != nil {
			return nil, err
		}
		if err := cacheFits(m.file, &sh.set, p.ContextLength, p.BatchSize, hardware.MemoryTotal+hardware.SwapTotal); err != nil {
			return nil, err
		}
	}
	if len(sh.models) == 0 {
		return sh, nil
	}
	if err := sh.libs(ctx, x.Progress); err != nil {
		sh.close()
		return nil, err
	}
	return sh, nil
}

// model looks at a model file, once.
func (sh *shared) model(name string) error {
	if sh.models[name] != nil {
		return nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	facts, file, err := readModel(path)
	if errors.Is(err, fs.ErrNotExist) {
		return run.Errorf(run.Misuse, "model %s: no such file; give the path of a GGUF file", name)
	}
	if err != nil {
		return err
	}
	if err := cacheTypes(file, &sh.set); err != nil {
		return err
	}
	if err := mappable(file); err != nil {
		return err
	}
	sh.models[name] = &loadable{path: path, facts: facts, file: file}
	return nil
}

// quantBlock is the number of elements that share a scale, in each of the types
// that llama.cpp takes for a KV cache.
const quantBlock = 32

// cacheTypes refuses quantised KV types whose blocks do not divide a head.
func cacheTypes(f *gguf.File, set *Settings) error {
	for _, c := range []struct {
		name string
		t    KVType
		head int
	}{{"keys", set.KVTypeK, f.Shape.KeyLength}, {"values", set.KVTypeV, f.Shape.ValueLength}} {
		if c.t.Quantised() && c.head%quantBlock != 0 {
			return run.Errorf(run.Misuse, "model %s: %s of type %s need heads of a multiple of %d elements, these have %d; use f16, bf16 or f32",
				f.Path, c.name, c.t, quantBlock, c.head)
		}
	}
	return nil
}

// cacheFits refuses a KV cache larger than all memory. Unlike the weights it cannot be
// read in again, and llama.cpp writes it whole at the start.
func cacheFits(f *gguf.File, set *Settings, context, sequences int, total uint64) error {
	s := &f.Shape
	if total == 0 || len(s.KVHeads) == 0 {
		return nil
	}
	var cell float64 // bytes a token, in layers that keep all of them
	for i, heads := range s.KVHeads {
		if i < len(s.SlidingLayers) && s.SlidingLayers[i] {
			continue
		}
		cell += float64(heads) * (float64(s.KeyLength)*elementBytes(set.KVTypeK) + float64(s.ValueLength)*elementBytes(set.KVTypeV))
	}
	if need := cell * float64(context) * float64(sequences); need > float64(total) {
		return run.Errorf(run.Capability, "model %s: a context of %d tokens for %d sequences takes %s of KV cache and the machine has %s of memory; lower the context length or the batch size",
			f.Path, context, sequences, units.Bytes(need), units.Bytes(float64(total)))
	}
	return nil
}

// elementBytes is the size of an element of the KV cache, its share of the scales
// included.
func elementBytes(t KVType) float64 {
	n, ok := gguf.ParseType(string(t))
	if !ok {
		return 0
	}
	return float64(n.RowBytes(quantBlock)) / quantBlock
}

// mappable refuses a model that cannot be mapped as a whole. One larger than
// memory can be: its pages come and go.
func mappable(f *gguf.File) error {
	file, err := os.Open(f.Path)
	if err != nil {
		return run.IOError(err)
	}
	defer file.Close()
	m, err := unix.Mmap(int(file.Fd()), 0, int(f.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return run.Errorf(run.Capability, "model %s: its %s cannot be mapped: %w; raise the limit of address space (ulimit -v), or take fewer layers (tierscope model synth --layers)",
			f.Path, units.Bytes(float64(f.Size)), err)
	}
	return unix.Munmap(m)
}

// libs finds the engine libraries: a user's own, or those that are fetched.
func (sh *shared) libs(ctx context.Context, say func(string, ...any)) (err error) {
	if sh.set.Lib == "" {
		sh.lib, err = fetch.Libs(ctx, func(line string) { say("  %s", line) })
		return err
	}
	if sh.scratch, err = newScratch(); err != nil {
		return err
	}
	sh.lib, err = llamacpp.PrepareLib(sh.set.Lib, sh.scratch.dir)
	return err
}

func (sh *shared) close() {
	if sh.scratch != nil {
		sh.scratch.remove()
	}
}

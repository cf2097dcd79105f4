//go:build linux

package llamacpp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/hybridgroup/yzma/pkg/llama"
	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/internal/ring"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// ringFD is the file descriptor on which the child finds its ring.
const ringFD = 3

// Child runs the job given as JSON on in, in this process, and returns the exit
// code. Everything else goes through the ring; the engine logs to standard
// error. SIGTERM and SIGINT end it in order after the token under way.
func Child(in io.Reader) int {
	// The engine, its callbacks and the ring belong to one thread.
	runtime.LockOSThread()
	// If memory runs out it is for this process's model and cache: take it first.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0); err != nil {
		fmt.Fprintln(os.Stderr, "engine child:", err)
	}
	p, err := ring.Attach(os.NewFile(ringFD, "ring"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine child:", err)
		return int(run.Engine)
	}
	e := &emitter{ring: p}
	err = child(in, e)
	end := trace.End{Class: run.ExitCode(err), Rusage: usage()}
	if err != nil {
		end.Error = err.Error()
	}
	if err := e.json(trace.KindEnd, end); err != nil {
		fmt.Fprintln(os.Stderr, "engine child:", err)
	}
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "engine child:", err)
	}
	return end.Class
}

func usage() trace.Rusage {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return trace.Rusage{}
	}
	return trace.Rusage{UserNS: u.Utime.Nano(), SystemNS: u.Stime.Nano(), MaxRSS: u.Maxrss << 10, MinorFault: u.Minflt, MajorFault: u.Majflt}
}

func child(in io.Reader, e *emitter) error {
	var job Job
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return run.Errorf(run.Misuse, "job: %w", err)
	}
	job.Resolve()
	if err := job.validate(); err != nil {
		return err
	}
	var stopped atomic.Bool
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-sig
		stopped.Store(true)
	}()
	s := &session{job: &job, out: e, stopped: &stopped}
	begin := now()
	if err := s.load(); err != nil {
		return err
	}
	err := e.mark(observe.Mark{Kind: observe.MarkPhase, Name: observe.PhaseWeightLoad, Seq: -1, Start: begin, End: now()})
	if err == nil {
		err = s.work()
	}
	return errors.Join(err, s.close())
}

// load opens libraries, model and context, and says what they are.
func (s *session) load() error {
	lib, err := openLibrary(s.job.LibDir)
	if err != nil {
		return err
	}
	s.lib = lib
	mp := llama.ModelDefaultParams()
	if s.job.NoRepack {
		mp.UseExtraBufts = 0
	}
	if s.model, err = llama.ModelLoadFromFile(s.job.Model, mp); err != nil || s.model == 0 {
		return run.Errorf(run.Corrupt, "%s: llama.cpp cannot load this model (architecture or version it does not support, or damaged); its own words are in raw/engine.log", s.job.Model)
	}
	s.vocab = llama.ModelGetVocab(s.model)
	s.words = llama.GetVocabType(s.vocab) != llama.VocabTypeNone
	if s.job.Observe {
		s.hook, err = ggml.NewHook(lib.ggml, lib.path(), s.out, ggml.HookOptions{
			NodeTimes: s.job.NodeTimes, Chosen: s.job.Experts && s.experts() > 0, CallbackOnly: s.job.Callback,
		})
		if err != nil {
			return run.Errorf(run.Capability, "graph hook: %w", err)
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	pool := lib.attachPool(s.ctx, s.job.Threads)
	if pool != nil {
		fmt.Fprintln(os.Stderr, "engine child: no lasting thread pool:", pool)
	}
	return s.describe(pool == nil)
}

func (s *session) experts() int {
	arch, _ := llama.ModelMetaValStr(s.model, "general.architecture")
	v, ok := llama.ModelMetaValStr(s.model, arch+".expert_count")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0
	}
	return n
}

var kvTypes = map[string]llama.GGMLType{
	"f32": llama.GGMLTypeF32, "f16": llama.GGMLTypeF16, "bf16": llama.GGMLTypeBF16, "q8_0": llama.GGMLTypeQ8_0,
	"q4_0": llama.GGMLTypeQ4_0, "q4_1": llama.GGMLTypeQ4_1, "q5_0": llama.GGMLTypeQ5_0, "q5_1": llama.GGMLTypeQ5_1, "iq4_nl": llama.GGMLTypeIQ4_NL,
}

var flashTypes = map[string]llama.FlashAttentionType{
	"auto": llama.FlashAttentionTypeAuto, "on": llama.FlashAttentionTypeEnabled, "off": llama.FlashAttentionTypeDisabled,
}

// open makes the context that the requests run in.
func (s *session) open() error {
	callback := uintptr(0)
	if s.hook != nil {
		callback = s.hook.Callback()
	}
	var err error
	if s.ctx, s.mem, err = s.newContext(callback); err != nil {
		return err
	}
	s.batch = llama.BatchInit(int32(max(s.job.MicroBatch, s.job.Sequences)), 0, 1)
	s.kv = make([][]llama.Token, s.job.Sequences)
	s.conv = make([]conversation, s.job.Sequences)
	return nil
}

func (s *session) newContext(callback uintptr) (llama.Context, llama.Memory, error) {
	j := s.job
	p := llama.ContextDefaultParams()
	p.NCtx = uint32(j.Context * j.Sequences)
	p.NSeqMax = uint32(j.Sequences)
	p.NBatch = uint32(max(j.MicroBatch, j.Sequences))
	p.NUbatch = p.NBatch
	p.NThreads, p.NThreadsBatch = int32(j.Threads), int32(j.Threads)
	p.NoPerf = 1
	p.SwaFull = 0 // layers with a sliding window keep what a window needs, as llama-server has it
	var ok1, ok2, ok3 bool
	p.TypeK, ok1 = kvTypes[j.TypeK]
	p.TypeV, ok2 = kvTypes[j.TypeV]
	p.FlashAttentionType, ok3 = flashTypes[j.FlashAttn]
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, run.Errorf(run.Misuse, "KV types %q, %q or flash attention %q: not among those llama.cpp has", j.TypeK, j.TypeV, j.FlashAttn)
	}
	p.CbEval = callback
	ctx, err := llama.InitFromModel(s.model, p)
	if err != nil || ctx == 0 {
		return 0, 0, run.Errorf(run.Engine, "llama.cpp cannot make a context of %d tokens with KV types %s, %s and flash attention %s; its own words are in raw/engine.log", p.NCtx, j.TypeK, j.TypeV, j.FlashAttn)
	}
	mem, err := llama.GetMemory(ctx)
	if err != nil {
		return 0, 0, run.Errorf(run.Engine, "KV cache: %w", err)
	}
	return ctx, mem, nil
}

func (s *session) describe(pool bool) error {
	via := "none"
	if s.hook != nil {
		via = s.hook.Via()
	}
	info := trace.Engine{
		Name: "llama.cpp", Version: s.lib.version(), Library: base(s.lib.path()), Backend: base(cpuBackend()), Via: via,
		PID: uint32(os.Getpid()), Thread: uint32(unix.Gettid()), Threads: s.job.Threads, Pool: pool,
		Model: llama.ModelDesc(s.model), Layers: int(llama.ModelNLayer(s.model)), Embedding: int(llama.ModelNEmbd(s.model)),
		Vocabulary: int(llama.VocabNTokens(s.vocab)), ModelBytes: llama.ModelSize(s.model), Context: int(llama.NCtx(s.ctx)),
		Sequences: s.job.Sequences, FlashAttn: s.job.FlashAttn, TypeK: s.job.TypeK, TypeV: s.job.TypeV,
	}
	if err := s.out.json(trace.KindEngine, info); err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	return s.out.write(trace.KindMaps, maps)
}

func base(path string) string {
	if real, err := os.Readlink(path); err == nil {
		path = real
	}
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// work runs the requests and the calibration.
func (s *session) work() error {
	if err := s.check(); err != nil {
		return err
	}
	if s.hook != nil {
		if err := s.hook.On(); err != nil {
			return run.Errorf(run.Capability, "graph hook: %w", err)
		}
	}
	for _, w := range s.waves() {
		if s.stopped.Load() {
			break
		}
		if err := s.wave(w); err != nil {
			return err
		}
	}
	if s.hook != nil {
		if err := s.hook.Err(); err != nil {
			return hookError(err)
		}
		if s.job.Pairs > 0 && !s.stopped.Load() {
			// What was observed stands, whatever comes of measuring its cost.
			if err := s.calibrate(); err != nil {
				if err := s.out.json(trace.KindTrial, trace.Trial{Error: err.Error()}); err != nil {
					return err
				}
			}
		}
		s.hook.Off()
	}
	if s.stopped.Load() {
		return run.Errorf(run.Interrupted, "interrupted")
	}
	return nil
}

func hookError(err error) error {
	var layout *ggml.LayoutError
	if errors.As(err, &layout) {
		return run.Errorf(run.Capability, "%w; use another version of llama.cpp, or 'tierscope model fetch libs'", err)
	}
	return run.Errorf(run.Partial, "observer: %w", err)
}

func (s *session) close() error {
	begin := now()
	err := s.clear()
	s.lib.freePool(s.ctx)
	llama.BatchFree(s.batch)
	llama.Free(s.ctx)
	llama.ModelFree(s.model)
	return errors.Join(err, s.out.mark(observe.Mark{Kind: observe.MarkPhase, Name: observe.PhaseTeardown, Seq: -1, Start: begin, End: now()}))
}

//go:build linux

package llamacpp

import (
	"math/rand/v2"

	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// blockTokens is the length of a block of the calibration.
const blockTokens = 16

// calibrate measures what the observer costs: the same tokens at the same positions are
// decoded again and again, the probe on in one block and off in the other of
// each pair, in changing order. What a slow drift of the machine does to one it
// does to the other. An evaluation callback without the slot cannot be taken away
// from a context, so there "off" is a second context that never had it.
func (s *session) calibrate() error {
	if err := s.clear(); err != nil {
		return err
	}
	prefix := min(64, s.job.MicroBatch, s.job.Context-blockTokens-1)
	if prefix < 1 {
		return nil
	}
	s.out.idle = true
	defer func() { s.out.idle = false }()
	rng := rand.New(rand.NewPCG(s.job.Seed, 0xca11))
	tokens := make([]llama.Token, prefix+blockTokens)
	for i := range tokens {
		tokens[i] = llama.Token(rng.Int32N(llama.VocabNTokens(s.vocab)))
	}
	on, mem := s.ctx, s.mem
	defer func() { s.ctx, s.mem = on, mem }()
	off, offMem := on, mem
	if s.hook.Via() == "callback" {
		var err error
		if off, offMem, err = s.newContext(0); err != nil {
			return err
		}
		defer llama.Free(off)
		if s.lib.pool != 0 {
			llama.AttachThreadpool(off, s.lib.pool, s.lib.pool)
		}
	}
	decode := func(from, n int) error {
		s.batch.Clear()
		for i, t := range tokens[from : from+n] {
			if err := s.batch.Add(t, llama.Pos(from+i), []llama.SeqId{0}, i == n-1); err != nil {
				return err
			}
		}
		return s.run()
	}
	if err := decode(0, prefix); err != nil {
		return err
	}
	if off != on {
		s.ctx = off
		if err := decode(0, prefix); err != nil {
			return err
		}
	}
	block := func(probed bool) (uint64, error) {
		s.hook.Off()
		s.ctx, s.mem = off, offMem
		if probed {
			s.ctx, s.mem = on, mem
			if err := s.hook.On(); err != nil {
				return 0, run.Errorf(run.Capability, "graph hook: %w", err)
			}
		}
		begin := now()
		for i := range blockTokens {
			if err := decode(prefix+i, 1); err != nil {
				return 0, err
			}
			// What a generation does with every token: look at the logits.
			if _, err := llama.GetLogitsIth(s.ctx, -1, 1); err != nil {
				return 0, err
			}
		}
		ns := now() - begin
		_, err := llama.MemorySeqRm(s.mem, 0, llama.Pos(prefix), -1)
		return ns, err
	}
	for _, probed := range []bool{true, false} { // warm up both ways, unmeasured
		if _, err := block(probed); err != nil {
			return err
		}
	}
	for pair := range s.job.Pairs {
		order := [2]bool{pair%2 == 0, pair%2 != 0}
		for _, probed := range order {
			if s.stopped.Load() {
				return nil
			}
			before := s.hook.Cost()
			ns, err := block(probed)
			if err != nil {
				return err
			}
			after := s.hook.Cost()
			t := trace.Trial{Pair: uint32(pair), On: probed, Tokens: blockTokens, NS: ns, Evals: after.Evals - before.Evals, Hook: after.NS - before.NS}
			if err := s.out.json(trace.KindTrial, t); err != nil {
				return err
			}
		}
	}
	if err := s.hook.Err(); err != nil {
		return hookError(err)
	}
	s.kv[0] = nil
	return nil
}

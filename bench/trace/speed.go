package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/internal/stats"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// probe is a way to observe, and what it is held to.
type probe struct {
	id, what  string
	threads   int
	times, cb bool
	kept      float64 // percent
	narrow    float64 // half width in percent at which enough pairs were taken
	longest   time.Duration
}

func probes(b *bed) []probe {
	var out []probe
	for _, n := range []int{1, 2} {
		for _, p := range []probe{
			{id: "slot", what: "through the jump slot", kept: 99, narrow: 0.6, longest: pick(b, time.Second, 50*time.Second)},
			{id: "layer_times", what: "slot, and layer times from the callback", times: true, kept: 91, narrow: 1.5, longest: pick(b, 0, 15*time.Second)},
			{id: "callback", what: "through the callback alone", cb: true, kept: 91, narrow: 1.5, longest: pick(b, 0, 15*time.Second)},
		} {
			p.threads = n
			p.id = fmt.Sprintf("speed_%s_t%d", p.id, n)
			p.what = fmt.Sprintf("decode speed kept, %s, %d engine thread(s)", p.what, n)
			out = append(out, p)
		}
	}
	return out
}

const howSpeed = "SmolLM2-135M-Instruct Q4_1 decodes the same 16 tokens again and again, the probe on in one block and off in the other of a pair, in changing order; " +
	"the ratio of a pair is time off over time on. The middle is the Hodges-Lehmann estimate, the interval Wilcoxon's. Pairs are taken until the interval is narrow enough, or time is up"

func (b *bed) speed() error {
	for _, p := range probes(b) {
		c, err := b.calibrate(p)
		if err != nil {
			return err
		}
		f := figure{ID: p.id, What: p.what, Unit: "%", Goal: atLeast(p.kept), N: len(c.ratios), Of: "pairs of blocks", How: howSpeed + " (" + c.engine.Via + ")."}
		iv, ok := stats.PairedRatio(c.ratios)
		if !ok {
			return run.Errorf(run.Partial, "%s: %d pairs are too few for an interval", p.id, len(c.ratios))
		}
		f.Value, f.Low, f.High = 100*iv.Mean, run.Known(100*iv.Low), run.Known(100*iv.High)
		b.add(f)
		if c.evals > 0 && !p.times {
			each := float64(c.hook) / float64(c.evals) / 1e3
			b.add(figure{ID: p.id + "_hook", What: fmt.Sprintf("the hook's own code, %d engine thread(s)", p.threads), Unit: "us a graph", Value: each, N: int(c.evals), Of: "graphs",
				How: fmt.Sprintf("Clock around the hook less the engine's part, in the blocks above: %.3f %% of the time of a token. One graph in 64 is looked at whole.",
					100*float64(c.hook)/float64(c.on))})
		}
	}
	return nil
}

// calibration collects the blocks of an engine child.
type calibration struct {
	enough func() bool
	done   context.CancelFunc
	engine trace.Engine
	open   map[uint32]trace.Trial
	ratios []float64
	evals  uint64
	hook   uint64 // ns
	on     uint64 // ns
}

// Append implements llamacpp.Records.
func (c *calibration) Append(kind uint8, payload []byte) error {
	switch kind {
	case trace.KindEngine:
		return json.Unmarshal(payload, &c.engine)
	case trace.KindTrial:
		var t trace.Trial
		if err := json.Unmarshal(payload, &t); err != nil {
			return err
		}
		c.trial(t)
	}
	return nil
}

func (c *calibration) trial(t trace.Trial) {
	c.evals, c.hook = c.evals+t.Evals, c.hook+t.Hook
	if t.On {
		c.on += t.NS
	}
	other, ok := c.open[t.Pair]
	if !ok {
		c.open[t.Pair] = t
		return
	}
	delete(c.open, t.Pair)
	on, off := t, other
	if !on.On {
		on, off = off, on
	}
	c.ratios = append(c.ratios, float64(off.NS)/float64(on.NS))
	if c.enough() {
		c.done()
	}
}

// Flush implements llamacpp.Records.
func (c *calibration) Flush() error { return nil }

// minPairs are taken whatever the interval: a narrow one by luck is not narrow.
const minPairs = 30

// calibrate runs an engine child that does nothing but pairs of blocks. When to stop
// depends on the width of the interval alone, not on where it lies.
func (b *bed) calibrate(p probe) (*calibration, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	log, err := os.Create(filepath.Join(b.dir, p.id+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var begun time.Time
	c := &calibration{done: cancel, open: map[uint32]trace.Trial{}}
	c.enough = func() bool {
		n := len(c.ratios)
		if n == 1 {
			begun = time.Now()
		}
		if n < stats.MinSamples {
			return false
		}
		if time.Since(begun) > p.longest {
			return true
		}
		iv, ok := stats.PairedRatio(c.ratios)
		return ok && n >= minPairs && 50*(iv.High-iv.Low) < p.narrow
	}
	_, err = llamacpp.Run(ctx, &llamacpp.Job{
		Model: b.model, LibDir: b.lib, Context: 256, Threads: p.threads, Observe: true, NodeTimes: p.times, Callback: p.cb, Pairs: 10_000,
		Prompts: []llamacpp.Prompt{{Text: "One.", Output: 1}},
	}, c, log)
	if err != nil && !(run.ClassOf(err) == run.Interrupted && b.ctx.Err() == nil) {
		return nil, err
	}
	return c, nil
}

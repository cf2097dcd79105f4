package tensorgraph_test

import (
	"slices"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/trace"
)

// plain is a row without what differs from run to run: times, addresses.
func plain(r row) row {
	r.time, r.addr = 0, 0
	return r
}

// checkSame holds the accesses of two runs against each other, row by row.
func checkSame(t *testing.T, a, b *view) {
	t.Helper()
	if len(a.rows) != len(b.rows) || len(a.rows) == 0 || len(a.load) != len(b.load) {
		t.Fatalf("%d and %d rows, %d and %d of the load", len(a.rows), len(b.rows), len(a.load), len(b.load))
	}
	for i := range a.rows {
		if x, y := plain(a.rows[i]), plain(b.rows[i]); x != y {
			t.Fatalf("row %d is\n%+v, and then\n%+v", i, x, y)
		}
	}
	for i := range a.load {
		if x, y := plain(a.load[i]), plain(b.load[i]); x != y {
			t.Fatalf("row %d of the load is\n%+v, and then\n%+v", i, x, y)
		}
	}
}

func outputs(t *testing.T, log string) (out []trace.Output) {
	t.Helper()
	records(t, log, func(kind uint8, p []byte) {
		if kind == trace.KindOutput {
			var o trace.Output
			unmarshal(t, p, &o)
			o.Start, o.FirstToken, o.End = 0, 0, 0
			out = append(out, o)
		}
	})
	return out
}

// TestObservationChangesNothing has the real model speak unobserved, and
// observed in every way, drawing lots by the same seed.
func TestObservationChangesNothing(t *testing.T) {
	f := smollm2(t)
	for _, temperature := range []float64{0, 0.9} {
		job := llamacpp.Job{Model: f.Path, Context: 256, Chat: true, Temperature: temperature, Prompts: prompts(
			llamacpp.Prompt{Text: "Name three colours of the rainbow.", Output: 12}, llamacpp.Prompt{Text: "And one more?", Output: 8, Keep: true})}
		log, _ := record(t, job)
		want := outputs(t, log)
		if len(want) != 2 || want[0].Text == "" || want[0].OutputTokens != 12 || want[1].ReusedTokens == 0 {
			t.Fatalf("%+v", want)
		}
		records(t, log, func(kind uint8, _ []byte) {
			if kind == trace.KindTemplate || kind == trace.KindEval {
				t.Fatal("unobserved, and yet a graph was recorded")
			}
		})
		job.Observe = true
		ways := []func(*llamacpp.Job){func(*llamacpp.Job) {}}
		if temperature > 0 {
			ways = append(ways, func(j *llamacpp.Job) { j.NodeTimes = true }, func(j *llamacpp.Job) { j.Callback = true })
		}
		for _, with := range ways {
			j := job
			with(&j)
			log, _ := record(t, j)
			if got := outputs(t, log); !slices.Equal(got, want) {
				t.Errorf("observed (times %v, callback %v) it says\n%+v, else\n%+v", j.NodeTimes, j.Callback, got, want)
			}
		}
	}
}

var dense = func(s *gguf.Spec) {}
var experts = func(s *gguf.Spec) { s.Experts, s.ExpertsUsed = 6, 2 }

// modeRuns are the jobs that all ways of observing must see alike.
var modeRuns = map[string]struct {
	model func(*gguf.Spec)
	job   llamacpp.Job
}{
	"dense":           {dense, llamacpp.Job{Context: 512, Temperature: 0.8, MicroBatch: 64, Prompts: conversations()}},
	"dense, no flash": {dense, llamacpp.Job{Context: 256, Sequences: 2, FlashAttn: "off", Prompts: conversations()}},
	"experts":         {experts, llamacpp.Job{Context: 256, Experts: true, Prompts: conversations()}},
	"three sequences": {dense, llamacpp.Job{Context: 256, Sequences: 3, Prompts: cellRuns["three sequences"].job.Prompts}},
	"window":          {swa, llamacpp.Job{Context: 512, MicroBatch: 64, Prompts: conversations()}},
}

// TestRunsAndModesAgree repeats each job, and observes it in every way: the
// accesses are the same to the row.
func TestRunsAndModesAgree(t *testing.T) {
	for name, c := range modeRuns {
		t.Run(name, func(t *testing.T) {
			f := synth(t, c.model)
			first := watch(t, f, c.job)
			if via := first.res.Engine.Via; via != map[bool]string{false: "slot", true: "slot+callback"}[c.job.Experts] {
				t.Errorf("observed via %s", via)
			}
			checkSame(t, first, watch(t, f, c.job))

			timed := c.job
			timed.NodeTimes = true
			v := watch(t, f, timed)
			checkSame(t, first, v)
			checkTimes(t, v, f.Shape.Layers)
			checkPlaces(t, v, f)

			callback := c.job
			callback.Callback = true
			v = watch(t, f, callback)
			if v.res.Engine.Via != "callback" {
				t.Errorf("observed via %s", v.res.Engine.Via)
			}
			checkSame(t, first, v)
			checkPlaces(t, v, f)

			callback.NodeTimes = true
			v = watch(t, f, callback)
			checkSame(t, first, v)
			checkTimes(t, v, f.Shape.Layers)
		})
	}
}

// checkTimes holds the times of layers against the evaluation, and those of rows
// against both.
func checkTimes(t *testing.T, v *view, layers int) {
	t.Helper()
	var evals []*ggml.Eval
	records(t, v.log, func(kind uint8, p []byte) {
		if kind != trace.KindEval {
			return
		}
		e, err := ggml.DecodeEval(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Times) != layers && len(e.Times) != layers-1 { // the last layer of a micro batch without a result is empty
			t.Fatalf("%d times of %d layers", len(e.Times), layers)
		}
		node, at := int64(-1), e.Start
		for _, x := range e.Times {
			if int64(x.Node) <= node || x.At < at || x.At > e.End {
				t.Fatalf("node %d was done at %d, node %d before at %d; evaluated from %d to %d", x.Node, x.At, node, at, e.Start, e.End)
			}
			node, at = int64(x.Node), x.At
		}
		evals = append(evals, e)
	})
	if len(evals) != len(v.steps) || len(evals) == 0 {
		t.Fatalf("%d evaluations and %d steps", len(evals), len(v.steps))
	}
	last, step := uint64(0), uint32(0)
	for i := range v.rows {
		r := &v.rows[i]
		e := evals[r.step-1]
		if r.step != step {
			step, last = r.step, e.Start
		}
		if r.time < last || r.time > e.End {
			t.Fatalf("row %d lies at %d, the one before at %d; evaluated from %d to %d", i, r.time, last, e.Start, e.End)
		}
		last = r.time
		if r.layer < 0 || int(r.layer) >= len(e.Times) {
			continue
		}
		lo, hi := e.Start, e.Times[r.layer].At
		if r.layer > 0 {
			lo = e.Times[r.layer-1].At
		}
		if r.time < lo || r.time > hi {
			t.Fatalf("row %d of %s by %s in layer %d lies at %d; the layer took from %d to %d", i, r.name, r.op, r.layer, r.time, lo, hi)
		}
	}
}

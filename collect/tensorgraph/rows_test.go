package tensorgraph_test

import (
	"os"
	"testing"

	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/observe"
)

// TestRowsSayWhen checks phase, step, token and context of every row against what
// the requests were: nothing is left to be aligned by hand.
func TestRowsSayWhen(t *testing.T) {
	const first, second, output = 21, 9, 6
	v := watch(t, synth(t, nil), llamacpp.Job{Context: 256, MicroBatch: 8, Prompts: []llamacpp.Prompt{{Tokens: first, Output: output}, {Tokens: second, Output: output}}})
	if len(v.res.Outputs) != 2 || v.res.Outputs[0].PromptTokens != first || v.res.Outputs[0].OutputTokens != output || v.res.Outputs[1].PromptTokens != second {
		t.Fatalf("%+v", v.res.Outputs)
	}
	type when struct {
		phase, request string
		token, context uint32
	}
	var want []when
	for i, n := range []uint32{first, second} {
		request := string(rune('0' + i))
		for at := uint32(0); at < n; at += 8 {
			want = append(want, when{observe.PhasePrefill, request, 0, at})
		}
		for token := uint32(1); token < output; token++ {
			want = append(want, when{observe.PhaseDecode, request, token, n + token - 1})
		}
	}
	last := uint64(0)
	for i := range v.rows {
		r := &v.rows[i]
		if int(r.step) > len(want) {
			t.Fatalf("step %d of %d", r.step, len(want))
		}
		if got := (when{r.phase, r.request, r.token, r.context}); got != want[r.step-1] {
			t.Fatalf("step %d: %+v, want %+v", r.step, got, want[r.step-1])
		}
		if r.time < last {
			t.Fatalf("step %d: time goes back", r.step)
		}
		last = r.time
	}
	if len(v.steps) != len(want) {
		t.Errorf("%d evaluations, want %d", len(v.steps), len(want))
	}
	for _, r := range v.load {
		if r.phase != observe.PhaseWeightLoad || r.request != "" {
			t.Errorf("%+v", r)
		}
	}
	if e := v.res.Engine; e.PID == 0 || int(e.PID) == os.Getpid() || e.Thread == 0 {
		t.Errorf("the engine ran in process %d, thread %d; this is %d", e.PID, e.Thread, os.Getpid())
	}
}

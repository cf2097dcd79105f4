package experiment

import (
	"fmt"
	"math"
	"strings"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
)

// size and count print numbers as the page does, so that both say the same.
func size(v float64) string { return report.Format(v, "B") }

func many(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return report.Format(int64(n), "") + " " + what
}

// summary is what a newcomer reads first.
func (f *finishing) summary() []string {
	var s []string
	say := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	m, r := f.model, f.result
	if r.Evals == 0 {
		say("No graph was evaluated in this run of %s: there is nothing to count, and every figure is empty.", f.meta.Model.ID)
		return append(s, f.validitySentence())
	}
	say("%s (%s, %s, %s of weights) answered %s with %s, on %s.", f.meta.Model.ID, m.Architecture, many(m.Layers, "layer"),
		size(float64(m.WeightBytes)), many(len(r.Outputs), "prompt"), many(f.tokens(), "token"), many(r.Engine.Threads, "engine thread"))
	if weights, ok := f.lookup("traffic_by_region", observe.ClassWeight, "decode_bytes_read_per_token"); ok {
		say("Each generated token read %s of weights, %s%s.", size(weights), times(weights/float64(m.WeightBytes)), f.predicted(weights))
	}
	read, ok1 := f.lookup("traffic_by_region", observe.ClassKVCache, "decode_bytes_read_per_token")
	written, ok2 := f.lookup("traffic_by_region", observe.ClassKVCache, "decode_bytes_written_per_token")
	if ok1 && ok2 {
		say("It added %s to the KV cache and read %s of it on average; the cache was %s at its fullest.", size(written), size(read), size(float64(f.peakKV())))
	}
	if pad, ok := f.lookup("traffic_by_region", observe.ClassKVCache, "padding_bytes_read"); ok {
		if used, _ := f.lookup("traffic_by_region", observe.ClassKVCache, "bytes_read"); pad > 0 {
			say("%.1f %% of the KV bytes that operations named were padding, which holds nothing; it is not counted as read.", 100*pad/(pad+used))
		}
	}
	if n := f.reused(); n > 0 {
		say("Follow-up prompts found %s of theirs in the KV cache and did not compute them again.", many(n, "token"))
	}
	if act, ok := f.lookup("traffic_by_region", observe.ClassActivation, "decode_bytes_read_per_token"); ok {
		wrote, _ := f.lookup("traffic_by_region", observe.ClassActivation, "decode_bytes_written_per_token")
		say("Activations, the values between the layers, were written for %s and read for %s per token.", size(wrote), size(act))
	}
	var lives []string
	for _, c := range [][2]string{{observe.ClassActivation, "activations"}, {observe.ClassKVCache, "KV cache"}, {observe.ClassWeight, "weights"}} {
		if v, ok := f.lookup("lifetime_by_region", c[0], "p50_s"); ok {
			lives = append(lives, c[1]+" "+report.Format(v, "s"))
		}
	}
	if len(lives) > 0 {
		say("Of the bytes that were written and read again, half were needed for at least: %s (from write to last read).", strings.Join(lives, ", "))
	}
	s = append(s, f.effectSentence(), f.validitySentence())
	if x := m.slice(); x != "" {
		s = append(s, strings.ToUpper(x[:1])+x[1:]+".")
	}
	return s
}

// times says how often the model was read.
func times(x float64) string {
	if math.Abs(x-1) < 5e-4 {
		return "the whole model once"
	}
	return report.Format(x, "") + " times the size of the model"
}

// predicted says how the weights read compare with what the model's tensor table
// lets expect.
func (f *finishing) predicted(read float64) string {
	switch want := float64(f.model.DecodeBytes); {
	case want == 0:
		return ""
	case want == read:
		return fmt.Sprintf(": to the byte what its tensor table predicts (%s B)", report.Format(f.model.DecodeBytes, ""))
	default:
		return fmt.Sprintf("; its tensor table predicts %s", size(want))
	}
}

func (f *finishing) tokens() int {
	n := 0
	for _, o := range f.result.Outputs {
		n += o.OutputTokens
	}
	return n
}

func (f *finishing) reused() int {
	n := 0
	for _, o := range f.result.Outputs {
		n += o.ReusedTokens
	}
	return n
}

// resolved is the width up to which an interval around 1 says that there is hardly
// a cost.
const resolved = 0.06

func (f *finishing) effectSentence() string {
	e, ok := f.meta.Observer.(Effect)
	if !ok || e.SpeedKept == nil {
		if e.Pairs > 0 {
			return "What observing cost is not known: " + e.Need + "."
		}
		return "What observing cost was not measured in this run."
	}
	k := e.SpeedKept
	s := fmt.Sprintf("While observed, decode kept %.1f %% of its speed (95 %% interval %.1f to %.1f %%, %d pairs of %d tokens)", 100*k.Mean, 100*k.Low, 100*k.High, e.Pairs, e.Tokens)
	switch {
	case k.Low > 1 || k.High < 1:
	case k.High-k.Low <= resolved:
		s += ": no cost that these pairs could resolve"
	default:
		s += ": too wide to tell a cost from none; more pairs on a quiet machine narrow it"
	}
	return s + "."
}

func (f *finishing) validitySentence() string {
	noise := ""
	if c := f.meta.Validity.RunValidity; c != "" && c != run.Clean {
		noise = fmt.Sprintf(" Its noise class, by mrm-trace's rules, is %s: %s. Bytes do not depend on it, times do.", c, strings.Join(f.meta.Validity.FailureReasons, "; "))
	}
	if e := f.result.End; e != nil && run.Class(e.Class) == run.Interrupted {
		return fmt.Sprintf("The run was cut short by the user: figures are right for the %s that ran.", many(f.result.Evals, "graph evaluation")) + noise
	}
	if f.notes.Valid() {
		return fmt.Sprintf("The run is valid: all %s were seen whole, none was lost.", many(f.result.Evals, "graph evaluation")) + noise
	}
	return "The run is not valid: figures are wrong or incomplete, and the notes say why." + noise
}

package tensorgraph_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/trace"
)

var expertJob = llamacpp.Job{Context: 256, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 10}, llamacpp.Prompt{Tokens: 1, Output: 4})}

// chosen are the experts that the routers chose, by evaluation and layer, read
// from the log itself.
func chosen(t *testing.T, log string, layers int) (byEval [][][]int64) {
	t.Helper()
	templates := map[uint32]*ggml.Template{}
	records(t, log, func(kind uint8, p []byte) {
		switch kind {
		case trace.KindTemplate:
			x, err := ggml.DecodeTemplate(p)
			if err != nil {
				t.Fatal(err)
			}
			templates[x.ID] = x
		case trace.KindEval:
			e, err := ggml.DecodeEval(p)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([][]int64, layers)
			x := templates[e.Template]
			for i, v := range e.Chosen {
				name := x.Tensors[x.Chosen[i]].Name
				if rest, ok := strings.CutPrefix(name, "ffn_moe_topk-"); ok {
					l, err := strconv.Atoi(rest)
					if err != nil {
						t.Fatal(err)
					}
					ids[l] = v
				}
			}
			byEval = append(byEval, ids)
		}
	})
	return byEval
}

// TestExpertsAreExact reads which experts were chosen and holds the experts that
// the trace says were read against it.
func TestExpertsAreExact(t *testing.T) {
	for _, arch := range []string{"llama", "qwen3moe", "gpt-oss"} {
		t.Run(arch, func(t *testing.T) {
			f := synth(t, func(s *gguf.Spec) { s.Arch, s.Experts, s.ExpertsUsed, s.SlidingWindow = arch, 8, 3, 0 })
			job := expertJob
			job.Experts = true
			v := watch(t, f, job)
			checkWeights(t, v, f)
			read := map[string]map[int64]int{} // by step and tensor, expert
			for i := range v.rows {
				r := &v.rows[i]
				if !strings.HasSuffix(r.name, "_exps.weight") {
					continue
				}
				x := f.Tensor(r.name)
				one := uint64(x.Bytes / x.Shape[2])
				if r.off%one != 0 || r.size%one != 0 || r.count != 1 || r.op != "mul_mat_id" {
					t.Fatalf("no whole experts of %d bytes: %+v", one, *r)
				}
				key := strconv.Itoa(int(r.step)) + " " + r.name
				if read[key] == nil {
					read[key] = map[int64]int{}
				}
				for k := range r.size / one {
					read[key][int64(r.off/one+k)]++
				}
			}
			ids := chosen(t, v.log, f.Shape.Layers)
			if len(ids) != len(v.steps) {
				t.Fatalf("%d evaluations in the log, %d in the trace", len(ids), len(v.steps))
			}
			routes := map[string]bool{}
			for step, layers := range ids {
				for l, c := range layers {
					if len(c)%3 != 0 || len(c) == 0 || !v.steps[step].prefill && len(c) != 3 {
						t.Fatalf("step %d, layer %d: %d experts chosen", step, l, len(c))
					}
					want := slices.Compact(slices.Sorted(slices.Values(c)))
					for _, side := range []string{"gate", "up", "down"} {
						got := read[strconv.Itoa(step+1)+" blk."+strconv.Itoa(l)+".ffn_"+side+"_exps.weight"]
						var have []int64
						for e, n := range got {
							if n != 1 {
								t.Errorf("step %d: expert %d of layer %d is read %d times", step, e, l, n)
							}
							have = append(have, e)
						}
						slices.Sort(have)
						if !slices.Equal(have, want) {
							t.Fatalf("step %d, layer %d, %s: experts %v are read, %v were chosen", step, l, side, have, want)
						}
					}
					if !v.steps[step].prefill && len(want) != 3 {
						t.Errorf("step %d, layer %d: %v are not three experts", step, l, c)
					}
					routes[strconv.Itoa(l)+":"+strings.Join(strings.Fields(strings.Trim(strings.Join(format(want), " "), " ")), ",")] = true
				}
			}
			if len(routes) <= f.Shape.Layers {
				t.Errorf("the routers always choose the same: %v", routes)
			}
		})
	}
}

func format(v []int64) (s []string) {
	for _, x := range v {
		s = append(s, strconv.FormatInt(x, 10))
	}
	return s
}

// TestExpertsUnread leaves the choices alone: all experts count as read, and
// the result says how often.
func TestExpertsUnread(t *testing.T) {
	f := synth(t, func(s *gguf.Spec) { s.Experts, s.ExpertsUsed = 8, 3 })
	v := watch(t, f, expertJob)
	if v.res.Engine.Via != "slot" {
		t.Errorf("observed via %s", v.res.Engine.Via)
	}
	// Three stacks of matrices, and the weights that the router gave.
	if want := uint64(4 * f.Shape.Layers * len(v.steps)); v.res.UpperBound != want {
		t.Errorf("%d accesses are an upper bound, want %d", v.res.UpperBound, want)
	}
	for i, s := range v.decodes() {
		for k := range f.Tensors {
			if x := &f.Tensors[k]; strings.HasSuffix(x.Name, "_exps.weight") && s.objects[x.Name].load != uint64(x.Bytes) {
				t.Errorf("decode step %d reads %d of %d bytes of %s", i, s.objects[x.Name].load, x.Bytes, x.Name)
			}
		}
	}
}

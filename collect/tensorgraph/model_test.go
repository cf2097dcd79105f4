package tensorgraph_test

import (
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/observe"
)

// maxTokenBytes is what a decode token may take on disk.
const maxTokenBytes = 512

// TestSmolLM2IsExact has the real model generate more than 300 tokens.
func TestSmolLM2IsExact(t *testing.T) {
	f := smollm2(t)
	c := kvCase{job: llamacpp.Job{Context: 512, Prompts: prompts(llamacpp.Prompt{Text: "Once upon a time there was a lighthouse keeper who", Output: 302})}, cells: full(512)}
	job := c.job
	job.Model, job.Observe = f.Path, true
	log, _ := record(t, job)
	v := replay(t, log, f, false)
	c.job.Prompts[0].Tokens = v.res.Outputs[0].PromptTokens
	checkWeights(t, v, f)
	checkPrefill(t, v, f)
	checkGrowth(t, v, f, &c)
	// What the sheet of the model says, added up by hand: matrices, norms, the output
	// matrix, which is the embedding, and one row of it.
	const weights, cell = 66355200 + 140544 + 30081024 + 612, 2 * 30 * 3 * 64 * 2
	for i, s := range v.decodes() {
		if w, kv := s.class(v, observe.ClassWeight), s.class(v, observe.ClassKVCache); w.load != weights || kv.store != cell {
			t.Fatalf("decode step %d reads %d bytes of weights and writes %d of keys and values, want %d and %d", i, w.load, kv.store, weights, cell)
		}
	}
	if n := v.res.Decoded; n != 301 || v.res.DecodeLogBytes > maxTokenBytes*int64(n) || v.res.DecodeLogBytes <= 0 {
		t.Errorf("%d decode tokens take %d bytes on disk, %d each", n, v.res.DecodeLogBytes, v.res.DecodeLogBytes/int64(n))
	}
	t.Logf("%d bytes a decode token on disk", v.res.DecodeLogBytes/int64(v.res.Decoded))
	one := watch(t, f, llamacpp.Job{Context: 256, Prompts: prompts(llamacpp.Prompt{Text: "Hello", Output: 4})})
	checkPlaces(t, one, f)
	checkLoad(t, one, f)
}

// checkLoad has every tensor of the model stored once, whole, as the weights are
// loaded.
func checkLoad(t *testing.T, v *view, f *gguf.File) {
	t.Helper()
	stored := map[string]uint64{}
	for _, r := range v.load {
		if !r.store || r.class != observe.ClassWeight || r.phase != observe.PhaseWeightLoad || r.off != 0 || r.addr != v.objects[r.object-1].Base || stored[r.name] != 0 {
			t.Errorf("%+v", r)
		}
		stored[r.name] += r.size
	}
	for i := range f.Tensors {
		if x := &f.Tensors[i]; stored[x.Name] != uint64(x.Bytes) {
			t.Errorf("%d bytes of %s are loaded, want %d", stored[x.Name], x.Name, x.Bytes)
		}
	}
	if len(stored) != len(f.Tensors) {
		t.Errorf("%d weights are loaded, the model has %d", len(stored), len(f.Tensors))
	}
}

// TestTokensStaySmall bounds the log where tokens carry the most beside what a dense
// model's do: many layers, experts, transposed caches, layer times.
func TestTokensStaySmall(t *testing.T) {
	job := llamacpp.Job{Context: 512, Prompts: prompts(llamacpp.Prompt{Tokens: 30, Output: 310})}
	for name, c := range map[string]struct {
		model func(*gguf.Spec)
		with  func(*llamacpp.Job)
		limit int64
	}{
		"16 layers":           {func(s *gguf.Spec) { s.Layers = 16 }, func(*llamacpp.Job) {}, maxTokenBytes},
		"16 layers, no flash": {func(s *gguf.Spec) { s.Layers = 16 }, func(j *llamacpp.Job) { j.FlashAttn = "off" }, maxTokenBytes},
		"experts":             {func(s *gguf.Spec) { s.Layers, s.Experts, s.ExpertsUsed = 8, 8, 2 }, func(j *llamacpp.Job) { j.Experts = true }, maxTokenBytes},
		"layer times":         {func(s *gguf.Spec) { s.Layers = 16 }, func(j *llamacpp.Job) { j.NodeTimes = true }, maxTokenBytes},
		"two sequences":       {nil, func(j *llamacpp.Job) { j.Sequences, j.Prompts = 2, append(j.Prompts, j.Prompts...) }, maxTokenBytes},
	} {
		t.Run(name, func(t *testing.T) {
			f, j := synth(t, c.model), job
			c.with(&j)
			j.Model, j.Observe = f.Path, true
			log, _ := record(t, j)
			v := replay(t, log, f, false)
			n := int64(v.res.Decoded)
			if n < 309 || v.res.DecodeLogBytes <= 0 || v.res.DecodeLogBytes > c.limit*n {
				t.Errorf("%d decode steps take %d bytes on disk, %d each; at most %d", n, v.res.DecodeLogBytes, v.res.DecodeLogBytes/max(n, 1), c.limit)
			}
			t.Logf("%d bytes a decode step", v.res.DecodeLogBytes/max(n, 1))
		})
	}
}

// TestRepackedWeights follows weights that the engine copies into a buffer of
// its own, in the order its kernels like.
func TestRepackedWeights(t *testing.T) {
	for _, typ := range []string{"q4_0", "q8_0", "q4_k", "q4_k_m", "iq4_nl"} {
		t.Run(typ, func(t *testing.T) {
			f := synth(t, func(s *gguf.Spec) { s.Type, s.Width, s.HeadDim, s.FFN, s.Vocab = typ, 256, 64, 512, 320 })
			job := llamacpp.Job{Context: 256, Prompts: prompts(llamacpp.Prompt{Tokens: 9, Output: 4})}
			v := watch(t, f, job)
			repacked := checkRepack(t, v, f)
			if repacked == 0 && (typ == "q4_0" || typ == "q4_k") {
				t.Errorf("no weight of %s is repacked", typ)
			}
			job.NoRepack = true
			if n := checkRepack(t, watch(t, f, job), f); n != 0 {
				t.Errorf("%d weights are repacked, asked for none", n)
			}
			t.Logf("%d of %d weights repacked", repacked, len(f.Tensors))
		})
	}
}

// checkRepack counts the weights that lie in the engine's own buffer; they lie
// outside of the file, and every weight is as large and as often read as its
// tensor.
func checkRepack(t *testing.T, v *view, f *gguf.File) (n int) {
	t.Helper()
	checkWeights(t, v, f)
	checkPlaces(t, v, f)
	checkLoad(t, v, f)
	for _, o := range v.objects {
		if o.Class != observe.ClassWeight {
			continue
		}
		x, m := f.Tensor(o.Name), v.maps.Find(o.Base)
		if x == nil || o.Size != uint64(x.Bytes) || !strings.EqualFold(o.DType, x.Type.String()) {
			t.Fatalf("%+v is not the tensor %+v", o, x)
		}
		if m == nil {
			t.Fatalf("%s lies at %#x, in no mapping", o.Name, o.Base)
		}
		inFile := m.Path == f.Path
		if (o.Buffer == repackBuffer) == inFile {
			t.Errorf("%s of buffer %s lies in %q", o.Name, o.Buffer, m.Path)
		}
		if !inFile {
			n++
		}
	}
	return n
}

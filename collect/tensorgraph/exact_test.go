package tensorgraph_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/observe"
)

// cellBytes are the bytes of a cell of the K and of the V cache of a layer.
func cellBytes(t *testing.T, f *gguf.File, layer int, typeK, typeV string) (k, v uint64) {
	t.Helper()
	size := func(name string, width int64) uint64 {
		typ, ok := gguf.ParseType(name)
		if !ok {
			t.Fatalf("type %s", name)
		}
		return uint64(typ.RowBytes(width))
	}
	heads := int64(f.Shape.KVHeads[layer])
	return size(or(typeK, "f16"), heads*int64(f.Shape.KeyLength)), size(or(typeV, "f16"), heads*int64(f.Shape.ValueLength))
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// kvTotal is what a token adds over all layers.
func kvTotal(t *testing.T, f *gguf.File, typeK, typeV string) uint64 {
	sum := uint64(0)
	for l := range f.Shape.Layers {
		k, v := cellBytes(t, f, l, typeK, typeV)
		sum += k + v
	}
	return sum
}

// padded is how many cells llama.cpp looks at when n are in use.
func padded(n, cells int) int { return min(max(256, (n+255)/256*256), cells) }

// checkWeights holds the weight bytes of every decode step against the tensor
// table: tensor by tensor, and in total. seqs is the number of tokens a step.
func checkWeights(t *testing.T, v *view, f *gguf.File) {
	t.Helper()
	reads, total := f.DecodeBytes()
	steps := v.decodes()
	if len(steps) == 0 {
		t.Fatal("no decode step")
	}
	for i, s := range steps {
		for _, r := range reads {
			got := s.objects[r.Tensor]
			if got == nil {
				t.Fatalf("decode step %d does not touch %s", i, r.Tensor)
			}
			if got.load != uint64(r.Bytes) || got.store != 0 {
				t.Errorf("decode step %d reads %d bytes of %s and writes %d, want %d and none", i, got.load, r.Tensor, got.store, r.Bytes)
			}
		}
		if got := s.class(v, observe.ClassWeight); got.load != uint64(total) || got.store != 0 || got.padding != 0 {
			t.Errorf("decode step %d reads %d bytes of weights, want %d", i, got.load, total)
		}
		if t.Failed() {
			return
		}
	}
}

// checkPrefill holds what prefill steps read of the weights against the table:
// everything whole and once, but of the embedding the rows of the tokens, whole
// experts, and in micro batches without a result nothing that comes behind the last
// layer's attention.
func checkPrefill(t *testing.T, v *view, f *gguf.File) {
	t.Helper()
	behind := regexp.MustCompile(fmt.Sprintf(`^(output|blk\.%d\.(ffn|post))_?`, f.Shape.Layers-1))
	tied := f.Tensor("output.weight") == nil
	for i, s := range v.steps {
		if !s.prefill {
			continue
		}
		last := i+1 == len(v.steps) || !v.steps[i+1].prefill || v.steps[i+1].context <= s.context
		for k := range f.Tensors {
			x := &f.Tensors[k]
			got, want := uint64(0), uint64(x.Bytes)
			if o := s.objects[x.Name]; o != nil {
				got = o.load
			}
			whole := last || !behind.MatchString(x.Name)
			switch {
			case x.Name == "token_embd.weight":
				if tied && last {
					got -= want
				}
				if got == 0 || got%uint64(x.Row()) != 0 || got >= want {
					t.Errorf("step %d gathers %d bytes of %s with rows of %d", i, got, x.Name, x.Row())
				}
			case strings.Contains(x.Name, "_exps.") && whole:
				if one := want / uint64(x.Shape[len(x.Shape)-1]); got == 0 || got > want || got%one != 0 {
					t.Errorf("step %d reads %d of %d bytes of %s: no whole experts", i, got, want, x.Name)
				}
			case whole && got != want || !whole && got != 0:
				t.Errorf("step %d reads %d of %d bytes of %s, with result: %v", i, got, want, x.Name, last)
			}
		}
	}
}

// kvCase is a run whose KV traffic is known beforehand.
type kvCase struct {
	model func(*gguf.Spec)
	job   llamacpp.Job
	// cells are the cells of a layer's cache (one stream).
	cells func(layer int) int
}

func prompts(p ...llamacpp.Prompt) []llamacpp.Prompt { return p }

var full = func(n int) func(int) int { return func(int) int { return n } }

var kvCases = map[string]kvCase{
	"dense":                   {nil, llamacpp.Job{Context: 512, Prompts: prompts(llamacpp.Prompt{Tokens: 250, Output: 14})}, full(512)},
	"dense, no flash":         {nil, llamacpp.Job{Context: 512, FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 250, Output: 14})}, full(512)},
	"dense, flash":            {nil, llamacpp.Job{Context: 512, FlashAttn: "on", Prompts: prompts(llamacpp.Prompt{Tokens: 250, Output: 14})}, full(512)},
	"kv f32":                  {nil, llamacpp.Job{Context: 300, TypeK: "f32", TypeV: "f32", Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 6})}, full(512)},
	"kv f32, no flash":        {nil, llamacpp.Job{Context: 300, TypeK: "f32", TypeV: "f32", FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 6})}, full(512)},
	"kv bf16":                 {nil, llamacpp.Job{Context: 256, TypeK: "bf16", TypeV: "bf16", FlashAttn: "on", Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 6})}, full(256)},
	"kv q8_0":                 {nil, llamacpp.Job{Context: 512, TypeK: "q8_0", TypeV: "q8_0", FlashAttn: "on", Prompts: prompts(llamacpp.Prompt{Tokens: 250, Output: 14})}, full(512)},
	"kv q4_0":                 {nil, llamacpp.Job{Context: 256, TypeK: "q4_0", TypeV: "q4_0", FlashAttn: "on", Prompts: prompts(llamacpp.Prompt{Tokens: 30, Output: 6})}, full(256)},
	"kv k q8_0, no flash":     {nil, llamacpp.Job{Context: 256, TypeK: "q8_0", FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 30, Output: 6})}, full(256)},
	"micro batches":           {nil, llamacpp.Job{Context: 512, MicroBatch: 32, Prompts: prompts(llamacpp.Prompt{Tokens: 270, Output: 5})}, full(512)},
	"micro batches, no flash": {nil, llamacpp.Job{Context: 512, MicroBatch: 32, FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 270, Output: 5})}, full(512)},
	"not repacked":            {func(s *gguf.Spec) { s.Type = "q4_0" }, llamacpp.Job{Context: 256, NoRepack: true, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 5})}, full(256)},
	"tied":                    {func(s *gguf.Spec) { s.Type, s.Tied = "q4_1", true }, llamacpp.Job{Context: 256, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 5})}, full(256)},
	"qwen2":                   {func(s *gguf.Spec) { s.Arch = "qwen2" }, llamacpp.Job{Context: 256, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 5})}, full(256)},
	"qwen3":                   {func(s *gguf.Spec) { s.Arch = "qwen3" }, llamacpp.Job{Context: 256, FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 5})}, full(256)},
	"phi3":                    {func(s *gguf.Spec) { s.Arch = "phi3" }, llamacpp.Job{Context: 256, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 5})}, full(256)},
	"experts":                 {func(s *gguf.Spec) { s.Experts, s.ExpertsUsed = 6, 2 }, llamacpp.Job{Context: 256, Experts: true, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 8})}, full(256)},
	"qwen3moe":                {func(s *gguf.Spec) { s.Arch, s.Experts, s.ExpertsUsed = "qwen3moe", 8, 3 }, llamacpp.Job{Context: 256, Experts: true, FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 8})}, full(256)},
	"gpt-oss": {func(s *gguf.Spec) { s.Arch, s.Experts, s.ExpertsUsed, s.SlidingWindow = "gpt-oss", 8, 3, 16 }, llamacpp.Job{Context: 512, MicroBatch: 64, Experts: true, Prompts: prompts(llamacpp.Prompt{Tokens: 20, Output: 8})},
		func(l int) int { return []int{256, 512}[l%2] }},
	// Every third layer sees everything; the others' cache holds a window and a micro batch, and wraps.
	"window": {func(s *gguf.Spec) { s.Layers, s.SlidingWindow, s.SWAPattern = 6, 24, 3 },
		llamacpp.Job{Context: 1024, MicroBatch: 64, Prompts: prompts(llamacpp.Prompt{Tokens: 240, Output: 40})},
		func(l int) int { return []int{256, 256, 1024}[l%3] }},
	"window, no flash": {func(s *gguf.Spec) { s.Layers, s.SlidingWindow, s.SWAPattern = 6, 24, 3 },
		llamacpp.Job{Context: 1024, MicroBatch: 64, FlashAttn: "off", Prompts: prompts(llamacpp.Prompt{Tokens: 240, Output: 40})},
		func(l int) int { return []int{256, 256, 1024}[l%3] }},
	"window, q8_0": {func(s *gguf.Spec) { s.Layers, s.SlidingWindow, s.SWAPattern = 6, 24, 3 },
		llamacpp.Job{Context: 1024, MicroBatch: 64, FlashAttn: "on", TypeK: "q8_0", TypeV: "q8_0", Prompts: prompts(llamacpp.Prompt{Tokens: 500, Output: 20})},
		func(l int) int { return []int{256, 256, 1024}[l%3] }},
}

// TestKVIsExact follows one conversation in one sequence: every step writes
// its cells and no other byte, and reads every cell in use, and the padding
// apart.
func TestKVIsExact(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(kvCases)) {
		c := kvCases[name]
		t.Run(name, func(t *testing.T) {
			f := synth(t, c.model)
			v := watch(t, f, c.job)
			checkWeights(t, v, f)
			checkPrefill(t, v, f)
			checkGrowth(t, v, f, &c)
			checkPlaces(t, v, f)
			if v.res.UpperBound != 0 {
				t.Errorf("%d accesses are an upper bound", v.res.UpperBound)
			}
		})
	}
}

// checkGrowth holds the KV traffic of every step of a run of one prompt against what
// the shape says.
func checkGrowth(t *testing.T, v *view, f *gguf.File, c *kvCase) {
	t.Helper()
	p := c.job.Prompts[0]
	micro := c.job.MicroBatch
	if micro == 0 {
		micro = 512
	}
	held, written := 0, uint64(0)
	for i, s := range v.steps {
		tokens := 1
		if s.prefill {
			tokens = min(micro, p.Tokens-held)
		}
		if int(s.context) != held {
			t.Fatalf("step %d: context is %d tokens, want %d", i, s.context, held)
		}
		held += tokens
		for l := range f.Shape.Layers {
			k, val := cellBytes(t, f, l, c.job.TypeK, c.job.TypeV)
			used, looked := min(held, c.cells(l)), padded(held, c.cells(l))
			for _, side := range []struct {
				name string
				cell uint64
			}{{layerName("cache_k_l", l), k}, {layerName("cache_v_l", l), val}} {
				want := flow{load: uint64(used) * side.cell, store: uint64(tokens) * side.cell, padding: uint64(looked-used) * side.cell}
				got := s.objects[side.name]
				if got == nil {
					t.Fatalf("step %d does not touch %s", i, side.name)
				}
				if *got != want {
					t.Errorf("step %d: %s: %+v, want %+v", i, side.name, *got, want)
				}
			}
		}
		sum := s.class(v, observe.ClassKVCache)
		written += sum.store
		if t.Failed() {
			return
		}
	}
	if want := uint64(p.Tokens+p.Output-1) * kvTotal(t, f, c.job.TypeK, c.job.TypeV); written != want {
		t.Errorf("%d bytes of keys and values written, want %d", written, want)
	}
	if len(v.decodes()) != p.Output-1 {
		t.Errorf("%d decode steps, want %d", len(v.decodes()), p.Output-1)
	}
}

func layerName(prefix string, l int) string { return prefix + strconv.Itoa(l) }

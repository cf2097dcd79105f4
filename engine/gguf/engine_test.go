package gguf_test

import (
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
)

var load = sync.OnceValue(func() error {
	dir, _ := fetch.CachedLibs()
	if err := llama.Load(dir); err != nil {
		return err
	}
	llama.LogSet(purego.NewCallback(keepLog))
	llama.Init()
	return nil
})

// logged is what llama.cpp says; engine tests do not run in parallel.
var logged strings.Builder

func keepLog(_ int32, text *byte, _ uintptr) uintptr {
	for ; *text != 0; text = (*byte)(unsafe.Add(unsafe.Pointer(text), 1)) {
		logged.WriteByte(*text)
	}
	return 0
}

// windows returns which layers the engine said to have a sliding window.
func windows() (layers []bool) {
	for _, m := range regexp.MustCompile(`layer +(\d+) assigned to device \S+ is_swa = (\d)`).FindAllStringSubmatch(logged.String(), -1) {
		if m[1] == strconv.Itoa(len(layers)) {
			layers = append(layers, m[2] == "1")
		}
	}
	return layers
}

// engine loads the real llama.cpp into this process.
func engine(t *testing.T) {
	t.Helper()
	if _, ok := fetch.CachedLibs(); !ok {
		t.Skip("llama.cpp libraries are not in the cache: 'tierscope model fetch libs'")
	}
	if err := load(); err != nil {
		t.Fatal(err)
	}
}

// logits loads a model and returns the logits after each of a few tokens: a
// prompt in one batch, then one token after another.
func logits(t *testing.T, path string) [][]float32 {
	t.Helper()
	logged.Reset()
	m, err := llama.ModelLoadFromFile(path, llama.ModelDefaultParams())
	if err != nil || m == 0 {
		t.Fatalf("llama.cpp does not load the model: %v", err)
	}
	defer llama.ModelFree(m)
	cp := llama.ContextDefaultParams()
	cp.NCtx, cp.NBatch, cp.NThreads, cp.NThreadsBatch = 128, 64, 1, 1
	ctx, err := llama.InitFromModel(m, cp)
	if err != nil || ctx == 0 {
		t.Fatalf("llama.cpp makes no context: %v", err)
	}
	defer llama.Free(ctx)
	vocab := int(llama.VocabNTokens(llama.ModelGetVocab(m)))
	var out [][]float32
	for _, tokens := range [][]llama.Token{{1, 2, 3, 4, 5}, {17}, {200}, {3}, {17}} {
		if code, err := llama.Decode(ctx, llama.BatchGetOne(tokens)); err != nil || code != 0 {
			t.Fatalf("decode of %v: code %d, %v", tokens, code, err)
		}
		l, err := llama.GetLogitsIth(ctx, -1, vocab)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(l))
	}
	return out
}

// TestEngineLoads writes every architecture and every type, and has the real
// llama.cpp decode with it: finite logits that depend on the tokens, and the
// same again from an equal spec.
func TestEngineLoads(t *testing.T) {
	engine(t)
	base := gguf.Spec{Layers: 3, Heads: 8, KVHeads: 2, Width: 256, HeadDim: 32, FFN: 512, Vocab: 320, Context: 512, Seed: 7}
	with := func(f func(*gguf.Spec)) gguf.Spec {
		s := base
		f(&s)
		return s
	}
	cases := map[string]gguf.Spec{"small": {}, "moe": with(func(s *gguf.Spec) { s.Experts, s.ExpertsUsed, s.Type = 4, 2, "q4_0" })}
	for _, a := range gguf.Archs() {
		cases[a] = with(func(s *gguf.Spec) { s.Arch, s.Type = a, "q8_0" })
		cases[a+"-q4_k_m"] = with(func(s *gguf.Spec) { s.Arch, s.Type = a, "q4_k_m" })
	}
	for _, n := range gguf.Types() {
		cases["type-"+n] = with(func(s *gguf.Spec) { s.Type = n })
	}
	cases["swa-pattern"] = with(func(s *gguf.Spec) {
		s.Arch, s.Layers, s.SlidingWindow, s.SWAPattern, s.Type = "gemma3", 7, 8, 3, "q4_1"
	})
	cases["tied"] = with(func(s *gguf.Spec) { s.Tied, s.Type = true, "q4_1" })
	cases["odd"] = with(func(s *gguf.Spec) { s.Width, s.HeadDim, s.FFN, s.Vocab, s.Type = 144, 18, 200, 301, "q4_k" })
	for name, spec := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
			for _, p := range []string{a, b} {
				if err := gguf.Synth(p, spec); err != nil {
					t.Fatal(err)
				}
			}
			first, again := logits(t, a), logits(t, b)
			f, err := gguf.Open(a)
			if err != nil {
				t.Fatal(err)
			}
			want := f.Shape.SlidingLayers
			if want == nil {
				want = make([]bool, f.Shape.Layers)
			}
			if got := windows(); !slices.Equal(got[:min(len(got), f.Shape.Layers)], want) {
				t.Errorf("layers with a window: the engine says %v, the header %v", got, want)
			}
			for i, l := range first {
				var sum, sq float64
				for _, v := range l {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Fatalf("step %d: logit %g", i, v)
					}
					sum += float64(v)
					sq += float64(v) * float64(v)
				}
				n := float64(len(l))
				if std := math.Sqrt(sq/n - sum/n*sum/n); std < 0.05 || std > 50 {
					t.Errorf("step %d: deviation of the logits is %g", i, std)
				}
				if !slices.Equal(l, again[i]) {
					t.Errorf("step %d: an equal spec gives other logits", i)
				}
			}
			if slices.Equal(first[1], first[2]) || slices.Equal(first[1], first[4]) {
				t.Error("logits do not depend on tokens before")
			}
		})
	}
}

// TestEngineTypes holds the type table, and the scales that the writer
// chooses, against the engine's own tables and dequantisation.
func TestEngineTypes(t *testing.T) {
	engine(t)
	dir, _ := fetch.CachedLibs()
	lib, err := purego.Dlopen(filepath.Join(dir, "libggml-base.so"), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		t.Fatal(err)
	}
	var size func(int32) uint64
	var block func(int32) int64
	var name func(int32) string
	var traits func(int32) unsafe.Pointer
	purego.RegisterLibFunc(&size, lib, "ggml_type_size")
	purego.RegisterLibFunc(&block, lib, "ggml_blck_size")
	purego.RegisterLibFunc(&name, lib, "ggml_type_name")
	purego.RegisterLibFunc(&traits, lib, "ggml_get_type_traits")
	known := 0
	for n := range int32(43) {
		elements, bytes, ok := gguf.Type(n).Block()
		if size(n) == 0 {
			if ok {
				t.Errorf("type %d: the engine has removed it, the table has it", n)
			}
			continue
		}
		known++
		if !ok || uint64(bytes) != size(n) || elements != block(n) || gguf.Type(n).String() != name(n) {
			t.Errorf("type %d: table has %s, %d in %d bytes; engine %s, %d in %d", n, gguf.Type(n), elements, bytes, name(n), block(n), size(n))
		}
	}
	if known < 30 {
		t.Fatalf("engine knows only %d types", known)
	}

	const width = 4096
	for _, n := range gguf.Types() {
		path := filepath.Join(t.TempDir(), "x.gguf")
		if err := gguf.Synth(path, gguf.Spec{Layers: 1, Width: width, Heads: 32, FFN: 256, Vocab: 64, Type: n}); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		q := f.Tensor("blk.0.attn_q.weight")
		raw := readAt(t, path, q.Offset, q.Bytes/8)
		got := make([]float32, q.Elements()/8)
		// ggml_type_traits: name, block, interleave, size, is_quantized, to_float.
		if toFloat := *(*uintptr)(unsafe.Add(traits(int32(q.Type)), 40)); toFloat != 0 {
			purego.SyscallN(toFloat, uintptr(unsafe.Pointer(&raw[0])), uintptr(unsafe.Pointer(&got[0])), uintptr(len(got)))
		} else if q.Type == gguf.F32 {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&got[0])), len(raw)), raw)
		}
		var sum, sq float64
		for _, v := range got {
			sum += float64(v)
			sq += float64(v) * float64(v)
		}
		mean, std := sum/float64(len(got))*math.Sqrt(width), math.Sqrt(sq/float64(len(got))*width)
		tolerance := 0.02
		if q.Type == gguf.MXFP4 { // its scales are powers of two
			tolerance = 0.45
		}
		if math.Abs(std-1) > tolerance || math.Abs(mean) > 0.15 {
			t.Errorf("%s: mean %.4f, deviation %.4f of 1/sqrt(width), want 0 and 1", n, mean, std)
		}
	}
}

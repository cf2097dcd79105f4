package gguf_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/run"
)

// TestSynthIsPlan: what is written is what File plans, and Open reads the same.
func TestSynthIsPlan(t *testing.T) {
	for _, s := range []gguf.Spec{
		{},
		{Arch: "qwen3moe", Type: "q4_k_m", Seed: 1<<64 - 1},
		{SlidingWindow: 33, SWAPattern: 4, Layers: 9, Width: 64},
		{Preset: "llama-2-7b", FullLayers: 32, Type: "q8_0", Width: 96, Heads: 3, FFN: 100},
		{Arch: "phi3"}, {Arch: "gemma2"}, {Arch: "gpt-oss", Type: "mxfp4"},
	} {
		planned, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		path, _ := synth(t, s)
		read, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		planned.Path = path
		if d := cmp.Diff(planned, read); d != "" {
			t.Errorf("%+v: planned and read differ:\n%s", s, d)
		}
		if read.Synthetic == nil || read.Synthetic.Preset != s.Preset || read.Synthetic.FullLayers != s.FullLayers {
			t.Errorf("it stands for %+v", read.Synthetic)
		}
	}
}

func TestSynthSeed(t *testing.T) {
	_, a := synth(t, gguf.Spec{Type: "q4_k"})
	_, b := synth(t, gguf.Spec{Type: "Q4_K"})
	if !bytes.Equal(a, b) {
		t.Error("equal specs give different files")
	}
	_, c := synth(t, gguf.Spec{Type: "q4_k", Seed: 1})
	if same := equalBytes(a, c); same > len(a)/10 {
		t.Errorf("another seed gives %d of %d equal bytes", same, len(a))
	}
	// Tensors and layers differ from each other too.
	half := len(a) / 2
	if same := equalBytes(a[:half], a[half:]); same > len(a)/10 {
		t.Errorf("halves have %d of %d bytes in common", same, half)
	}
}

func equalBytes(a, b []byte) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

func TestSynthRefuses(t *testing.T) {
	for want, s := range map[string]gguf.Spec{
		`architecture "bert" cannot be synthesised; use one of gemma2,`:     {Arch: "bert"},
		`type "q9" cannot be synthesised; use one of bf16, f16`:             {Type: "q9"},
		"layers -1 is not in 1 to 512":                                      {Layers: -1},
		"layers 513 is not in 1 to 512":                                     {Layers: 513},
		"kv-heads 8 is not in 1 to 4":                                       {KVHeads: 8},
		"heads 6 are not a multiple of kv-heads 4":                          {Heads: 6, KVHeads: 4},
		"head-dim 3 is odd":                                                 {HeadDim: 3},
		"width 2097152 is not in 1 to 1048576":                              {Width: 2 << 20},
		"vocab -5 is not in 1":                                              {Vocab: -5},
		"experts 513 are not in 0 to 512":                                   {Experts: 513},
		"architecture gemma3 has no experts; use llama":                     {Arch: "gemma3", Experts: 2},
		"experts-used 9 are not in 1 to 8":                                  {Experts: 8, ExpertsUsed: 9},
		"experts-used 2 without experts":                                    {ExpertsUsed: 2},
		"architecture llama has no sliding window in llama.cpp; use gemma2": {Arch: "llama", SlidingWindow: 8},
		"sliding-window -8 is negative":                                     {SlidingWindow: -8},
		"architecture gemma2 has a fixed pattern of 2; use gemma3":          {Arch: "gemma2", SWAPattern: 3},
		"layers 3 are more than the 2 of the whole model":                   {Layers: 3, FullLayers: 2},
		"rope-base -1 is not positive":                                      {RopeBase: -1},
		"weights of more than 1125899906842624 bytes":                       {Layers: 512, Width: 1 << 20, HeadDim: 64, FFN: 1 << 22},
	} {
		path := filepath.Join(t.TempDir(), "x.gguf")
		err := gguf.Synth(path, s)
		if run.ClassOf(err) != run.Misuse || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: left %v", s, err)
		}
	}
}

func TestSynthNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.gguf")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := gguf.Synth(path, gguf.Spec{}); run.ClassOf(err) != run.Misuse || !strings.Contains(err.Error(), "--force") {
		t.Fatalf("%v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "mine" {
		t.Fatalf("the file is now %.20q", b)
	}
	if err := gguf.Write(t.Context(), path, gguf.Spec{}, gguf.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := gguf.Open(path); err != nil {
		t.Fatal(err)
	}
	if err := gguf.Write(t.Context(), dir, gguf.Spec{}, gguf.Options{Force: true}); run.ClassOf(err) != run.Misuse {
		t.Errorf("a directory: %v", err)
	}
	if err := gguf.Synth(filepath.Join(dir, "no", "x.gguf"), gguf.Spec{}); run.ClassOf(err) != run.IO {
		t.Errorf("no directory: %v", err)
	}
	only(t, dir, "x.gguf")
}

// TestSynthInterrupted stops in the middle: nothing is left, nobody is left.
func TestSynthInterrupted(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := gguf.Write(ctx, filepath.Join(dir, "x.gguf"), gguf.Spec{Width: 1024, Heads: 8, Vocab: 9000, Type: "f32"}, gguf.Options{
		Progress: func(done, total int64) {
			if calls++; done > total/4 {
				cancel()
			}
			if done > total/2 {
				t.Errorf("%d of %d bytes written after the interrupt", done, total)
			}
		},
	})
	if run.ClassOf(err) != run.Interrupted || calls == 0 {
		t.Errorf("%v after %d calls", err, calls)
	}
	only(t, dir)
}

// only checks which files a directory has.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files of %s: %s", dir, d)
	}
}

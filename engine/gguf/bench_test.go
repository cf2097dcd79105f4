package gguf_test

import (
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
)

// BenchmarkSynth writes about 280 MB of each kind of weights to the disk.
func BenchmarkSynth(b *testing.B) {
	for _, typ := range []string{"f32", "f16", "q4_0", "q4_k_m", "q8_0", "q6_k"} {
		b.Run(typ, func(b *testing.B) {
			s := gguf.Spec{Layers: 8, Width: 2048, Heads: 16, FFN: 4096, Vocab: 8192, Type: typ}
			f, err := s.File()
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(f.Size)
			for b.Loop() {
				if err := gguf.Write(b.Context(), filepath.Join(b.TempDir(), "x.gguf"), s, gguf.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpen reads the header of a model with as many tensors as a large
// published one.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.gguf")
	if err := gguf.Synth(path, gguf.Spec{Layers: 126, Width: 32, Vocab: 32}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := gguf.Open(path); err != nil {
			b.Fatal(err)
		}
	}
}

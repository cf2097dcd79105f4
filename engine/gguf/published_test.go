package gguf_test

import (
	"testing"

	parser "github.com/gpustack/gguf-parser-go"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
)

// TestPublished reads real models, and holds the tensor table against that of
// another reader.
func TestPublished(t *testing.T) {
	for name, c := range map[string]struct {
		cached                         func() (string, bool)
		tensors, layers, vocab, window int
		data, size, decode, kv         int64
	}{
		"smollm2": {fetch.CachedModel, 272, 30, 49152, 0, 1785664, 98362432, 96577380, 23040},
		// All but the 1 row of 640 q8_0 weights that is gathered is read once.
		"gemma3": {fetch.CachedGemma, 236, 18, 262144, 512, 6525120, 253113024, 253113024 - 6525120 + 680, 18432},
	} {
		t.Run(name, func(t *testing.T) {
			path, ok := c.cached()
			if !ok {
				t.Skipf("not in the cache: 'tierscope model fetch %s'", name)
			}
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			s := f.Summary(gguf.F16)
			if len(f.Tensors) != c.tensors || f.Shape.Layers != c.layers || f.Shape.Vocab != c.vocab || f.Shape.SlidingWindow != c.window ||
				f.DataOffset != c.data || f.Size != c.size || s.Decode.WeightBytes != c.decode || s.Decode.KVBytes != c.kv || f.Synthetic != nil {
				t.Errorf("%d tensors, data at %d, %d bytes, a token reads %d and adds %d; %+v",
					len(f.Tensors), f.DataOffset, f.Size, s.Decode.WeightBytes, s.Decode.KVBytes, f.Shape)
			}
			same(t, path, f)
		})
	}
	path, _ := synth(t, gguf.Spec{Experts: 4, Type: "q4_k_m"})
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	same(t, path, f)
}

func same(t *testing.T, path string, f *gguf.File) {
	t.Helper()
	other, err := parser.ParseGGUFFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(other.TensorInfos) != len(f.Tensors) || other.TensorDataStartOffset != f.DataOffset {
		t.Fatalf("%d tensors from byte %d, the other reader has %d from %d", len(f.Tensors), f.DataOffset, len(other.TensorInfos), other.TensorDataStartOffset)
	}
	for i, o := range other.TensorInfos {
		m := f.Tensors[i]
		if o.Name != m.Name || uint32(o.Type) != uint32(m.Type) || int64(o.Offset)+f.DataOffset != m.Offset ||
			int64(o.Bytes()) != m.Bytes || int64(o.Elements()) != m.Elements() {
			t.Errorf("%+v, the other reader has %+v of %d bytes", m, o, o.Bytes())
		}
	}
}

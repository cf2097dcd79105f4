package gguf_test

import (
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
)

// TestDecodeBytes holds what a decode token reads against sums written out
// from the shape, not from the tensor table.
func TestDecodeBytes(t *testing.T) {
	const (
		width, dim, heads, kv, ffn, vocab, layers = 256, 32, 8, 2, 512, 320, 3
		attn                                      = 2*width*heads*dim + 2*width*kv*dim // q and o, k and v
		q40                                       = 18.0 / 32
	)
	base := gguf.Spec{Layers: layers, Heads: heads, KVHeads: kv, Width: width, HeadDim: dim, FFN: ffn, Vocab: vocab}
	for name, c := range map[string]struct {
		set  func(*gguf.Spec)
		want float64
	}{
		"dense f16": {func(s *gguf.Spec) {},
			layers*(2*(attn+3*width*ffn)+4*2*width) + 4*width + 2*width*vocab + 2*width},
		"dense q4_0": {func(s *gguf.Spec) { s.Type = "q4_0" },
			layers*(q40*(attn+3*width*ffn)+4*2*width) + 4*width + q40*width*vocab + q40*width},
		"tied q4_0": {func(s *gguf.Spec) { s.Type, s.Tied = "q4_0", true },
			layers*(q40*(attn+3*width*ffn)+4*2*width) + 4*width + q40*width*vocab + q40*width},
		"experts": {func(s *gguf.Spec) { s.Experts, s.ExpertsUsed = 7, 3 },
			layers*(2*(attn+3*3*width*ffn)+4*7*width+4*2*width) + 4*width + 2*width*vocab + 2*width},
		"qwen2, biases": {func(s *gguf.Spec) { s.Arch = "qwen2" },
			layers*(2*(attn+3*width*ffn)+4*2*width+4*(heads+2*kv)*dim) + 4*width + 2*width*vocab + 2*width},
		"gemma3, window": {func(s *gguf.Spec) { s.SlidingWindow = 16 },
			layers*(2*(attn+3*width*ffn)+4*4*width+4*2*dim) + 4*width + 2*width*vocab + 2*width},
		"gpt-oss, biases of experts": {func(s *gguf.Spec) { s.Arch, s.Experts, s.ExpertsUsed = "gpt-oss", 8, 2 },
			layers*(2*(attn+2*3*width*ffn)+4*2*width+ // matrices, norms
				4*(heads+2*kv)*dim+4*width+4*heads+ // biases of attention, sinks
				4*8*width+4*8+ // router
				4*2*(2*ffn+width)) + // biases of the two experts
				4*width + 2*width*vocab + 2*width},
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			c.set(&s)
			f, err := s.File()
			if err != nil {
				t.Fatal(err)
			}
			reads, total := f.DecodeBytes()
			if total != int64(c.want) {
				t.Errorf("a token reads %d bytes, want %.0f", total, c.want)
			}
			var sum int64
			for _, r := range reads {
				if r.Bytes <= 0 || r.Reads < 1 {
					t.Errorf("%+v", r)
				}
				if strings.HasPrefix(r.Tensor, "blk.2.") != (r.Layer == 2) {
					t.Errorf("layer %d of %s", r.Layer, r.Tensor)
				}
				sum += r.Bytes
			}
			if len(reads) != len(f.Tensors) || sum != total {
				t.Errorf("%d reads of %d tensors sum up to %d", len(reads), len(f.Tensors), sum)
			}
			if n, want := f.Shape.KVBytes(gguf.F16), int64(2*layers*kv*dim*2); n != want {
				t.Errorf("a token adds %d bytes of key and value, want %d", n, want)
			}
			if n, want := f.Shape.KVBytes(gguf.Q8_0), int64(2*layers*kv*dim/32*34); n != want {
				t.Errorf("a token adds %d bytes in q8_0, want %d", n, want)
			}
		})
	}
}

// TestDecodeBytesOthers has tensors that Synth does not write.
func TestDecodeBytesOthers(t *testing.T) {
	b := new(raw).arch("llama").key("llama.block_count", 4).u32(2).
		tensor("token_embd.weight", 0, 0, 8, 4).
		tensor("output.weight", 0, 128, 8, 4).
		tensor("rope_freqs.weight", 0, 256, 4).
		tensor("position_embd.weight", 0, 288, 8, 16).
		tensor("blk.1.nextn.eh_proj.weight", 0, 800, 8, 8).
		tensor("blk.x.odd", 0, 1056, 8).file(1088)
	f, err := gguf.Open(save(t, b))
	if err != nil {
		t.Fatal(err)
	}
	// One row of the embedding, the output, the frequencies for query and key of
	// two layers, one row of the positions, and the tensor nobody knows.
	if _, total := f.DecodeBytes(); total != 32+128+4*16+32+32 {
		t.Errorf("%d bytes", total)
	}
}

// published are the parameter counts that the publishers give on
// huggingface.co (safetensors metadata, without a vision tower), where the
// embedding is counted once if it is tied.
var published = map[string]int64{
	"smollm2-135m": 134515008, "smollm2-360m": 361821120, "smollm2-1.7b": 1711376384, "tinyllama-1.1b": 1100048384,
	"llama-2-7b": 6738415616, "llama-2-13b": 13015864320, "llama-2-70b": 68976648192,
	"llama-3.1-8b": 8030261248, "llama-3.1-70b": 70553706496, "llama-3.1-405b": 405853388800,
	"llama-3.2-1b": 1235814400, "llama-3.2-3b": 3212749824, "mistral-7b": 7248023552,
	"mixtral-8x7b": 46702792704, "mixtral-8x22b": 140620634112,
	"qwen2.5-0.5b": 494032768, "qwen2.5-7b": 7615616512, "qwen2.5-32b": 32763876352, "qwen2.5-72b": 72706203648,
	"qwen3-0.6b": 596049920, "qwen3-8b": 8190735360, "qwen3-32b": 32762123264,
	"qwen3-30b-a3b": 30532122624, "qwen3-235b-a22b": 235093634560,
	"gemma-2-2b": 2614341888, "gemma-2-9b": 9241705984, "gemma-2-27b": 27227128320,
	"gemma-3-270m": 268098176, "gemma-3-1b": 999885952,
	"gemma-3-4b": 4300079472 - vision(2560), "gemma-3-12b": 12187325040 - vision(3840), "gemma-3-27b": 27432406640 - vision(5376),
	"phi-3-mini":                    3821079552,
	"deepseek-r1-distill-qwen-1.5b": 1777088000, "deepseek-r1-distill-qwen-7b": 7615616512, "deepseek-r1-distill-llama-8b": 8030261248,
	"gpt-oss-20b": 20914757184, "gpt-oss-120b": 116829156672,
}

// vision is the SigLIP tower of Gemma 3 and its projection to the text width.
func vision(width int64) int64 { return 416866032 + 1152*width + 1152 }

func TestPresets(t *testing.T) {
	rows, err := gguf.PresetTable("q8_0")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if want := published[r.Name]; r.Parameters != want {
			t.Errorf("%s has %d parameters, published are %d", r.Name, r.Parameters, want)
		}
		if seen[r.Name] || r.Source == "" || r.Spec.Preset != r.Name {
			t.Errorf("preset %+v", r.Preset)
		}
		seen[r.Name] = true
		if r.DecodeBytes > r.WeightBytes*21/20 || r.KVBytes <= 0 {
			t.Errorf("%s: reads %d of %d, adds %d", r.Name, r.DecodeBytes, r.WeightBytes, r.KVBytes)
		}
	}
	if len(seen) != len(published) {
		t.Errorf("%d presets and %d published counts", len(seen), len(published))
	}
}

// TestPresetSlice: a slice remembers the whole, and scaling it back gives the
// whole exactly where all layers are alike.
func TestPresetSlice(t *testing.T) {
	for _, name := range []string{"llama-3.1-405b", "qwen3-235b-a22b", "gemma-3-27b"} {
		full, err := gguf.PresetSpec(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := full.File()
		if err != nil {
			t.Fatal(err)
		}
		cut, err := gguf.PresetSpec(strings.ToUpper(name), 3)
		if err != nil {
			t.Fatal(err)
		}
		slice, err := cut.File()
		if err != nil {
			t.Fatal(err)
		}
		got, want := slice.Summary(gguf.F16), whole.Summary(gguf.F16)
		if want.Whole != nil || got.Whole == nil {
			t.Fatalf("%s: whole %v, slice %v", name, want.Whole, got.Whole)
		}
		if w := *got.Whole; w != (gguf.Whole{Layers: full.Layers, WeightBytes: want.WeightBytes, DecodeBytes: want.Decode.WeightBytes, DecodeKVBytes: want.Decode.KVBytes}) {
			t.Errorf("%s: scaled %+v, whole %d, %d, %d", name, w, want.WeightBytes, want.Decode.WeightBytes, want.Decode.KVBytes)
		}
	}
	for name, layers := range map[string]int{"nobody-7b": 1, "llama-2-7b": 33} {
		if _, err := gguf.PresetSpec(name, layers); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s with %d layers: %v", name, layers, err)
		}
	}
}

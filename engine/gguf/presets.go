package gguf

import (
	"slices"
	"strings"
)

// Preset is the shape of a published model. Weights are not its weights, and
// what is not in Spec (rope scaling tables, vision towers) is left out.
type Preset struct {
	Name   string `json:"name"`
	Source string `json:"source"` // whose config.json the figures are from
	Spec   Spec   `json:"spec"`   // Type is empty: any
}

// Presets are the shapes known by name, one family after another. Each figure
// is of the config.json of the repository named on huggingface.co:
// num_hidden_layers, num_attention_heads, num_key_value_heads, hidden_size,
// head_dim (0: hidden_size/heads), intermediate_size (of experts:
// moe_intermediate_size), vocab_size, max_position_embeddings, rope_theta,
// tie_word_embeddings. A test holds their sums against the parameter counts
// that the publishers give.
var Presets = []Preset{
	dense("smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct", "llama", 30, 9, 3, 576, 0, 1536, 49152, 8192, 1e5, tied),
	dense("smollm2-360m", "HuggingFaceTB/SmolLM2-360M-Instruct", "llama", 32, 15, 5, 960, 0, 2560, 49152, 8192, 1e5, tied),
	dense("smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B-Instruct", "llama", 24, 32, 32, 2048, 0, 8192, 49152, 8192, 130000, tied),
	dense("tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama", 22, 32, 4, 2048, 0, 5632, 32000, 2048, 1e4, untied),
	dense("llama-2-7b", "meta-llama/Llama-2-7b-hf", "llama", 32, 32, 32, 4096, 0, 11008, 32000, 4096, 1e4, untied),
	dense("llama-2-13b", "meta-llama/Llama-2-13b-hf", "llama", 40, 40, 40, 5120, 0, 13824, 32000, 4096, 1e4, untied),
	dense("llama-2-70b", "meta-llama/Llama-2-70b-hf", "llama", 80, 64, 8, 8192, 0, 28672, 32000, 4096, 1e4, untied),
	dense("llama-3.1-8b", "meta-llama/Llama-3.1-8B", "llama", 32, 32, 8, 4096, 0, 14336, 128256, 131072, 5e5, untied),
	dense("llama-3.1-70b", "meta-llama/Llama-3.1-70B", "llama", 80, 64, 8, 8192, 0, 28672, 128256, 131072, 5e5, untied),
	dense("llama-3.1-405b", "meta-llama/Llama-3.1-405B", "llama", 126, 128, 8, 16384, 0, 53248, 128256, 131072, 5e5, untied),
	dense("llama-3.2-1b", "meta-llama/Llama-3.2-1B", "llama", 16, 32, 8, 2048, 64, 8192, 128256, 131072, 5e5, tied),
	dense("llama-3.2-3b", "meta-llama/Llama-3.2-3B", "llama", 28, 24, 8, 3072, 128, 8192, 128256, 131072, 5e5, tied),
	dense("mistral-7b", "mistralai/Mistral-7B-v0.3", "llama", 32, 32, 8, 4096, 0, 14336, 32768, 32768, 1e6, untied),
	moe("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1", "llama", 32, 32, 8, 4096, 0, 14336, 32000, 32768, 1e6, 8, 2),
	moe("mixtral-8x22b", "mistralai/Mixtral-8x22B-v0.1", "llama", 56, 48, 8, 6144, 0, 16384, 32000, 65536, 1e6, 8, 2),
	dense("qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct", "qwen2", 24, 14, 2, 896, 0, 4864, 151936, 32768, 1e6, tied),
	dense("qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", "qwen2", 28, 28, 4, 3584, 0, 18944, 152064, 32768, 1e6, untied),
	dense("qwen2.5-32b", "Qwen/Qwen2.5-32B-Instruct", "qwen2", 64, 40, 8, 5120, 0, 27648, 152064, 32768, 1e6, untied),
	dense("qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct", "qwen2", 80, 64, 8, 8192, 0, 29568, 152064, 32768, 1e6, untied),
	dense("qwen3-0.6b", "Qwen/Qwen3-0.6B", "qwen3", 28, 16, 8, 1024, 128, 3072, 151936, 40960, 1e6, tied),
	dense("qwen3-8b", "Qwen/Qwen3-8B", "qwen3", 36, 32, 8, 4096, 128, 12288, 151936, 40960, 1e6, untied),
	dense("qwen3-32b", "Qwen/Qwen3-32B", "qwen3", 64, 64, 8, 5120, 128, 25600, 151936, 40960, 1e6, untied),
	moe("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", "qwen3moe", 48, 32, 4, 2048, 128, 768, 151936, 40960, 1e6, 128, 8),
	moe("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", "qwen3moe", 94, 64, 4, 4096, 128, 1536, 151936, 40960, 1e6, 128, 8),
	window("gemma-2-2b", "google/gemma-2-2b", "gemma2", 26, 8, 4, 2304, 256, 9216, 256000, 8192, 1e4, 4096),
	window("gemma-2-9b", "google/gemma-2-9b", "gemma2", 42, 16, 8, 3584, 256, 14336, 256000, 8192, 1e4, 4096),
	window("gemma-2-27b", "google/gemma-2-27b", "gemma2", 46, 32, 16, 4608, 128, 36864, 256000, 8192, 1e4, 4096),
	window("gemma-3-270m", "google/gemma-3-270m", "gemma3", 18, 4, 1, 640, 256, 2048, 262144, 32768, 1e6, 512),
	window("gemma-3-1b", "google/gemma-3-1b-pt", "gemma3", 26, 4, 1, 1152, 256, 6912, 262144, 32768, 1e6, 512),
	window("gemma-3-4b", "google/gemma-3-4b-pt", "gemma3", 34, 8, 4, 2560, 256, 10240, 262208, 131072, 1e6, 1024),
	window("gemma-3-12b", "google/gemma-3-12b-pt", "gemma3", 48, 16, 8, 3840, 256, 15360, 262208, 131072, 1e6, 1024),
	window("gemma-3-27b", "google/gemma-3-27b-pt", "gemma3", 62, 32, 16, 5376, 128, 21504, 262208, 131072, 1e6, 1024),
	dense("phi-3-mini", "microsoft/Phi-3-mini-4k-instruct", "phi3", 32, 32, 32, 3072, 0, 8192, 32064, 4096, 1e4, untied),
	dense("deepseek-r1-distill-qwen-1.5b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "qwen2", 28, 12, 2, 1536, 0, 8960, 151936, 131072, 1e4, untied),
	dense("deepseek-r1-distill-qwen-7b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2", 28, 28, 4, 3584, 0, 18944, 152064, 131072, 1e4, untied),
	dense("deepseek-r1-distill-llama-8b", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama", 32, 32, 8, 4096, 0, 14336, 128256, 131072, 5e5, untied),
	{"gpt-oss-20b", "openai/gpt-oss-20b", Spec{Arch: "gpt-oss", Layers: 24, Heads: 64, KVHeads: 8, Width: 2880, HeadDim: 64, FFN: 2880,
		Vocab: 201088, Context: 131072, RopeBase: 150000, Experts: 32, ExpertsUsed: 4, SlidingWindow: 128, Preset: "gpt-oss-20b"}},
	{"gpt-oss-120b", "openai/gpt-oss-120b", Spec{Arch: "gpt-oss", Layers: 36, Heads: 64, KVHeads: 8, Width: 2880, HeadDim: 64, FFN: 2880,
		Vocab: 201088, Context: 131072, RopeBase: 150000, Experts: 128, ExpertsUsed: 4, SlidingWindow: 128, Preset: "gpt-oss-120b"}},
}

const tied, untied = true, false

func dense(name, source, arch string, layers, heads, kv, width, dim, ffn, vocab, context int, rope float64, tied bool) Preset {
	if dim == 0 {
		dim = width / heads
	}
	return Preset{name, source, Spec{Arch: arch, Layers: layers, Heads: heads, KVHeads: kv, Width: width, HeadDim: dim,
		FFN: ffn, Vocab: vocab, Context: context, RopeBase: rope, Tied: tied, Preset: name}}
}

func moe(name, source, arch string, layers, heads, kv, width, dim, ffn, vocab, context int, rope float64, experts, used int) Preset {
	p := dense(name, source, arch, layers, heads, kv, width, dim, ffn, vocab, context, rope, untied)
	p.Spec.Experts, p.Spec.ExpertsUsed = experts, used
	return p
}

func window(name, source, arch string, layers, heads, kv, width, dim, ffn, vocab, context int, rope float64, tokens int) Preset {
	p := dense(name, source, arch, layers, heads, kv, width, dim, ffn, vocab, context, rope, tied)
	p.Spec.SlidingWindow = tokens
	return p
}

// PresetSpec returns the spec of a preset, cut to its first layers if layers
// is above 0; what it is a slice of is recorded in it. An unknown name or too
// many layers are run.Misuse.
func PresetSpec(name string, layers int) (Spec, error) {
	i := slices.IndexFunc(Presets, func(p Preset) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return Spec{}, misuse("preset %q is unknown; 'tierscope model presets' lists them", name)
	}
	s := Presets[i].Spec
	if layers > s.Layers {
		return Spec{}, misuse("preset %s has %d layers, not %d", name, s.Layers, layers)
	}
	if layers > 0 && layers < s.Layers {
		s.FullLayers, s.Layers = s.Layers, layers
	}
	return s, nil
}

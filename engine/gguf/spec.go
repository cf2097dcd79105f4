package gguf

import (
	"math"
	"slices"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// Spec is the shape of a synthetic model. Zero fields take the defaults named;
// Spec{} is a small dense llama.
type Spec struct {
	Arch          string  `json:"arch"`                     // llama (gemma3 with a window): see Archs
	Layers        int     `json:"layers"`                   // 2
	Heads         int     `json:"heads"`                    // 4
	KVHeads       int     `json:"kv_heads"`                 // Heads
	Width         int     `json:"width"`                    // 256
	HeadDim       int     `json:"head_dim"`                 // Width / Heads
	FFN           int     `json:"ffn"`                      // 3 x Width; of one expert if there are experts
	Vocab         int     `json:"vocab"`                    // 512
	Context       int     `json:"context"`                  // 2048 tokens
	Experts       int     `json:"experts,omitempty"`        // 0: dense
	ExpertsUsed   int     `json:"experts_used,omitempty"`   // 2
	SlidingWindow int     `json:"sliding_window,omitempty"` // tokens; 0: none
	SWAPattern    int     `json:"swa_pattern,omitempty"`    // every n-th layer sees everything; 0: as the architecture has it
	Tied          bool    `json:"tied,omitempty"`           // no output matrix of its own; always so in gemma
	RopeBase      float64 `json:"rope_base,omitempty"`      // 10000
	Type          string  `json:"type"`                     // of the matrices: f16; see Types
	Seed          uint64  `json:"seed"`                     // equal specs give equal bytes
	Preset        string  `json:"preset,omitempty"`         // recorded: what the shape is taken from
	FullLayers    int     `json:"full_layers,omitempty"`    // recorded: layers of the whole model, if this is a slice
}

// arch is what sets one architecture's tensors and metadata apart.
type arch struct {
	experts    int8 // -1 never, 0 if asked, 1 always
	qkNorm     bool // attn_q_norm, attn_k_norm
	qkvBias    bool // attn_q.bias, attn_k.bias, attn_v.bias
	fused      bool // attn_qkv, and ffn_up holding gate and up
	postNorm   bool // gemma: norms after attention and after the feed-forward
	tied       bool
	swa        bool // has a sliding window
	patternKey bool // reads attention.sliding_window_pattern
	oss        bool // gpt-oss: sinks, biases everywhere, a norm after attention
}

// archs are the tensors of llama.cpp's src/models/*.cpp.
var archs = map[string]arch{
	"llama":    {},
	"qwen2":    {experts: -1, qkvBias: true},
	"qwen3":    {experts: -1, qkNorm: true},
	"qwen3moe": {experts: 1, qkNorm: true},
	"phi3":     {experts: -1, fused: true},
	"gemma2":   {experts: -1, postNorm: true, tied: true, swa: true},
	"gemma3":   {experts: -1, postNorm: true, qkNorm: true, tied: true, swa: true, patternKey: true},
	"gpt-oss":  {experts: 1, oss: true, swa: true},
}

// Archs returns the architectures that Synth writes, sorted.
func Archs() []string {
	var names []string
	for n := range archs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// withDefaults fills the zero fields.
func (s Spec) withDefaults() Spec {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	if s.Arch == "" {
		if s.Arch = "llama"; s.SlidingWindow > 0 {
			s.Arch = "gemma3"
		}
	}
	a := archs[s.Arch]
	if a.experts == 1 {
		def(&s.Experts, 8)
	}
	if a.swa {
		def(&s.SlidingWindow, 512)
	}
	def(&s.Layers, 2)
	def(&s.Heads, 4)
	def(&s.KVHeads, s.Heads)
	def(&s.Width, 256)
	if s.Heads > 0 {
		def(&s.HeadDim, s.Width/s.Heads)
	}
	def(&s.FFN, 3*s.Width)
	def(&s.Vocab, 512)
	def(&s.Context, 2048)
	if s.Experts > 0 {
		def(&s.ExpertsUsed, min(2, s.Experts))
	}
	if s.RopeBase == 0 {
		s.RopeBase = 10000
	}
	if s.Type == "" {
		s.Type = "f16"
	}
	s.Tied = s.Tied || a.tied
	return s
}

// check refuses what llama.cpp would not load. s has its defaults.
func (s *Spec) check() error {
	a, ok := archs[s.Arch]
	if !ok {
		return misuse("architecture %q cannot be synthesised; use one of %s", s.Arch, strings.Join(Archs(), ", "))
	}
	if _, ok := mixes[strings.ToLower(s.Type)]; !ok {
		return misuse("type %q cannot be synthesised; use one of %s", s.Type, strings.Join(Types(), ", "))
	}
	for _, v := range []struct {
		name  string
		v, hi int
	}{
		{"layers", s.Layers, maxLayers}, {"heads", s.Heads, 4096}, {"kv-heads", s.KVHeads, s.Heads},
		{"width", s.Width, 1 << 20}, {"head-dim", s.HeadDim, 4096}, {"ffn", s.FFN, 1 << 22},
		{"vocab", s.Vocab, 1 << 24}, {"context", s.Context, 1 << 30},
	} {
		if v.v < 1 || v.v > v.hi {
			return misuse("%s %d is not in 1 to %d", v.name, v.v, v.hi)
		}
	}
	switch {
	case s.Heads%s.KVHeads != 0:
		return misuse("heads %d are not a multiple of kv-heads %d", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return misuse("head-dim %d is odd; rotary positions need pairs", s.HeadDim)
	case s.Experts < 0 || s.Experts > maxExperts:
		return misuse("experts %d are not in 0 to %d", s.Experts, maxExperts)
	case s.Experts > 0 && a.experts < 0:
		return misuse("architecture %s has no experts; use llama, qwen3moe or gpt-oss", s.Arch)
	case s.Experts > 0 && (s.ExpertsUsed < 1 || s.ExpertsUsed > s.Experts):
		return misuse("experts-used %d are not in 1 to %d", s.ExpertsUsed, s.Experts)
	case s.Experts == 0 && s.ExpertsUsed != 0:
		return misuse("experts-used %d without experts", s.ExpertsUsed)
	case s.SlidingWindow < 0:
		return misuse("sliding-window %d is negative", s.SlidingWindow)
	case s.SlidingWindow > 0 && !a.swa:
		return misuse("architecture %s has no sliding window in llama.cpp; use gemma2, gemma3 or gpt-oss", s.Arch)
	case s.SWAPattern < 0 || s.SWAPattern > maxLayers:
		return misuse("swa-pattern %d is not in 0 to %d", s.SWAPattern, maxLayers)
	case s.SWAPattern > 0 && !a.patternKey && s.SWAPattern != swaPeriod[s.Arch]:
		return misuse("architecture %s has a fixed pattern of %d; use gemma3 for swa-pattern %d", s.Arch, swaPeriod[s.Arch], s.SWAPattern)
	case s.FullLayers < 0 || s.FullLayers > maxLayers || s.FullLayers > 0 && s.FullLayers < s.Layers:
		return misuse("layers %d are more than the %d of the whole model", s.Layers, s.FullLayers)
	case math.IsNaN(s.RopeBase) || math.IsInf(s.RopeBase, 0) || s.RopeBase <= 0:
		return misuse("rope-base %g is not positive", s.RopeBase)
	}
	return nil
}

func misuse(format string, args ...any) error {
	return run.Errorf(run.Misuse, "synthetic model: "+format, args...)
}

// File returns the header that Synth would write: shape, tensor table, sizes
// and offsets, without writing anything. Path is empty.
func (s Spec) File() (*File, error) {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.plan()
}

package gguf

import "fmt"

// Limits of llama.cpp (src/llama-hparams.h).
const (
	maxLayers  = 512
	maxExperts = 512
)

// Shape are the hyperparameters of a model. What a file does not say is 0.
type Shape struct {
	Architecture  string  `json:"architecture"`
	Name          string  `json:"name,omitempty"`
	Layers        int     `json:"layers"`
	Width         int     `json:"width"` // embedding length
	FFN           []int   `json:"ffn"`   // feed-forward length of each layer
	ExpertFFN     int     `json:"expert_ffn,omitempty"`
	Heads         []int   `json:"heads"`        // attention heads of each layer
	KVHeads       []int   `json:"kv_heads"`     // of each layer
	KeyLength     int     `json:"key_length"`   // elements of one head's key
	ValueLength   int     `json:"value_length"` // elements of one head's value
	Context       int     `json:"context"`      // trained context, tokens
	Vocab         int     `json:"vocab"`
	Tied          bool    `json:"tied"` // the output matrix is the token embedding
	Experts       int     `json:"experts,omitempty"`
	ExpertsUsed   int     `json:"experts_used,omitempty"`
	SharedExperts int     `json:"shared_experts,omitempty"`
	SlidingWindow int     `json:"sliding_window,omitempty"` // tokens; 0: none, or not used by llama.cpp for this architecture
	SlidingLayers []bool  `json:"sliding_layers,omitempty"` // which layers have the window
	RopeDim       int     `json:"rope_dim,omitempty"`
	RopeBase      float64 `json:"rope_base,omitempty"`
	RopeScaling   string  `json:"rope_scaling,omitempty"` // "linear", "yarn", ...
	RopeFactor    float64 `json:"rope_factor,omitempty"`
}

// swaPeriod is the period of llama.cpp for architectures with a sliding window
// (src/models/*.cpp, hparams.set_swa_pattern): every n-th layer sees
// everything, the others the window. A file's own pattern goes first, for any
// architecture. Without either, llama.cpp ignores attention.sliding_window.
var swaPeriod = map[string]int{
	"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4, "olmo2": 4, "exaone4": 4,
}

func shapeOf(m Metadata, tensors []Tensor) (Shape, error) {
	arch := m.String("general.architecture")
	if arch == "" {
		return Shape{}, fmt.Errorf("it has no general.architecture; it is no model")
	}
	key := func(k string) string { return arch + "." + k }
	num := func(k string) int { return int(clamp(m.Int(key(k), 0), 0, 1<<40)) }
	s := Shape{
		Architecture: arch, Name: m.String("general.name"),
		Layers: num("block_count"), Width: num("embedding_length"), Context: num("context_length"),
		ExpertFFN: num("expert_feed_forward_length"),
		Experts:   num("expert_count"), ExpertsUsed: num("expert_used_count"), SharedExperts: num("expert_shared_count"),
		Vocab:    num("vocab_size"),
		RopeDim:  num("rope.dimension_count"),
		RopeBase: m.Float(key("rope.freq_base"), 0), RopeScaling: m.String(key("rope.scaling.type")),
		RopeFactor: m.Float(key("rope.scaling.factor"), 0),
	}
	if s.Layers > maxLayers {
		return s, fmt.Errorf("%q is %d, more than the %d layers of llama.cpp", key("block_count"), s.Layers, maxLayers)
	}
	s.FFN = perLayer(m[key("feed_forward_length")], s.Layers, nil)
	s.Heads = perLayer(m[key("attention.head_count")], s.Layers, nil)
	s.KVHeads = perLayer(m[key("attention.head_count_kv")], s.Layers, s.Heads)
	head := 0
	if len(s.Heads) > 0 && s.Heads[0] > 0 {
		head = s.Width / s.Heads[0]
	}
	s.KeyLength = int(clamp(m.Int(key("attention.key_length"), int64(head)), 0, 1<<16))
	s.ValueLength = int(clamp(m.Int(key("attention.value_length"), int64(head)), 0, 1<<16))
	s.Tied = true
	for i := range tensors {
		switch t := &tensors[i]; {
		case t.Name == "output.weight":
			s.Tied = false
		case t.Name == "token_embd.weight" && len(t.Shape) > 1:
			s.Vocab = int(t.Shape[1])
		}
	}
	if a, ok := m["tokenizer.ggml.tokens"].(Array); ok && s.Vocab == 0 {
		s.Vocab = int(a.Len)
	}
	s.sliding(m, num("attention.sliding_window"))
	return s, nil
}

// sliding fills the window and the layers that have it.
func (s *Shape) sliding(m Metadata, window int) {
	period, known := swaPeriod[s.Architecture]
	pattern := m[s.Architecture+".attention.sliding_window_pattern"]
	if window == 0 || !known && pattern == nil {
		return
	}
	s.SlidingWindow = window
	s.SlidingLayers = make([]bool, s.Layers)
	switch p := pattern.(type) {
	case Array:
		for i := range min(len(p.Values), s.Layers) {
			v, _ := toInt(p.Values[i])
			s.SlidingLayers[i] = v != 0
		}
		return
	case int64:
		period = int(clamp(p, 0, maxLayers))
	}
	for i := range s.SlidingLayers {
		s.SlidingLayers[i] = period == 0 || i%period < period-1
	}
}

// perLayer spreads a number over all layers, or copies an array of one number
// a layer; def when there is neither.
func perLayer(v any, layers int, def []int) []int {
	out := make([]int, layers)
	switch v := v.(type) {
	case int64:
		for i := range out {
			out[i] = int(clamp(v, 0, 1<<30))
		}
	case Array:
		for i := range min(len(v.Values), layers) {
			n, _ := toInt(v.Values[i])
			out[i] = int(clamp(n, 0, 1<<30))
		}
	default:
		copy(out, def)
	}
	return out
}

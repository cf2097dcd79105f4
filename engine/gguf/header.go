package gguf

import (
	"encoding/binary"
	"math"
	"strings"
)

const dataAlignment = 32

// maxModel bounds the bytes of a synthetic model, so that no sum overflows.
const maxModel = 1 << 50

// header encodes metadata in the order in which it is put, and remembers it.
type header struct {
	b     []byte
	pairs uint64
	meta  Metadata
}

func (h *header) text(s string) {
	h.b = binary.LittleEndian.AppendUint64(h.b, uint64(len(s)))
	h.b = append(h.b, s...)
}

func (h *header) put(key string, kind uint32, value any) {
	h.text(key)
	h.b = binary.LittleEndian.AppendUint32(h.b, kind)
	h.pairs++
	h.meta[key] = value
}

func (h *header) string(key, v string) {
	h.put(key, kindString, v)
	h.text(v)
}

func (h *header) uint32(key string, v int) {
	h.put(key, kindUint32, int64(v))
	h.b = binary.LittleEndian.AppendUint32(h.b, uint32(v))
}

func (h *header) uint64(key string, v uint64) {
	h.put(key, kindUint64, int64(v))
	if v > math.MaxInt64 {
		h.meta[key] = v
	}
	h.b = binary.LittleEndian.AppendUint64(h.b, v)
}

func (h *header) float32(key string, v float64) {
	h.put(key, kindFloat32, float64(float32(v)))
	h.b = binary.LittleEndian.AppendUint32(h.b, math.Float32bits(float32(v)))
}

func (h *header) yes(key string) {
	h.put(key, kindBool, true)
	h.b = append(h.b, 1)
}

// metadata puts what llama.cpp needs to load the model, and what it stands for.
func (h *header) metadata(s *Spec) {
	a, name := archs[s.Arch], "synthetic "+s.Arch
	if s.Preset != "" {
		name = "synthetic " + s.Preset
	}
	h.string("general.architecture", s.Arch)
	h.string("general.name", name)
	h.uint32("general.quantization_version", 2)
	h.yes("tierscope.synthetic")
	h.uint64("tierscope.seed", s.Seed)
	h.string("tierscope.type", strings.ToLower(s.Type))
	if s.Preset != "" {
		h.string("tierscope.preset", s.Preset)
	}
	if s.FullLayers > s.Layers {
		h.uint32("tierscope.full_layers", s.FullLayers)
	}
	key := func(k string) string { return s.Arch + "." + k }
	h.uint32(key("context_length"), s.Context)
	h.uint32(key("embedding_length"), s.Width)
	h.uint32(key("block_count"), s.Layers)
	h.uint32(key("feed_forward_length"), s.FFN)
	h.uint32(key("attention.head_count"), s.Heads)
	h.uint32(key("attention.head_count_kv"), s.KVHeads)
	h.uint32(key("attention.key_length"), s.HeadDim)
	h.uint32(key("attention.value_length"), s.HeadDim)
	h.float32(key("attention.layer_norm_rms_epsilon"), 1e-5)
	h.uint32(key("rope.dimension_count"), s.HeadDim)
	h.float32(key("rope.freq_base"), s.RopeBase)
	h.uint32(key("vocab_size"), s.Vocab)
	if s.Experts > 0 {
		h.uint32(key("expert_count"), s.Experts)
		h.uint32(key("expert_used_count"), s.ExpertsUsed)
		h.uint32(key("expert_feed_forward_length"), s.FFN)
	}
	if s.SlidingWindow > 0 {
		h.uint32(key("attention.sliding_window"), s.SlidingWindow)
	}
	if s.SWAPattern > 0 && a.patternKey {
		h.uint32(key("attention.sliding_window_pattern"), s.SWAPattern)
	}
	if s.Arch == "gemma2" { // of the published models
		h.float32(key("attn_logit_softcapping"), 50)
		h.float32(key("final_logit_softcapping"), 30)
	}
	h.string("tokenizer.ggml.model", "no_vocab")
}

// plan returns the header of a checked spec as Open would read it.
func (s *Spec) plan() (*File, error) {
	f, _, err := s.encode()
	return f, err
}

// encode returns the header as File and as bytes up to the data.
func (s *Spec) encode() (*File, []byte, error) {
	tensors, err := tensorsOf(s)
	if err != nil {
		return nil, nil, err
	}
	h := &header{meta: Metadata{}}
	h.metadata(s)
	le := binary.LittleEndian
	b := []byte("GGUF")
	b = le.AppendUint32(b, 3)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, h.pairs)
	h.b = append(b, h.b...)

	var offset int64
	for i := range tensors {
		t := &tensors[i]
		h.text(t.Name)
		h.b = le.AppendUint32(h.b, uint32(len(t.Shape)))
		for _, d := range t.Shape {
			h.b = le.AppendUint64(h.b, uint64(d))
		}
		h.b = le.AppendUint32(h.b, uint32(t.Type))
		h.b = le.AppendUint64(h.b, uint64(offset))
		t.Offset = offset
		if t.Bytes > maxModel || offset > maxModel-t.Bytes {
			return nil, nil, misuse("weights of more than %d bytes", int64(maxModel))
		}
		offset = align(offset+t.Bytes, dataAlignment)
	}
	for int64(len(h.b))%dataAlignment != 0 {
		h.b = append(h.b, 0)
	}
	data := int64(len(h.b))
	for i := range tensors {
		tensors[i].Offset += data
	}
	f := &File{
		Version: 3, Size: data + offset, Alignment: dataAlignment, DataOffset: data, Splits: 1,
		Tensors: tensors, Meta: h.meta, Synthetic: &Slice{Preset: s.Preset},
	}
	if s.FullLayers > s.Layers {
		f.Synthetic.FullLayers = s.FullLayers
	}
	f.Shape, err = shapeOf(h.meta, tensors)
	return f, h.b, err
}

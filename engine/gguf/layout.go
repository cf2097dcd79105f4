package gguf

import (
	"fmt"
	"slices"
	"strings"
)

// mixes are the types that the writer knows: the type of most matrices, and
// which matrices get another one.
var mixes = map[string]struct {
	base, more Type
}{
	"f32": {F32, F32}, "f16": {F16, F16}, "bf16": {BF16, BF16},
	"q4_0": {Q4_0, Q4_0}, "q4_1": {Q4_1, Q4_1}, "q5_0": {Q5_0, Q5_0}, "q5_1": {Q5_1, Q5_1}, "q8_0": {Q8_0, Q8_0},
	"q2_k": {Q2K, Q2K}, "q3_k": {Q3K, Q3K}, "q4_k": {Q4K, Q4K}, "q5_k": {Q5K, Q5K}, "q6_k": {Q6K, Q6K},
	"iq4_nl": {IQ4NL, IQ4NL}, "iq4_xs": {IQ4XS, IQ4XS}, "mxfp4": {MXFP4, MXFP4},
	"q4_k_m": {Q4K, Q6K}, "q5_k_m": {Q5K, Q6K},
}

// Types returns the names that Spec.Type takes, sorted. Each is the type of
// all matrices. Of the mixtures q4_k_m and q5_k_m the output matrix is q6_K,
// and so are attn_v and ffn_down of the layers that llama.cpp's quantiser
// favours (use_more_bits). A matrix whose rows are not whole blocks of its
// type is q8_0, or f16.
func Types() []string {
	var names []string
	for n := range mixes {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// layout collects the tensors of a spec, in the order of the file.
type layout struct {
	s       *Spec
	tensors []Tensor
	err     error
}

func (l *layout) add(name string, t Type, shape ...int64) {
	bytes, err := tensorBytes(t, shape)
	if err != nil && l.err == nil {
		l.err = misuse("tensor %s %w", name, err)
	}
	l.tensors = append(l.tensors, Tensor{Name: name, Type: t, Shape: shape, Bytes: bytes})
}

// matrix adds a weight of the spec's type.
func (l *layout) matrix(name string, more bool, shape ...int64) {
	m := mixes[strings.ToLower(l.s.Type)]
	t := m.base
	if more {
		t = m.more
	}
	if block, _, _ := t.Block(); shape[0]%block != 0 {
		if t = Q8_0; shape[0]%32 != 0 {
			t = F16
		}
	}
	l.add(name, t, shape...)
}

// vector adds a norm or bias.
func (l *layout) vector(name string, shape ...int64) { l.add(name, F32, shape...) }

// tensorsOf lists the tensors of a spec that has its defaults, without offsets.
func tensorsOf(s *Spec) ([]Tensor, error) {
	a, l := archs[s.Arch], &layout{s: s}
	width, vocab := int64(s.Width), int64(s.Vocab)
	l.matrix("token_embd.weight", s.Tied, width, vocab)
	l.vector("output_norm.weight", width)
	if !s.Tied {
		l.matrix("output.weight", true, width, vocab)
	}
	for i := range s.Layers {
		l.layer(a, i)
	}
	return l.tensors, l.err
}

func (l *layout) layer(a arch, i int) {
	s := l.s
	width, dim := int64(s.Width), int64(s.HeadDim)
	q, kv := int64(s.Heads)*dim, int64(s.KVHeads)*dim
	more := i < s.Layers/8 || i >= 7*s.Layers/8 || (i-s.Layers/8)%3 == 2
	n := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }

	l.vector(n("attn_norm.weight"), width)
	if a.fused {
		l.matrix(n("attn_qkv.weight"), more, width, q+2*kv)
	} else {
		l.matrix(n("attn_q.weight"), false, width, q)
		l.matrix(n("attn_k.weight"), false, width, kv)
		l.matrix(n("attn_v.weight"), more, width, kv)
	}
	if a.qkvBias || a.oss {
		l.vector(n("attn_q.bias"), q)
		l.vector(n("attn_k.bias"), kv)
		l.vector(n("attn_v.bias"), kv)
	}
	if a.qkNorm {
		l.vector(n("attn_q_norm.weight"), dim)
		l.vector(n("attn_k_norm.weight"), dim)
	}
	l.matrix(n("attn_output.weight"), false, q, width)
	if a.oss {
		l.vector(n("attn_output.bias"), width)
		l.vector(n("attn_sinks.weight"), int64(s.Heads))
	}
	if a.postNorm || a.oss {
		l.vector(n("post_attention_norm.weight"), width)
	}
	if !a.oss {
		l.vector(n("ffn_norm.weight"), width)
	}
	l.feedForward(a, n, more)
	if a.postNorm {
		l.vector(n("post_ffw_norm.weight"), width)
	}
}

func (l *layout) feedForward(a arch, n func(string) string, more bool) {
	s := l.s
	width, ffn, experts := int64(s.Width), int64(s.FFN), int64(s.Experts)
	switch {
	case experts > 0:
		l.vector(n("ffn_gate_inp.weight"), width, experts)
		l.matrix(n("ffn_gate_exps.weight"), false, width, ffn, experts)
		l.matrix(n("ffn_down_exps.weight"), more, ffn, width, experts)
		l.matrix(n("ffn_up_exps.weight"), false, width, ffn, experts)
		if a.oss {
			l.vector(n("ffn_gate_inp.bias"), experts)
			l.vector(n("ffn_gate_exps.bias"), ffn, experts)
			l.vector(n("ffn_down_exps.bias"), width, experts)
			l.vector(n("ffn_up_exps.bias"), ffn, experts)
		}
	case a.fused:
		l.matrix(n("ffn_up.weight"), false, width, 2*ffn)
		l.matrix(n("ffn_down.weight"), more, ffn, width)
	default:
		l.matrix(n("ffn_gate.weight"), false, width, ffn)
		l.matrix(n("ffn_down.weight"), more, ffn, width)
		l.matrix(n("ffn_up.weight"), false, width, ffn)
	}
}

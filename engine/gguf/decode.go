package gguf

import (
	"strings"
)

// Read is what one decode token reads of one tensor.
type Read struct {
	Tensor string `json:"tensor"`
	Layer  int    `json:"layer"`            // -1: none
	Bytes  int64  `json:"bytes"`            // operand bytes, all reads together
	Reads  int    `json:"reads"`            // operations that read it
	Gather bool   `json:"gather,omitempty"` // only some rows or experts of it are read
}

// DecodeBytes returns the weight bytes that one decode token of one sequence
// must read, by the tensor table alone, in the order of the table, and their
// sum. Exact for one token, any batch of one:
//
//   - a matrix, norm or bias of a layer, output_norm and output: whole, once;
//   - token_embd: the one gathered row; and whole, once more, if it is also
//     the output matrix (tied);
//   - *_exps: experts used of experts held; router and shared experts whole;
//   - rope_freqs: by the rotation of query and key, in every layer;
//   - rope_factors_long: not, the short ones are used up to the trained
//     context; both as rope_freqs;
//   - position_embd and the like: one row.
//
// Tensors that a decode token does not read (next-token-prediction blocks) are
// not listed. The engine may read more: repacked or padded copies.
func (f *File) DecodeBytes() (reads []Read, total int64) {
	tied := f.Tensor("output.weight") == nil
	for i := range f.Tensors {
		t := &f.Tensors[i]
		r := Read{Tensor: t.Name, Layer: layerOf(t.Name), Bytes: t.Bytes, Reads: 1}
		switch {
		case strings.Contains(t.Name, ".nextn."), strings.HasPrefix(t.Name, "rope_factors_long"):
			continue
		case t.Name == "token_embd.weight":
			if r.Bytes = t.Row(); tied {
				r.Bytes, r.Reads = r.Bytes+t.Bytes, 2
			} else {
				r.Gather = true
			}
		case gathered[t.Name]:
			r.Bytes, r.Gather = t.Row(), true
		case strings.HasPrefix(t.Name, "rope_f"):
			r.Reads = 2 * f.Shape.Layers
			r.Bytes = t.Bytes * int64(r.Reads)
		case experts(t.Name) && f.Shape.Experts > 0:
			held := t.Shape[len(t.Shape)-1]
			r.Bytes = t.Bytes / held * min(int64(f.Shape.ExpertsUsed), held)
			r.Gather = true
		}
		reads = append(reads, r)
		total += r.Bytes
	}
	return reads, total
}

// gathered are the other tables of which a token reads one row.
var gathered = map[string]bool{
	"position_embd.weight": true, "token_types.weight": true, "per_layer_token_embd.weight": true,
}

// experts says whether a tensor holds one slice an expert: weights
// (ffn_up_exps.weight) and biases (ffn_up_exps.bias).
func experts(name string) bool {
	return strings.HasSuffix(name, "_exps.weight") || strings.HasSuffix(name, "_exps.bias")
}

// layerOf returns the layer in a name such as blk.3.attn_q.weight, or -1.
func layerOf(name string) int {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return -1
	}
	n, digits := 0, 0
	for digits < len(rest) && digits < 4 && rest[digits] >= '0' && rest[digits] <= '9' {
		n = n*10 + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits == len(rest) || rest[digits] != '.' {
		return -1
	}
	return n
}

// KVBytes returns the bytes of key and value that one token adds to the cache
// over all layers, with elements of the given type (F16 is llama.cpp's
// default). A layer with a sliding window adds as much as another, but frees it
// after the window.
func (s *Shape) KVBytes(t Type) int64 {
	var n int64
	for _, heads := range s.KVHeads {
		n += t.RowBytes(int64(heads)*int64(s.KeyLength)) + t.RowBytes(int64(heads)*int64(s.ValueLength))
	}
	return n
}

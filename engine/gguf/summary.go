package gguf

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Summary is what a model holds and what a decode token costs, as `model show`
// prints it.
type Summary struct {
	*File
	Parameters  int64       `json:"parameters"`
	WeightBytes int64       `json:"weight_bytes"`
	ByType      []TypeTotal `json:"by_type"`
	Decode      Decode      `json:"decode"`
	Whole       *Whole      `json:"whole,omitempty"` // of a slice
}

// Decode is what one decode token of one sequence must read and adds.
type Decode struct {
	WeightBytes int64  `json:"weight_bytes"` // operand bytes, see File.DecodeBytes
	KVType      Type   `json:"kv_type"`
	KVBytes     int64  `json:"kv_bytes"` // added to the cache
	Reads       []Read `json:"reads"`
}

// Whole is what a slice says of the model that it is cut from: figures of its
// layers times full layers / layers, and of the rest once.
type Whole struct {
	Layers        int   `json:"layers"`
	WeightBytes   int64 `json:"weight_bytes"`
	DecodeBytes   int64 `json:"decode_weight_bytes"`
	DecodeKVBytes int64 `json:"decode_kv_bytes"`
}

// Summary sums up the model, with a key-value cache of elements of type kv.
func (f *File) Summary(kv Type) *Summary {
	s := &Summary{File: f, Parameters: f.Parameters(), WeightBytes: f.WeightBytes(), ByType: f.ByType()}
	s.Decode.KVType, s.Decode.KVBytes = kv, f.Shape.KVBytes(kv)
	s.Decode.Reads, s.Decode.WeightBytes = f.DecodeBytes()
	if f.Synthetic == nil || f.Synthetic.FullLayers <= f.Shape.Layers || f.Shape.Layers == 0 {
		return s
	}
	var held, read int64 // by the layers
	for i := range f.Tensors {
		if layerOf(f.Tensors[i].Name) >= 0 {
			held += f.Tensors[i].Bytes
		}
	}
	for _, r := range s.Decode.Reads {
		if r.Layer >= 0 {
			read += r.Bytes
		}
	}
	n, of := int64(f.Synthetic.FullLayers), int64(f.Shape.Layers)
	s.Whole = &Whole{
		Layers:        f.Synthetic.FullLayers,
		WeightBytes:   s.WeightBytes - held + held*n/of,
		DecodeBytes:   s.Decode.WeightBytes - read + read*n/of,
		DecodeKVBytes: s.Decode.KVBytes * n / of,
	}
	return s
}

// WriteText writes the summary for a person, with all tensors if asked.
func (s *Summary) WriteText(w io.Writer, tensors bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	p := &s.Shape
	row("model", "%s", oneOf(plain(p.Name), "(no name)"))
	row("file", "%s", s.Path)
	row("size", "%s; GGUF version %d, data from byte %d, aligned to %d", size(s.Size), s.Version, s.DataOffset, s.Alignment)
	if s.Splits > 1 {
		row("parts", "this is 1 file of %d: all below is about this file alone", s.Splits)
	}
	if s.Synthetic != nil {
		row("synthetic", "random weights%s", s.stands())
	}
	row("architecture", "%s", plain(p.Architecture))
	row("shape", "%d layers, width %d, ffn %s, vocabulary %d, context %d", p.Layers, p.Width, span(p.FFN), p.Vocab, p.Context)
	row("attention", "%s heads, %s of keys and values; key %d, value %d", span(p.Heads), span(p.KVHeads), p.KeyLength, p.ValueLength)
	if p.SlidingWindow > 0 {
		n := 0
		for _, on := range p.SlidingLayers {
			if on {
				n++
			}
		}
		row("window", "%d tokens in %d of %d layers", p.SlidingWindow, n, p.Layers)
	}
	if p.Experts > 0 {
		row("experts", "%d of %d a token", p.ExpertsUsed, p.Experts)
	}
	row("parameters", "%s", digits(s.Parameters))
	for i, k := range s.ByType {
		name := "tensors"
		if i > 0 {
			name = ""
		}
		row(name, "%d %s, %s", k.Tensors, k.Type, size(k.Bytes))
	}
	row("decode reads", "%s of weights a token", size(s.Decode.WeightBytes))
	row("decode adds", "%s of key and value a token (%s)", size(s.Decode.KVBytes), s.Decode.KVType)
	if s.Whole != nil {
		row("whole model", "%d layers: weights %s, decode reads %s, adds %s (scaled by layer)", s.Whole.Layers,
			size(s.Whole.WeightBytes), size(s.Whole.DecodeBytes), size(s.Whole.DecodeKVBytes))
	}
	if tensors {
		fmt.Fprintln(t)
		s.writeTensors(t)
	}
	return t.Flush()
}

// stands says what a synthetic model stands for.
func (s *Summary) stands() string {
	switch {
	case s.Synthetic.Preset == "" && s.Whole == nil:
		return ""
	case s.Whole == nil:
		return fmt.Sprintf("; the shape of %s", plain(s.Synthetic.Preset))
	}
	return fmt.Sprintf("; the first %d of %d layers of %s", s.Shape.Layers, s.Whole.Layers, oneOf(plain(s.Synthetic.Preset), "a model"))
}

func (s *Summary) writeTensors(w io.Writer) {
	reads := map[string]int64{}
	for _, r := range s.Decode.Reads {
		reads[r.Tensor] = r.Bytes
	}
	fmt.Fprintf(w, "tensor\ttype\tshape\toffset\tbytes\tread a token\n")
	for i := range s.Tensors {
		t := &s.Tensors[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\n", plain(t.Name), t.Type, strings.Trim(fmt.Sprint(t.Shape), "[]"), t.Offset, t.Bytes, reads[t.Name])
	}
}

// plain quotes what a terminal would act on.
func plain(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` || len(s) > 200 {
		return q[:min(len(q), 200)]
	}
	return s
}

func oneOf(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// span writes one number if all are equal, else the least and the greatest.
func span(v []int) string {
	if len(v) == 0 {
		return "0"
	}
	if lo, hi := slices.Min(v), slices.Max(v); lo != hi {
		return fmt.Sprintf("%d to %d", lo, hi)
	}
	return fmt.Sprint(v[0])
}

// size writes bytes for a person, and exactly.
func size(n int64) string {
	v, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v /= 1024; v < 1024 {
			break
		}
	}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s (%s bytes)", v, unit, digits(n))
}

// digits writes a number with its thousands apart.
func digits(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

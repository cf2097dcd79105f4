package gguf

import "sort"

// Tensor is one row of a model's tensor table.
type Tensor struct {
	Name   string  `json:"name"`
	Type   Type    `json:"type"`
	Shape  []int64 `json:"shape"`  // elements, fastest dimension first, 1 to 4 of them
	Offset int64   `json:"offset"` // in the file, bytes from its start
	Bytes  int64   `json:"bytes"`
}

// Elements returns the number of weights in the tensor.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Row returns the bytes of one row: what a gather of one index reads.
func (t *Tensor) Row() int64 { return t.Type.RowBytes(t.Shape[0]) }

// File is what the header of a GGUF says. It holds no tensor data and no open
// file; it is safe for concurrent reading.
type File struct {
	Path       string   `json:"path"`
	Version    int      `json:"version"`
	Size       int64    `json:"size"` // of the file, bytes
	Alignment  int64    `json:"alignment"`
	DataOffset int64    `json:"data_offset"` // in the file; tensor offsets already include it
	Shape      Shape    `json:"shape"`
	Synthetic  *Slice   `json:"synthetic,omitempty"` // nil: not written by Synth
	Splits     int      `json:"splits"`              // files that the model is split into, 1 or more
	Tensors    []Tensor `json:"tensors"`             // in the order of the file
	Meta       Metadata `json:"-"`
}

// Slice says what a synthetic model stands for.
type Slice struct {
	Preset     string `json:"preset,omitempty"`      // name in Presets, or empty
	FullLayers int    `json:"full_layers,omitempty"` // layers of the whole model; 0: this is the whole
}

// Tensor returns the tensor of that name, or nil.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// Parameters returns the number of weights in all tensors.
func (f *File) Parameters() int64 {
	var n int64
	for i := range f.Tensors {
		n += f.Tensors[i].Elements()
	}
	return n
}

// WeightBytes returns the bytes of all tensors, without padding.
func (f *File) WeightBytes() int64 {
	var n int64
	for i := range f.Tensors {
		n += f.Tensors[i].Bytes
	}
	return n
}

// TypeTotal is what the tensors of one type hold together.
type TypeTotal struct {
	Type    Type  `json:"type"`
	Tensors int   `json:"tensors"`
	Bytes   int64 `json:"bytes"`
}

// ByType returns the totals by type, the most bytes first.
func (f *File) ByType() []TypeTotal {
	at := map[Type]int{}
	var out []TypeTotal
	for i := range f.Tensors {
		t := &f.Tensors[i]
		k, ok := at[t.Type]
		if !ok {
			k = len(out)
			at[t.Type] = k
			out = append(out, TypeTotal{Type: t.Type})
		}
		out[k].Tensors++
		out[k].Bytes += t.Bytes
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}

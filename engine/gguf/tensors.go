package gguf

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
)

// tensors reads the tensor table and places it in the file.
func (d *reader) tensors(f *File, n int) error {
	f.Alignment = f.Meta.Int("general.alignment", 32)
	if a := f.Alignment; a < 1 || a > 1<<30 || a&(a-1) != 0 {
		return fmt.Errorf("general.alignment %d is not a power of two", a)
	}
	f.Tensors = make([]Tensor, 0, min(n, 1024))
	seen := make(map[string]bool, min(n, 1024))
	for i := range n {
		t, err := d.tensor(f.Alignment)
		if err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		if seen[t.Name] {
			return fmt.Errorf("tensor %q is there twice", t.Name)
		}
		seen[t.Name] = true
		f.Tensors = append(f.Tensors, t)
	}
	f.DataOffset = align(d.pos, f.Alignment)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Offset > d.size || t.Bytes > d.size-f.DataOffset-t.Offset {
			return fmt.Errorf("truncated: tensor %q ends %d bytes after the end of the file (%d bytes); fetch it again",
				t.Name, t.Bytes-(d.size-f.DataOffset-t.Offset), d.size)
		}
		t.Offset += f.DataOffset
	}
	return overlap(f.Tensors)
}

func (d *reader) tensor(alignment int64) (t Tensor, err error) {
	name, n, err := d.text(maxName)
	if err != nil {
		return t, err
	}
	if n == 0 || n >= maxName {
		return t, fmt.Errorf("a name of %d bytes", n)
	}
	t.Name = name
	dims, err := d.u32()
	if err != nil {
		return t, err
	}
	if dims < 1 || dims > 4 {
		return t, fmt.Errorf("%q has %d dimensions, not 1 to 4", name, dims)
	}
	t.Shape = make([]int64, dims)
	for i := range t.Shape {
		v, err := d.u64()
		if err != nil {
			return t, err
		}
		if v == 0 || v > math.MaxInt64 {
			return t, fmt.Errorf("%q has a dimension of %d", name, v)
		}
		t.Shape[i] = int64(v)
	}
	kind, err := d.u32()
	if err != nil {
		return t, err
	}
	offset, err := d.u64()
	if err != nil {
		return t, err
	}
	t.Type = Type(kind)
	if t.Bytes, err = tensorBytes(t.Type, t.Shape); err != nil {
		return t, fmt.Errorf("%q %w", name, err)
	}
	if offset > math.MaxInt64/2 || offset%uint64(alignment) != 0 {
		return t, fmt.Errorf("%q has offset %d, not a multiple of %d in the file", name, offset, alignment)
	}
	t.Offset = int64(offset)
	return t, nil
}

// tensorBytes returns the bytes of a tensor; no step of it overflows.
func tensorBytes(t Type, shape []int64) (int64, error) {
	block, size, ok := t.Block()
	if !ok {
		return 0, fmt.Errorf("has ggml type %d, unknown to this version", uint32(t))
	}
	if shape[0]%block != 0 {
		return 0, fmt.Errorf("has rows of %d elements, not whole blocks of %d (%s)", shape[0], block, t)
	}
	n := uint64(shape[0]/block) * uint64(size)
	hi := uint64(0)
	if uint64(shape[0]/block) > math.MaxInt64/uint64(size) {
		hi = 1
	}
	for _, d := range shape[1:] {
		if hi == 0 {
			hi, n = bits.Mul64(n, uint64(d))
		}
	}
	elements := uint64(1)
	for _, d := range shape {
		if hi == 0 {
			hi, elements = bits.Mul64(elements, uint64(d))
		}
	}
	if hi != 0 || n > math.MaxInt64/2 || elements > math.MaxInt64/2 {
		return 0, fmt.Errorf("has an impossible size %v", shape)
	}
	return int64(n), nil
}

func align(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }

// overlap refuses tables in which two tensors share bytes.
func overlap(tensors []Tensor) error {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	sort.Slice(order, func(i, j int) bool { return order[i].Offset < order[j].Offset })
	for i := 1; i < len(order); i++ {
		if p := order[i-1]; p.Offset+p.Bytes > order[i].Offset {
			return fmt.Errorf("tensors %q and %q overlap", p.Name, order[i].Name)
		}
	}
	return nil
}

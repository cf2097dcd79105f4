package ggml

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Tensor is a tensor of a graph template. Indices of other tensors are
// positions in the template's list, -1 = none.
type Tensor struct {
	Name     string
	Type     int32     // index into Tables.Types
	Op       int32     // index into Tables.Ops
	Flags    int32     // FlagInput, FlagOutput
	Params   [4]int32  // first words of op_params
	Ne       [4]int64  // elements by dimension
	Nb       [4]uint64 // stride in bytes by dimension
	Data     uint64    // address, 0 = not in memory
	Buffer   int32     // buffer id, -1 = none
	ViewSrc  int32     // tensor whose memory this one views
	ViewOffs uint64    // offset in that tensor, bytes
	Src      [MaxSrc]int32
}

// Template is a graph: what is computed, in which order, where. Tensors holds
// the nodes and everything they refer to; Nodes lists the ones computed, in
// order of execution.
type Template struct {
	ID      uint32
	Tensors []Tensor
	Nodes   []int32
	// Index lists the tensors whose contents decide which rows are touched
	// and are known when the graph starts; an evaluation carries their values
	// in this order.
	Index []int32
	// Chosen lists those whose contents only arise while the graph runs
	// (the experts a router chose).
	Chosen []int32
}

// Type describes an element type.
type Type struct {
	Name  string `json:"name"`
	Block int64  `json:"block"` // elements a block
	Size  uint64 `json:"size"`  // bytes a block
}

// Tables are the names behind the numbers in templates, as the loaded library
// gives them.
type Tables struct {
	Ops   []string `json:"ops"`
	Types []Type   `json:"types"`
}

// OpName returns the name of an operation, "op 123" if the library has none.
func (t *Tables) OpName(op int32) string {
	if op >= 0 && int(op) < len(t.Ops) {
		return t.Ops[op]
	}
	return fmt.Sprintf("op %d", op)
}

// TypeOf returns the element type; a zero Type if there is none.
func (t *Tables) TypeOf(n int32) Type {
	if n >= 0 && int(n) < len(t.Types) {
		return t.Types[n]
	}
	return Type{}
}

// Append encodes the template behind b: varints throughout, the fields of
// Tensor in the order of the struct, names with their length in front, then
// nodes, index and chosen lists, each with its length in front.
func (t *Template) Append(b []byte) []byte {
	i := func(v int64) { b = binary.AppendVarint(b, v) }
	u := func(v uint64) { b = binary.AppendUvarint(b, v) }
	u(uint64(t.ID))
	u(uint64(len(t.Tensors)))
	for k := range t.Tensors {
		x := &t.Tensors[k]
		u(uint64(len(x.Name)))
		b = append(b, x.Name...)
		i(int64(x.Type))
		i(int64(x.Op))
		i(int64(x.Flags))
		for _, v := range x.Params {
			i(int64(v))
		}
		for _, v := range x.Ne {
			i(v)
		}
		for _, v := range x.Nb {
			u(v)
		}
		u(x.Data)
		i(int64(x.Buffer))
		i(int64(x.ViewSrc))
		u(x.ViewOffs)
		n := MaxSrc
		for n > 0 && x.Src[n-1] < 0 {
			n--
		}
		u(uint64(n))
		for _, v := range x.Src[:n] {
			i(int64(v))
		}
	}
	for _, list := range [][]int32{t.Nodes, t.Index, t.Chosen} {
		u(uint64(len(list)))
		for _, v := range list {
			u(uint64(v))
		}
	}
	return b
}

var errTemplate = errors.New("graph template is damaged")

// Bounds on what a template may hold, against damaged input: the graphs of the largest
// models have about ten thousand nodes, and no address space has more bytes.
const (
	maxTensors = 1 << 18
	maxNodes   = 1 << 17
	maxViews   = 8 // a view of a view of a ...
	maxBytes   = 1 << 56
)

// DecodeTemplate reads what Append wrote. Whatever b holds: every index in the
// result is in range, no node comes twice, views lead to a tensor that is none, and
// no tensor has more bytes from its first to its last than an address space.
func DecodeTemplate(b []byte) (*Template, error) {
	d := decoder{b: b}
	t := &Template{ID: d.u32()}
	n := d.count(21)
	if n > maxTensors {
		return nil, errTemplate
	}
	t.Tensors = make([]Tensor, n)
	for k := range t.Tensors {
		x := &t.Tensors[k]
		x.Name = d.text()
		x.Type, x.Op, x.Flags = d.i32(), d.i32(), d.i32()
		for j := range x.Params {
			x.Params[j] = d.i32()
		}
		for j := range x.Ne {
			if x.Ne[j] = d.int(); x.Ne[j] < 0 {
				d.bad = true
			}
		}
		for j := range x.Nb {
			x.Nb[j] = d.uint()
		}
		x.Data = d.uint()
		x.Buffer = d.i32()
		x.ViewSrc = d.ref(n)
		x.ViewOffs = d.uint()
		m := d.count(1)
		if m > MaxSrc {
			return nil, errTemplate
		}
		for j := range x.Src {
			x.Src[j] = -1
			if j < m {
				x.Src[j] = d.ref(n)
			}
		}
	}
	for _, list := range []*[]int32{&t.Nodes, &t.Index, &t.Chosen} {
		m := d.count(1)
		*list = make([]int32, m)
		for j := range *list {
			v := d.uint()
			if v >= uint64(n) {
				d.bad = true
				v = 0
			}
			(*list)[j] = int32(v)
		}
	}
	if d.bad || len(d.b) != 0 || n == 0 && len(t.Nodes)+len(t.Index)+len(t.Chosen) > 0 || !t.plausible() {
		return nil, errTemplate
	}
	return t, nil
}

// plausible reports whether the template is one that a live graph may have.
func (t *Template) plausible() bool {
	for _, list := range [][]int32{t.Nodes, t.Index, t.Chosen} {
		seen := make([]bool, len(t.Tensors))
		for _, n := range list {
			if seen[n] {
				return false
			}
			seen[n] = true
		}
	}
	for i := range t.Tensors {
		x, hops := &t.Tensors[i], 0
		for v := x; v.ViewSrc >= 0; v = &t.Tensors[v.ViewSrc] {
			if hops++; hops > maxViews {
				return false
			}
		}
		if x.ViewOffs > maxBytes || x.Data > 1<<63 || !x.bounded() {
			return false
		}
	}
	return len(t.Nodes) <= maxNodes
}

// bounded reports whether the tensor spans at most maxBytes, without overflow.
func (x *Tensor) bounded() bool {
	span, elements := uint64(0), uint64(1)
	for i, n := range x.Ne {
		hi, lo := bits.Mul64(uint64(max(n, 1)-1), x.Nb[i])
		if hi != 0 || lo > maxBytes || x.Nb[i] > maxBytes {
			return false
		}
		span += lo
		if hi, elements = bits.Mul64(elements, uint64(max(n, 1))); hi != 0 || elements > maxBytes {
			return false
		}
	}
	return span <= maxBytes
}

// Elements is the number of elements of the tensor.
func (x *Tensor) Elements() int64 { return x.Ne[0] * x.Ne[1] * x.Ne[2] * x.Ne[3] }

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// u32 and i32 read numbers that must fit.
func (d *decoder) u32() uint32 {
	v := d.uint()
	d.bad = d.bad || v > math.MaxUint32
	return uint32(v)
}

func (d *decoder) i32() int32 {
	v := d.int()
	d.bad = d.bad || v != int64(int32(v))
	return int32(v)
}

// count reads a length of items of at least min bytes each.
func (d *decoder) count(min int) int {
	v := d.uint()
	if v > uint64(len(d.b)/min) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(v)
}

func (d *decoder) ref(n int) int32 {
	v := d.int()
	if v < -1 || v >= int64(n) {
		d.bad = true
		return -1
	}
	return int32(v)
}

func (d *decoder) text() string {
	n := d.count(1)
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

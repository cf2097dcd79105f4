//go:build linux

package ggml

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Lib is the tensor library as loaded into this process.
type Lib struct {
	handle uintptr
	fn     map[string]uintptr
	Tables Tables
	names  int // known in Tables
	// buffers are those that tensors seen by verify lie in.
	buffers map[ptr]Buffer
}

// needed are the accessors that layout checks and buffers rest on.
var needed = []string{
	"ggml_op_name", "ggml_type_name", "ggml_type_size", "ggml_blck_size", "ggml_get_name", "ggml_get_data", "ggml_nbytes",
	"ggml_graph_n_nodes", "ggml_graph_node", "ggml_nelements", "ggml_element_size", "ggml_n_dims",
	"ggml_backend_buffer_get_base", "ggml_backend_buffer_get_size", "ggml_backend_buffer_get_usage",
	"ggml_backend_buffer_is_host", "ggml_backend_buffer_name", "ggml_backend_sched_graph_compute_async",
	"ggml_backend_sched_set_eval_callback", "ggml_backend_sched_alloc_graph",
}

// Open binds libggml-base at path, which must already be loaded or loadable.
func Open(path string) (*Lib, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l := &Lib{handle: h, fn: map[string]uintptr{}, buffers: map[ptr]Buffer{}}
	for _, n := range needed {
		p, err := purego.Dlsym(h, n)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: not a version that tierscope knows", path, n)
		}
		l.fn[n] = p
	}
	return l, nil
}

func (l *Lib) call(name string, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(l.fn[name], args...)
	return r
}

func text(p uintptr) string {
	if p == 0 {
		return ""
	}
	for n := 0; n < 4096; n++ {
		if *at[byte](ptr(p), n) == 0 {
			return string(unsafe.Slice(at[byte](ptr(p), 0), n))
		}
	}
	return ""
}

// learn makes sure that the tables name the operation and type of t. Both
// accessors index arrays without a check, so they are asked only for numbers that live
// tensors hold.
func (l *Lib) learn(t ptr) {
	if op := int(t.op()); op >= 0 && op < 256 {
		for len(l.Tables.Ops) <= op {
			l.Tables.Ops = append(l.Tables.Ops, "")
		}
		if l.Tables.Ops[op] == "" {
			l.Tables.Ops[op] = text(l.call("ggml_op_name", uintptr(op)))
			l.names++
		}
	}
	if n := int(t.typ()); n >= 0 && n < 128 {
		for len(l.Tables.Types) <= n {
			l.Tables.Types = append(l.Tables.Types, Type{})
		}
		if l.Tables.Types[n].Name == "" {
			a := uintptr(n)
			l.Tables.Types[n] = Type{text(l.call("ggml_type_name", a)), int64(l.call("ggml_blck_size", a)), uint64(l.call("ggml_type_size", a))}
			l.names++
		}
	}
}

// Buffer is a backend buffer.
type Buffer struct {
	ID    int32  `json:"id"`
	Name  string `json:"name"`
	Usage int    `json:"usage"` // UsageAny, UsageWeights, UsageCompute
	Host  bool   `json:"host"`
	Base  uint64 `json:"base"`
	Size  uint64 `json:"size"`
}

func (l *Lib) buffer(p ptr) Buffer {
	a := uintptr(p)
	return Buffer{
		Name:  text(l.call("ggml_backend_buffer_name", a)),
		Usage: int(int32(l.call("ggml_backend_buffer_get_usage", a))),
		Host:  l.call("ggml_backend_buffer_is_host", a)&0xff != 0,
		Base:  uint64(l.call("ggml_backend_buffer_get_base", a)),
		Size:  uint64(l.call("ggml_backend_buffer_get_size", a)),
	}
}

// LayoutError says that the loaded library does not lay out its structures as
// tierscope expects.
type LayoutError struct{ What string }

func (e *LayoutError) Error() string {
	return "tensor library has another structure layout: " + e.What
}

// Verify compares the assumed layout with the library's own accessors on every
// tensor of a live graph. Any difference is a [LayoutError].
func (l *Lib) Verify(graph uintptr) error {
	g := ptr(graph)
	n := int(*at[int32](g, graphNNodes))
	if got := int(int32(l.call("ggml_graph_n_nodes", graph))); got != n || n <= 0 {
		return &LayoutError{fmt.Sprintf("graph has %d nodes, read %d", got, n)}
	}
	nodes := *at[ptr](g, graphNodes)
	for i := range n {
		t := *at[ptr](nodes, 8*i)
		if want := l.call("ggml_graph_node", graph, uintptr(i)); want != uintptr(t) {
			return &LayoutError{fmt.Sprintf("node %d is at another address", i)}
		}
		if err := l.verifyTensor(t, true); err != nil {
			return err
		}
		for _, s := range t.src() {
			if s == 0 {
				continue
			}
			if err := l.verifyTensor(s, false); err != nil {
				return err
			}
		}
	}
	leafs, nl := *at[ptr](g, graphLeafs), int(*at[int32](g, graphNLeafs))
	if nl <= 0 || leafs == 0 {
		return &LayoutError{"graph has no leafs"}
	}
	for i := range nl {
		if err := l.verifyTensor(*at[ptr](leafs, 8*i), false); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lib) verifyTensor(t ptr, node bool) error {
	a := uintptr(t)
	if text(l.call("ggml_get_name", a)) != t.name() {
		return &LayoutError{"name of a tensor"}
	}
	if l.call("ggml_get_data", a) != uintptr(t.data()) {
		return &LayoutError{"data of " + t.name()}
	}
	l.learn(t)
	typ := l.Tables.TypeOf(t.typ())
	switch {
	case typ.Name == "" || typ.Block <= 0:
		return &LayoutError{fmt.Sprintf("element type %d", t.typ())}
	case int64(l.call("ggml_nelements", a)) != t.elements():
		return &LayoutError{"dimensions of " + t.name()}
	case uint64(l.call("ggml_nbytes", a)) != extent(t.ne(), t.nb(), typ):
		return &LayoutError{"strides of " + t.name()}
	case int(t.op()) < 0 || int(t.op()) >= len(l.Tables.Ops) || l.Tables.Ops[t.op()] == "":
		return &LayoutError{"operation of " + t.name()}
	case node && t.src()[0] != 0 && t.op() == 0:
		return &LayoutError{"sources of " + t.name()}
	case t.flags() < 0 || t.flags() > 1<<12:
		return &LayoutError{"flags of " + t.name()}
	}
	if err := l.verifyBuffer(t); err != nil {
		return err
	}
	if v := t.viewSrc(); v != 0 && v.data() != 0 && t.data() != 0 && uint64(t.data()) != uint64(v.data())+t.viewOffs() {
		return &LayoutError{"view " + t.name()}
	}
	return nil
}

// extent is the number of bytes from the first to behind the last element.
func extent(ne [4]int64, nb [4]uint64, t Type) uint64 {
	for _, n := range ne {
		if n <= 0 {
			return 0
		}
	}
	var size uint64
	first := 0
	if t.Block == 1 {
		size = t.Size
	} else {
		size = uint64(ne[0]) * nb[0] / uint64(t.Block)
		first = 1
	}
	for i := first; i < 4; i++ {
		size += uint64(ne[i]-1) * nb[i]
	}
	return size
}

//go:build linux

package ggml

import (
	"encoding/json"
	"hash/maphash"
)

// Emit takes what a recorder produces: the tables as JSON whenever they grew, a
// buffer as JSON, a template, in that order before the first evaluation that
// needs them. The payload is the caller's for the time of the call only.
type Emit interface {
	Tables(json []byte) error
	Buffer(json []byte) error
	Template(payload []byte) error
	Eval(payload []byte) error
}

// known is a template that has been seen, with what an evaluation of it must
// look at.
type known struct {
	id    uint32
	index []values
	// indexAt are the tensors of index.
	indexAt []ptr
	chosen  []values
	wanted  map[ptr]int // chosen tensors
	layers  map[ptr]uint32
	// reusable: found unchanged when it was started again without having been built.
	reusable bool
}

// values is a tensor of integers in memory.
type values struct {
	data  ptr
	ne    [4]int64
	nb    [4]uint64
	width uint64 // bytes an integer; 0 = not readable from here
}

// recorder turns live graphs into templates and evaluations. One thread.
type recorder struct {
	lib     *Lib
	emit    Emit
	seed    maphash.Seed
	known   map[uint64]*known
	buffers map[ptr]int32
	host    []bool
	buf     []byte
	ev      Eval
	told    int // names in the tables when they were last told
}

func newRecorder(lib *Lib, emit Emit) *recorder {
	return &recorder{lib: lib, emit: emit, seed: maphash.MakeSeed(), known: map[uint64]*known{}, buffers: map[ptr]int32{}}
}

// reader says where the structure of a tensor can be read: in the engine's memory,
// or in a copy.
type reader func(ptr) ptr

func here(p ptr) ptr { return p }

// fingerprint hashes all of the graph that decides what it does and where. Nodes carry the
// addresses of their sources; leafs their own data.
func (r *recorder) fingerprint(nodes, leafs []ptr, at reader) uint64 {
	h := uint64(len(nodes))
	for _, list := range [2][]ptr{nodes, leafs} {
		for _, t := range list {
			h = (h<<5 | h>>59) ^ maphash.Bytes(r.seed, bytesAt(at(t), hashed))
			h *= 0x9e3779b97f4a7c15
		}
	}
	return h
}

// graphLists are the nodes and leafs of a live graph.
func graphLists(g ptr) (nodes, leafs []ptr) {
	list := func(countAt, at_ int) []ptr {
		n := *at[int32](g, countAt)
		if n <= 0 {
			return nil
		}
		return sliceAt[ptr](*at[ptr](g, at_), int(n))
	}
	return list(graphNNodes, graphNodes), list(graphNLeafs, graphLeafs)
}

// begin finds the template of a live graph, telling it first if it is new.
func (r *recorder) begin(nodes, leafs []ptr) (*known, error) { return r.beginAt(nodes, leafs, here) }

func (r *recorder) beginAt(nodes, leafs []ptr, at reader) (*known, error) {
	h := r.fingerprint(nodes, leafs, at)
	if k := r.known[h]; k != nil {
		return k, nil
	}
	k, err := r.tell(nodes, at)
	if err == nil {
		r.known[h] = k
	}
	return k, err
}

func (r *recorder) tell(nodes []ptr, at reader) (*known, error) {
	t := &Template{ID: uint32(len(r.known))}
	k := &known{id: t.ID, wanted: map[ptr]int{}, layers: map[ptr]uint32{}}
	pos := map[ptr]int32{}
	var failed error
	var add func(p ptr) int32
	add = func(p ptr) int32 {
		if p == 0 {
			return -1
		}
		if i, ok := pos[p]; ok {
			return i
		}
		i := int32(len(t.Tensors))
		pos[p] = i
		t.Tensors = append(t.Tensors, Tensor{})
		q := at(p)
		r.lib.learn(q)
		b, err := r.bufferID(q.buffer())
		if err != nil {
			failed = err
		}
		x := Tensor{
			Name: q.name(), Type: q.typ(), Op: q.op(), Flags: q.flags(), Params: q.params(), Ne: q.ne(), Nb: q.nb(),
			Data: uint64(q.data()), Buffer: b, ViewOffs: q.viewOffs(),
		}
		x.ViewSrc = add(q.viewSrc())
		for j, s := range q.src() {
			x.Src[j] = add(s)
		}
		t.Tensors[i] = x
		return i
	}
	for n, p := range nodes {
		t.Nodes = append(t.Nodes, add(p))
		k.layers[p] = uint32(n)
	}
	seen := map[ptr]bool{}
	for _, p := range nodes {
		s := indexSource(r.lib.Tables.OpName(at(p).op()))
		if s < 0 {
			continue
		}
		idx := at(p).src()[s]
		if idx == 0 || seen[idx] {
			continue
		}
		seen[idx] = true
		v, err := r.valuesOf(at(idx))
		if err != nil {
			failed = err
		}
		if root(idx, at).op() == 0 {
			t.Index = append(t.Index, pos[idx])
			k.index = append(k.index, v)
			k.indexAt = append(k.indexAt, idx)
		} else {
			k.wanted[idx] = len(k.chosen)
			t.Chosen = append(t.Chosen, pos[idx])
			k.chosen = append(k.chosen, v)
		}
	}
	if failed != nil {
		return nil, failed
	}
	if r.told != r.lib.names {
		r.told = r.lib.names
		b, err := json.Marshal(r.lib.Tables)
		if err != nil {
			return nil, err
		}
		if err := r.emit.Tables(b); err != nil {
			return nil, err
		}
	}
	r.buf = t.Append(r.buf[:0])
	return k, r.emit.Template(r.buf)
}

// indexSource returns which source of an operation names the rows that it
// touches, -1 if none does.
func indexSource(op string) int {
	switch op {
	case "GET_ROWS", "SET_ROWS":
		return 1
	case "MUL_MAT_ID", "ADD_ID":
		return 2
	}
	return -1
}

// root follows views to the tensor that holds the memory.
func root(p ptr, at reader) ptr {
	for q := at(p); ; q = at(q.viewSrc()) {
		if q.viewSrc() == 0 {
			return q
		}
	}
}

func (r *recorder) bufferID(p ptr) (int32, error) {
	if p == 0 {
		return -1, nil
	}
	if id, ok := r.buffers[p]; ok {
		return id, nil
	}
	b := r.lib.buffer(p)
	b.ID = int32(len(r.buffers))
	r.buffers[p] = b.ID
	r.host = append(r.host, b.Host)
	j, err := json.Marshal(b)
	if err != nil {
		return -1, err
	}
	return b.ID, r.emit.Buffer(j)
}

// valuesOf says where the integers of p are. A buffer that is new is told.
func (r *recorder) valuesOf(p ptr) (values, error) {
	v := values{data: p.data(), ne: p.ne(), nb: p.nb()}
	r.lib.learn(p)
	id, err := r.bufferID(p.buffer())
	t := r.lib.Tables.TypeOf(p.typ())
	if err == nil && id >= 0 && r.host[id] && (t.Name == "i32" || t.Name == "i64") {
		v.width = t.Size
	}
	return v, err
}

// read appends the integers to buf; nil if they cannot be read.
func (v *values) read(buf []int64) []int64 {
	if v.width == 0 || v.data == 0 {
		return nil
	}
	if buf == nil {
		buf = []int64{}
	}
	for i3 := range v.ne[3] {
		for i2 := range v.ne[2] {
			for i1 := range v.ne[1] {
				row := int(uint64(i1)*v.nb[1] + uint64(i2)*v.nb[2] + uint64(i3)*v.nb[3])
				for i0 := range v.ne[0] {
					o := row + int(uint64(i0)*v.nb[0])
					if v.width == 8 {
						buf = append(buf, *at[int64](v.data, o))
					} else {
						buf = append(buf, int64(*at[int32](v.data, o)))
					}
				}
			}
		}
	}
	return buf
}

// start fills the evaluation with what is known before the graph runs.
func (r *recorder) start(k *known) {
	e := &r.ev
	e.Template = k.id
	e.Index = grow(e.Index, len(k.index))
	for i := range k.index {
		e.Index[i] = k.index[i].read(e.Index[i][:0])
	}
	e.Chosen = grow(e.Chosen, len(k.chosen))
	clear(e.Chosen)
	e.Times = e.Times[:0]
}

func (r *recorder) finish() error {
	r.buf = r.ev.Append(r.buf[:0])
	return r.emit.Eval(r.buf)
}

func grow(s [][]int64, n int) [][]int64 {
	for len(s) < n {
		s = append(s, nil)
	}
	return s[:n]
}

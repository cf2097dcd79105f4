package tensorgraph

import (
	"math"
	"slices"
	"strings"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// program is a template made ready: everything that every evaluation of it
// touches, with what depends on index tensors left open.
type program struct {
	t        *ggml.Template
	accesses []access
	// frac is where a node begins, as a part of the evaluation's time: nodes take time in
	// proportion to the bytes that they touch. The last entry is 1.
	frac []float64
}

// touch says how the bytes of an access are found.
type touch uint8

const (
	fixed     touch = iota // at
	byRows                 // rows of a matrix named by an index tensor
	byExperts              // slices of a stack of matrices
	cacheLoad              // cells of a KV cache
	cacheSave
)

// access is a load or store of one evaluation.
type access struct {
	how    touch
	store  bool
	node   int32
	object uint32
	layer  int32
	op     string
	at     []pieces
	values valueRef  // byRows, byExperts, cacheSave
	row    rowShape  // byRows, byExperts
	cells  *cellView // cacheLoad, cacheSave
}

// valueRef names a list of values in an evaluation.
type valueRef struct {
	chosen bool
	i      int
}

// rowShape says where row r of group g lies: off + r*pitch + g*outer, piece
// bytes. Values i with i/per = g belong to group g.
type rowShape struct {
	off, piece, pitch, outer uint64
	n                        uint64 // rows
	per                      int
	whole                    []pieces // all rows: when the values were not read
}

type compiler struct {
	*replayer
	t     *ggml.Template
	p     *program
	bytes []float64 // by node
	index map[int32]valueRef
	// groupOf is the cache group that an index tensor of this template names
	// cells of.
	groupOf map[int32]*group
	skips   bool // nodes without the compute flag are not computed
	pieces  int  // that all accesses together are made of
}

// maxProgram bounds these pieces, against damaged input: an access of a real graph is
// one piece, or a few.
const maxProgram = 1 << 20

// compile makes a template ready.
func (r *replayer) compile(t *ggml.Template) (*program, error) {
	c := &compiler{replayer: r, t: t, p: &program{t: t}, bytes: make([]float64, len(t.Nodes)), index: map[int32]valueRef{}, groupOf: map[int32]*group{}}
	for _, n := range t.Nodes {
		c.skips = c.skips || t.Tensors[n].Flags&flagCompute != 0
	}
	for i, n := range t.Index {
		c.index[n] = valueRef{false, i}
	}
	for i, n := range t.Chosen {
		c.index[n] = valueRef{true, i}
	}
	layers := c.nodeLayers()
	for n, id := range t.Nodes {
		if err := c.node(int32(n), &t.Tensors[id], layers[n]); err != nil {
			return nil, err
		}
		if c.pieces > maxProgram {
			return nil, run.Errorf(run.Corrupt, "graph template %d touches more than %d separate pieces", t.ID, maxProgram)
		}
	}
	c.p.frac = fractions(c.bytes)
	return c.p, nil
}

// perNode is the cost of a node in bytes touched that does not depend on them:
// scheduling and barriers.
const perNode = 4096

func fractions(bytes []float64) []float64 {
	f := make([]float64, len(bytes)+1)
	total := 0.0
	for i, b := range bytes {
		f[i] = total
		total += b
	}
	if total > 0 {
		for i := range f {
			f[i] /= total
		}
	}
	f[len(bytes)] = 1
	return f
}

// nodeLayers are the layers that the nodes work for: what they say themselves, else
// what the node says that uses them first, else that of the node before.
func (c *compiler) nodeLayers() []int32 {
	user := map[int32]int32{} // of a tensor: the node that uses it first
	for _, id := range c.t.Nodes {
		for _, s := range c.t.Tensors[id].Src {
			if _, ok := user[s]; !ok {
				user[s] = id
			}
		}
	}
	out := make([]int32, len(c.t.Nodes))
	before := observe.NoLayer
	for n, id := range c.t.Nodes {
		layer, ok := c.ownLayer(&c.t.Tensors[id])
		if next, used := user[id]; !ok && used {
			layer, ok = c.ownLayer(&c.t.Tensors[next])
		}
		if ok {
			before = layer
		}
		out[n] = before
	}
	return out
}

// ownLayer is the layer that a node names: in its name, or by a weight or cache
// among its sources.
func (c *compiler) ownLayer(x *ggml.Tensor) (layer int32, ok bool) {
	if l := layerOf(x.Name); l != observe.NoLayer {
		return l, true
	}
	for _, s := range x.Src {
		if s < 0 {
			continue
		}
		name := c.t.Tensors[s].Name
		if strings.HasPrefix(name, "blk.") || strings.HasPrefix(name, "cache_") {
			return layerOf(name), true
		}
		if strings.HasSuffix(name, ".weight") { // token_embd, output, output_norm
			return observe.NoLayer, true
		}
	}
	return observe.NoLayer, strings.HasPrefix(x.Name, "result_") || strings.HasPrefix(x.Name, "inp_")
}

// views are operations that only name memory.
var views = map[string]bool{"NONE": true, "VIEW": true, "RESHAPE": true, "PERMUTE": true, "TRANSPOSE": true}

// flagCompute marks the nodes to be computed, in versions of ggml that have it
// (since 2026); graphs of older ones have it nowhere.
const flagCompute = 16

func (c *compiler) node(n int32, x *ggml.Tensor, layer int32) error {
	op := c.tables.OpName(x.Op)
	if views[op] || c.skips && x.Flags&flagCompute == 0 || slices.Contains(x.Ne[:], 0) {
		return nil // no backend computes an empty result, nor reads its sources
	}
	for i, s := range x.Src {
		if s < 0 || slices.Contains(x.Src[:i], s) {
			continue
		}
		if err := c.load(n, op, x, i, s, layer); err != nil {
			return err
		}
	}
	if err := c.store(n, op, x, layer); err != nil {
		return err
	}
	c.bytes[n] += perNode
	return nil
}

// load adds what a node reads of its source i, tensor s.
func (c *compiler) load(n int32, op string, x *ggml.Tensor, i int, s int32, layer int32) error {
	t := &c.t.Tensors[s]
	a := access{node: n, layer: layer, op: strings.ToLower(op)}
	switch {
	case op == "SET_ROWS" && i == 2, op == "CPY" && i == 1:
		return nil // the destination, named as a source
	case op == "GET_ROWS" && i == 0:
		return c.gather(a, t, x.Src[1], false)
	case op == "ADD_ID" && i == 1, op == "MUL_MAT_ID" && i == 0:
		return c.gather(a, t, x.Src[2], op == "MUL_MAT_ID")
	case op == "SET" && i == 0 && x.ViewSrc >= 0, op == "ACC" && i == 0 && x.ViewSrc >= 0:
		return nil // in place: only the part that changes is touched
	}
	return c.whole(a, t)
}

func (c *compiler) store(n int32, op string, x *ggml.Tensor, layer int32) error {
	a := access{node: n, layer: layer, op: strings.ToLower(op), store: true}
	switch {
	case op == "SET_ROWS":
		return c.scatter(a, x)
	case (op == "SET" || op == "ACC") && x.ViewSrc >= 0 && x.Src[1] >= 0:
		return c.part(a, x)
	}
	return c.whole(a, x)
}

// root returns the tensor whose memory t names, and where in it t begins.
func (c *compiler) root(t *ggml.Tensor) (*ggml.Tensor, uint64) {
	off := uint64(0)
	for t.ViewSrc >= 0 {
		off += t.ViewOffs
		t = &c.t.Tensors[t.ViewSrc]
	}
	return t, off
}

// whole adds an access to all of a tensor.
func (c *compiler) whole(a access, t *ggml.Tensor) error {
	root, off := c.root(t)
	if root.Data == 0 {
		return nil // an optional input that this graph does without
	}
	id, err := c.objects.object(root, &c.tables)
	if err != nil {
		return err
	}
	a.object = id
	if !a.store && c.caches[id] != nil {
		if v := c.cacheView(c.caches[id], t, off); v != nil {
			a.how, a.cells = cacheLoad, v
			c.add(a, v.bytes())
			return nil
		}
	}
	unit, dims := dimsOf(t.Ne, t.Nb, c.tables.TypeOf(t.Type))
	a.at = cover(off, unit, dims)
	c.add(a, total(a.at))
	return nil
}

func (c *compiler) add(a access, bytes uint64) {
	if a.how == fixed && len(a.at) == 0 {
		return
	}
	c.bytes[a.node] += float64(bytes)
	c.pieces += len(a.at) + len(a.row.whole)
	c.p.accesses = append(c.p.accesses, a)
}

func total(at []pieces) uint64 {
	n := uint64(0)
	for _, p := range at {
		n += p.size()
	}
	return n
}

// gather adds a load of the rows (or whole matrices, if stacked) of t that the
// values of tensor idx name.
func (c *compiler) gather(a access, t *ggml.Tensor, idx int32, stacked bool) error {
	ref, ok := c.index[idx]
	if !ok {
		return run.Errorf(run.Corrupt, "graph template %d: %s has rows chosen by a tensor that is no index", c.t.ID, a.op)
	}
	root, off := c.root(t)
	id, err := c.objects.object(root, &c.tables)
	if err != nil {
		return err
	}
	a.object, a.values, a.how = id, ref, byRows
	unit, dims := dimsOf(t.Ne, t.Nb, c.tables.TypeOf(t.Type))
	whole := cover(off, unit, dims)
	ne := t.Ne
	rows := 1
	if stacked {
		a.how, rows = byExperts, 2
	}
	for i := rows; i < 4; i++ {
		ne[i] = 1
	}
	unit, dims = dimsOf(ne, t.Nb, c.tables.TypeOf(t.Type))
	one := cover(0, unit, dims)
	if len(one) != 1 || one[0].count != 1 {
		// Rows that are no single piece: no llama.cpp graph has them.
		a.how, a.at = fixed, whole
		c.add(a, total(whole))
		return nil
	}
	a.row = rowShape{off: off, piece: one[0].piece, pitch: t.Nb[rows], n: uint64(t.Ne[rows]), whole: whole, per: math.MaxInt}
	if idx := &c.t.Tensors[idx]; a.op == "get_rows" && idx.Ne[1]*idx.Ne[2]*idx.Ne[3] > t.Ne[2]*t.Ne[3] {
		return run.Errorf(run.Corrupt, "graph template %d: get_rows names rows of more matrices than there are", c.t.ID)
	}
	if a.op == "get_rows" {
		// Each column of the index tensor has a matrix of its own; the experts of all
		// tokens share one.
		a.row.outer = t.Nb[2]
		a.row.per = max(1, int(c.t.Tensors[idx].Ne[0]))
	}
	n := uint64(c.t.Tensors[idx].Ne[0] * max(1, c.t.Tensors[idx].Ne[1]))
	c.add(a, min(n*one[0].piece, total(whole)))
	return nil
}

// scatter adds the store of a SET_ROWS node.
func (c *compiler) scatter(a access, x *ggml.Tensor) error {
	if x.Src[1] < 0 {
		return run.Errorf(run.Corrupt, "graph template %d: set_rows without an index", c.t.ID)
	}
	ref, ok := c.index[x.Src[1]]
	if !ok {
		return run.Errorf(run.Corrupt, "graph template %d: set_rows whose rows no index tensor names", c.t.ID)
	}
	root, off := c.root(x)
	id, err := c.objects.object(root, &c.tables)
	if err != nil {
		return err
	}
	a.object, a.values = id, ref
	typ := c.tables.TypeOf(x.Type)
	ne := x.Ne
	ne[1], ne[2], ne[3] = 1, 1, 1
	unit, dims := dimsOf(ne, x.Nb, typ)
	one := cover(0, unit, dims)
	if len(one) != 1 || one[0].count != 1 {
		return run.Errorf(run.Corrupt, "graph template %d: set_rows into rows that are no piece", c.t.ID)
	}
	bytes := uint64(c.t.Tensors[x.Src[1]].Ne[0]) * one[0].piece
	if c.objects.all[id-1].Class == observe.ClassKVCache {
		cache, err := c.cache(id, root, x.Ne[0] == 1 && root.Ne[0] > 1, x.Src[1])
		if err != nil {
			return err
		}
		a.how, a.cells = cacheSave, &cellView{cache: cache}
		c.add(a, bytes)
		return nil
	}
	a.how = byRows
	if idx := &c.t.Tensors[x.Src[1]]; idx.Ne[1]*idx.Ne[2]*idx.Ne[3] > x.Ne[2]*x.Ne[3] {
		return run.Errorf(run.Corrupt, "graph template %d: set_rows names rows of more matrices than there are", c.t.ID)
	}
	unit, dims = dimsOf(x.Ne, x.Nb, typ)
	a.row = rowShape{off: off, piece: one[0].piece, pitch: x.Nb[1], outer: x.Nb[2], n: uint64(x.Ne[1]), per: max(1, int(c.t.Tensors[x.Src[1]].Ne[0])), whole: cover(off, unit, dims)}
	c.add(a, bytes)
	return nil
}

// part adds the store of a SET or ACC in place: the shape of its second source, at the
// strides and offset in its parameters.
func (c *compiler) part(a access, x *ggml.Tensor) error {
	root, off := c.root(x)
	id, err := c.objects.object(root, &c.tables)
	if err != nil {
		return err
	}
	a.object = id
	nb := [4]uint64{x.Nb[0], uint64(uint32(x.Params[0])), uint64(uint32(x.Params[1])), uint64(uint32(x.Params[2]))}
	unit, dims := dimsOf(c.t.Tensors[x.Src[1]].Ne, nb, c.tables.TypeOf(x.Type))
	a.at = cover(off+uint64(uint32(x.Params[3])), unit, dims)
	c.add(a, total(a.at))
	return nil
}

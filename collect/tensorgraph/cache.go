package tensorgraph

import (
	"cmp"
	"slices"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
)

// Bounds against damaged input: cells of a cache over all streams, and pieces that a
// cell may consist of in a view (heads).
const (
	maxCells      = 1 << 24
	maxCellPieces = 1 << 12
)

// group is a set of KV caches whose cells are taken and freed together: all layers, or
// those with a sliding window and those without.
type group struct {
	blocks  *region.KVBlocks
	cells   uint32 // a stream
	streams uint32
	layers  []*cache
	// wrote and read are the last evaluation in which the group's cells were
	// accounted for: layers share them.
	wrote, read uint64
	next        map[int32]int32 // position behind the last one written, by sequence
}

// cache is the KV cache of one layer, K or V.
type cache struct {
	*group
	object     uint32
	transposed bool   // one row an element, cells side by side (V without flash attention)
	pitch      uint64 // bytes from cell to cell, if not transposed
	row        uint64 // elements a cell
	elem       uint64 // bytes an element, if transposed
	stream     uint64 // bytes from stream to stream
	cellBytes  uint64 // bytes a cell holds
}

// cache returns the cache that is object id, whose rows the index tensor idx of
// this template names.
func (c *compiler) cache(id uint32, root *ggml.Tensor, transposed bool, idx int32) (*cache, error) {
	if k := c.caches[id]; k != nil {
		return k, nil
	}
	typ := c.tables.TypeOf(root.Type)
	k := &cache{object: id, transposed: transposed, pitch: root.Nb[1], row: uint64(root.Ne[0]), elem: typ.Size, stream: root.Nb[2]}
	k.cellBytes = uint64(root.Ne[0]) / uint64(max(typ.Block, 1)) * typ.Size
	if root.Ne[2] <= 1 {
		k.stream = 0
	}
	cells, streams := root.Ne[1], max(root.Ne[2], 1)
	switch {
	case cells < 1 || cells > maxCells || streams > maxCells/cells:
		return nil, run.Errorf(run.Corrupt, "graph template %d: a KV cache of %d cells in %d streams", c.t.ID, cells, streams)
	case k.cellBytes == 0 || k.pitch < k.cellBytes || k.row == 0 || transposed && typ.Block != 1 || streams > 1 && k.stream < uint64(cells)*k.pitch:
		return nil, run.Errorf(run.Corrupt, "graph template %d: a KV cache whose cells overlap", c.t.ID)
	}
	o := &c.objects.all[id-1]
	like := func(g *group) bool { return g != nil && g.cells == uint32(cells) && g.streams == uint32(streams) }
	// K and V of a layer have index tensors of their own, but share cells.
	for other, kv := range c.caches {
		if c.objects.all[other-1].Layer == o.Layer && like(kv.group) {
			k.group = kv.group
		}
	}
	if k.group == nil {
		k.group = c.groupOf[idx]
	}
	if !like(k.group) {
		k.group = &group{blocks: region.NewKVBlocks(c.opt.BlockCells), cells: uint32(cells), streams: uint32(streams)}
		c.groups = append(c.groups, k.group)
	}
	c.groupOf[idx] = k.group
	k.layers = append(k.layers, k)
	c.caches[id] = k
	return k, nil
}

// cellView is the part of a cache that a tensor names: cells [first, first+n)
// of each stream, and of each cell the inner pieces.
type cellView struct {
	*cache
	first, n uint32
	streams  []uint32
	inner    []pieces // row order: within a cell. transposed: nil
	rows     []dim    // transposed: over the elements
	rowOff   uint64   // transposed: first element's row
}

// cacheView resolves a view of a cache; nil if it is no view by cells (then its
// bytes are taken as they are).
func (c *compiler) cacheView(k *cache, t *ggml.Tensor, off uint64) *cellView {
	unit, dims := dimsOf(t.Ne, t.Nb, c.tables.TypeOf(t.Type))
	if unit == 0 {
		return nil
	}
	v := &cellView{cache: k, n: 1}
	base := uint64(0)
	if k.stream > 0 {
		base = off / k.stream
		off %= k.stream
	}
	cell := k.pitchOf()
	n, streams := uint64(1), uint64(1)
	var inner []dim
	for _, d := range dims {
		switch {
		case d.stride == cell:
			n = d.n
		case k.stream > 0 && d.stride == k.stream:
			streams = d.n
		default:
			inner = append(inner, d)
		}
	}
	first := off / k.pitch
	if k.transposed {
		height := uint64(k.cells) * k.elem
		first, v.rowOff, v.rows = off%height/k.elem, off/height*height, inner
	} else {
		v.inner = cover(off%k.pitch, unit, inner)
	}
	parts := uint64(len(cover(0, k.elem, v.rows)))
	for _, p := range v.inner {
		parts += p.count
	}
	if n > uint64(k.cells) || first > uint64(k.cells)-n || streams > uint64(k.streams) || base > uint64(k.streams)-streams || parts > maxCellPieces {
		return nil
	}
	v.first, v.n = uint32(first), uint32(n)
	for s := range streams {
		v.streams = append(v.streams, uint32(base+s))
	}
	return v
}

// bytes is the size of the view.
func (v *cellView) bytes() uint64 {
	n := uint64(v.n) * uint64(max(len(v.streams), 1))
	if v.transposed {
		return n * v.row * v.elem
	}
	return n * total(v.inner)
}

// at appends the pieces of cells [a, b), numbered across streams and all in one of
// them, to buf.
func (v *cellView) at(buf []pieces, a, b uint32) []pieces {
	base := uint64(a/v.cells) * v.stream
	n, c := uint64(b-a), uint64(a%v.cells)
	if v.transposed {
		rows, off := v.rows, v.rowOff
		if rows == nil {
			rows = []dim{{v.row, uint64(v.cells) * v.elem}}
		}
		return append(buf, cover(base+off+c*v.elem, n*v.elem, rows)...)
	}
	inner := v.inner
	if inner == nil {
		inner = []pieces{{0, v.cellBytes, 1, 0}}
	}
	for _, p := range inner {
		for k := range p.count {
			at := pieces{base + c*v.pitch + p.off + k*p.stride, p.piece, n, v.pitch}
			if p.piece == v.pitch || n == 1 {
				at.piece, at.count, at.stride = p.piece*n, 1, 0
			}
			buf = append(buf, at)
		}
	}
	return buf
}

// runs appends the cells of the view, cut where the sequence changes.
func (v *cellView) runs(buf []region.CellRun) []region.CellRun {
	for _, s := range v.streams {
		first := s*v.cells + v.first
		buf = v.blocks.Runs(first, first+v.n, buf)
	}
	return buf
}

// written turns the values of an index tensor into the cells that they name, in
// order of the tokens; nil if they name others.
func (k *cache) written(values []int64) []uint32 {
	all, per := uint64(k.cells)*uint64(k.streams), 1
	if k.transposed {
		// Element (cell, j) of a stream is value j*cells + cell; a token's elements
		// are its row values one after another.
		all, per = all*k.row, int(k.row)
	}
	cells := make([]uint32, 0, len(values)/per)
	for i := 0; i+per <= len(values); i += per {
		v := uint64(values[i])
		if v >= all {
			return nil
		}
		if k.transposed {
			size := uint64(k.cells) * k.row
			v = v/size*uint64(k.cells) + v%size%uint64(k.cells)
		}
		cells = append(cells, uint32(v))
	}
	return cells
}

// pitchOf is the distance from cell to cell: of their first bytes, if transposed.
func (k *cache) pitchOf() uint64 {
	if k.transposed {
		return k.elem
	}
	return k.pitch
}

// cellRuns joins cells that follow each other within a stream.
func cellRuns(cells []uint32, stream uint32) []region.CellRange {
	sorted := slices.Clone(cells)
	slices.SortFunc(sorted, cmp.Compare[uint32])
	sorted = slices.Compact(sorted)
	var runs []region.CellRange
	for _, c := range sorted {
		if n := len(runs); n > 0 && runs[n-1].End == c && c%stream != 0 {
			runs[n-1].End++
			continue
		}
		runs = append(runs, region.CellRange{First: c, End: c + 1})
	}
	return runs
}

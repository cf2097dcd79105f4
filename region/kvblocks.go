package region

import (
	"cmp"
	"math/bits"
	"slices"
)

// KVBlock is one life of a block of KV-cache cells: from the first cell that
// was taken to the moment when the last one was given back. Times are ns of
// the run's clock.
type KVBlock struct {
	Block     uint32 // FirstCell / cells a block
	Life      uint32 // which life of the block, from 0
	FirstCell uint32
	Cells     uint32 // distinct cells taken in this life

	Seq      int32 // sequence of the first cell
	Mixed    bool  // cells of other sequences too
	FirstPos int32 // smallest and largest position
	LastPos  int32

	Allocated  uint64
	FirstWrite uint64 // times of writes, if Writes > 0
	LastWrite  uint64
	Writes     uint64 // cells written
	Rewritten  uint64 // of them, into a cell already written in this life
	FirstRead  uint64 // times of reads, if Reads > 0
	LastRead   uint64
	Reads      uint64 // calls of Read that touched the block
	Freed      uint64 // if not Live
	Live       bool   // not given back yet
}

// CellRange is a run of cells; End is exclusive.
type CellRange struct{ First, End uint32 }

// cellState is what is known of a cell.
type cellState struct {
	seq, pos int32
	used     bool
	life     uint32 // life of the block in which it was taken last, +1
	written  bool   // in that life
}

// openBlock is the present life of a block.
type openBlock struct {
	KVBlock
	used       uint32 // cells in use
	lives      uint32 // lives so far, the present one included
	readBase   uint64 // reads that covered the block before this life
	stampFloor uint64 // reads so far when this life began
	open       bool
}

// KVBlocks follows the life of the blocks of a KV cache, or of the part of one
// that a set of layers shares: which cells are taken, written, read and given
// back. Events come in order of time.
//
// An attention step reads every cell in use. Read therefore touches no cell
// and no block: it adds one to a range of a tree, and a block works out its
// reads when it ends. A call costs O(log blocks), and one word of a bitmap
// for 64 blocks while blocks wait for their first read. Not safe for concurrent use.
type KVBlocks struct {
	n      uint32
	cells  []cellState
	blocks []openBlock
	done   []KVBlock

	counts []uint64 // Fenwick tree over blocks: differences of reads
	stamps stampTree
	unread []uint64 // bitmap of open blocks that no read has touched
	waits  int      // bits in it
	reads  uint64   // calls of Read
}

// NewKVBlocks returns the state of an empty cache whose blocks have the given
// number of cells, at least 1.
func NewKVBlocks(blockCells int) *KVBlocks { return &KVBlocks{n: uint32(max(blockCells, 1))} }

// grow makes room for a cell.
func (k *KVBlocks) grow(c uint32) {
	if int(c) < len(k.cells) {
		return
	}
	blocks := (max(int(c)+1, 2*len(k.cells), 256) + int(k.n) - 1) / int(k.n)
	want := blocks * int(k.n) // whole blocks: a read may touch only the cells behind c
	k.cells = append(k.cells, make([]cellState, want-len(k.cells))...)
	old := make([]uint64, len(k.blocks))
	for b := range old {
		old[b] = k.covered(uint32(b))
	}
	k.blocks = append(k.blocks, make([]openBlock, blocks-len(k.blocks))...)
	k.unread = append(k.unread, make([]uint64, (blocks+63)/64-len(k.unread))...)
	k.counts = make([]uint64, blocks+2)
	for b, n := range old {
		k.addReads(uint32(b), n)
		k.addReads(uint32(b)+1, -n)
	}
	k.stamps.grow(blocks)
}

// Alloc takes a cell for a position of a sequence at time t. Taking a cell
// that is in use replaces what it held.
func (k *KVBlocks) Alloc(cell uint32, seq, pos int32, t uint64) {
	k.grow(cell)
	c, b := &k.cells[cell], &k.blocks[cell/k.n]
	if !b.open {
		index := cell / k.n
		b.KVBlock = KVBlock{Block: index, Life: b.lives, FirstCell: index * k.n, Seq: seq, FirstPos: pos, LastPos: pos, Allocated: t, Live: true}
		b.lives++
		b.open, b.used = true, 0
		b.readBase, b.stampFloor = k.covered(index), k.reads
		k.unread[index/64] |= 1 << (index % 64)
		k.waits++
	}
	if c.life != b.lives {
		c.life, c.written = b.lives, false
		b.Cells++
	}
	if !c.used {
		c.used = true
		b.used++
	}
	c.seq, c.pos = seq, pos
	b.Mixed = b.Mixed || seq != b.Seq
	b.FirstPos, b.LastPos = min(b.FirstPos, pos), max(b.LastPos, pos)
}

// Write enters a write to a cell at time t, and takes it first if it is free
// or held for another position.
func (k *KVBlocks) Write(cell uint32, seq, pos int32, t uint64) {
	k.grow(cell)
	if c := &k.cells[cell]; !c.used || c.seq != seq || c.pos != pos {
		k.Alloc(cell, seq, pos, t)
	}
	c, b := &k.cells[cell], &k.blocks[cell/k.n]
	if b.Writes == 0 {
		b.FirstWrite = t
	}
	if c.written {
		b.Rewritten++
	}
	c.written, b.LastWrite = true, t
	b.Writes++
}

// Read enters one read at time t of all cells in the given ranges, which are
// in order and disjoint. A block counts it once.
func (k *KVBlocks) Read(t uint64, ranges ...CellRange) {
	k.reads++
	next := uint32(0)
	for _, r := range ranges {
		end := uint32(min(uint64(r.End), uint64(len(k.cells))))
		if r.First >= end {
			continue
		}
		first, last := max(r.First/k.n, next), (end-1)/k.n+1
		if first >= last {
			continue
		}
		k.addReads(first, 1)
		k.addReads(last, ^uint64(0))
		k.stamps.set(first, last, stamp{k.reads, t})
		k.firstReads(first, last, t)
		next = last
	}
}

// firstReads tells the blocks of a range that wait for their first read.
func (k *KVBlocks) firstReads(first, last uint32, t uint64) {
	if k.waits == 0 {
		return
	}
	for w := first / 64; w <= (last-1)/64; w++ {
		word := k.unread[w]
		if w == first/64 {
			word &= ^uint64(0) << (first % 64)
		}
		if end := last - w*64; end < 64 {
			word &= 1<<end - 1
		}
		k.unread[w] &^= word
		k.waits -= bits.OnesCount64(word)
		for ; word != 0; word &= word - 1 {
			k.blocks[w*64+uint32(bits.TrailingZeros64(word))].FirstRead = t
		}
	}
}

// Free gives a cell back at time t; a cell that is free stays so.
func (k *KVBlocks) Free(cell uint32, t uint64) {
	if int(cell) >= len(k.cells) || !k.cells[cell].used {
		return
	}
	k.cells[cell].used = false
	b := &k.blocks[cell/k.n]
	if b.used--; b.used > 0 {
		return
	}
	k.settle(b)
	b.open, b.Live, b.Freed = false, false, t
	k.done = append(k.done, b.KVBlock)
	if bit := uint64(1) << (b.Block % 64); k.unread[b.Block/64]&bit != 0 {
		k.unread[b.Block/64] &^= bit
		k.waits--
	}
}

// FreeSeq gives back the cells of a sequence whose position is from first up
// to, not including, end; a negative seq is any sequence, a negative first or
// end leaves that side open.
func (k *KVBlocks) FreeSeq(seq, first, end int32, t uint64) {
	for i := range k.cells {
		if k.cells[i].in(seq, first, end) {
			k.Free(uint32(i), t)
		}
	}
}

// Shift adds delta to the positions of the same cells that [KVBlocks.FreeSeq]
// would free. A position that falls below 0 frees its cell, as in llama.cpp.
// What the engine rewrites for it comes as writes.
func (k *KVBlocks) Shift(seq, first, end, delta int32, t uint64) {
	for i := range k.cells {
		c := &k.cells[i]
		if !c.in(seq, first, end) {
			continue
		}
		if c.pos += delta; c.pos < 0 {
			k.Free(uint32(i), t)
			continue
		}
		b := &k.blocks[uint32(i)/k.n]
		b.FirstPos, b.LastPos = min(b.FirstPos, c.pos), max(b.LastPos, c.pos)
	}
}

// Clear gives back all cells.
func (k *KVBlocks) Clear(t uint64) { k.FreeSeq(-1, -1, -1, t) }

// in reports whether the cell is used by seq at a position in range.
func (c *cellState) in(seq, first, end int32) bool {
	return c.used && (seq < 0 || c.seq == seq) && (first < 0 || c.pos >= first) && (end < 0 || c.pos < end)
}

// settle works out the reads of a block's present life.
func (k *KVBlocks) settle(b *openBlock) {
	b.Reads = k.covered(b.Block) - b.readBase
	if s := k.stamps.get(b.Block); s.n > b.stampFloor {
		b.LastRead = s.t
	}
}

// Rows returns all lives in order of allocation, then of block. Those of live
// blocks are as of now; events may follow.
func (k *KVBlocks) Rows() []KVBlock {
	rows := slices.Clone(k.done)
	for i := range k.blocks {
		if b := &k.blocks[i]; b.open {
			k.settle(b)
			rows = append(rows, b.KVBlock)
		}
	}
	slices.SortStableFunc(rows, func(a, b KVBlock) int {
		return cmp.Or(cmp.Compare(a.Allocated, b.Allocated), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Life, b.Life))
	})
	return rows
}

// InUse returns how many cells are taken.
func (k *KVBlocks) InUse() int {
	n := 0
	for i := range k.blocks {
		if k.blocks[i].open {
			n += int(k.blocks[i].used)
		}
	}
	return n
}

package region

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/trace"
)

// plainBlocks is KVBlocks from the definition: every read visits every block.
type plainBlocks struct {
	n     uint32
	cells map[uint32]*plainCell
	open  map[uint32]*KVBlock
	taken map[uint32]map[uint32]bool // block -> cells taken in this life
	wrote map[uint32]map[uint32]bool
	lives map[uint32]uint32
	done  []KVBlock
}

type plainCell struct{ seq, pos int32 }

func (p *plainBlocks) alloc(c uint32, seq, pos int32, t uint64) {
	i := c / p.n
	b := p.open[i]
	if b == nil {
		b = &KVBlock{Block: i, Life: p.lives[i], FirstCell: i * p.n, Seq: seq, FirstPos: pos, LastPos: pos, Allocated: t, Live: true}
		p.open[i], p.taken[i], p.wrote[i] = b, map[uint32]bool{}, map[uint32]bool{}
		p.lives[i]++
	}
	p.taken[i][c] = true
	b.Cells = uint32(len(p.taken[i]))
	b.Mixed = b.Mixed || b.Seq != seq
	b.FirstPos, b.LastPos = min(b.FirstPos, pos), max(b.LastPos, pos)
	p.cells[c] = &plainCell{seq, pos}
}

func (p *plainBlocks) write(c uint32, seq, pos int32, t uint64) {
	if x := p.cells[c]; x == nil || x.seq != seq || x.pos != pos {
		p.alloc(c, seq, pos, t)
	}
	b := p.open[c/p.n]
	if b.Writes == 0 {
		b.FirstWrite = t
	}
	if p.wrote[c/p.n][c] {
		b.Rewritten++
	}
	p.wrote[c/p.n][c] = true
	b.LastWrite = t
	b.Writes++
}

func (p *plainBlocks) read(t uint64, ranges []CellRange) {
	for i, b := range p.open {
		hit := false
		for c := i * p.n; c < (i+1)*p.n; c++ {
			for _, r := range ranges {
				hit = hit || c >= r.First && c < r.End
			}
		}
		if !hit {
			continue
		}
		if b.Reads == 0 {
			b.FirstRead = t
		}
		b.LastRead = t
		b.Reads++
	}
}

func (p *plainBlocks) free(c uint32, t uint64) {
	if p.cells[c] == nil {
		return
	}
	delete(p.cells, c)
	i := c / p.n
	for d := i * p.n; d < (i+1)*p.n; d++ {
		if p.cells[d] != nil {
			return
		}
	}
	b := p.open[i]
	b.Live, b.Freed = false, t
	p.done = append(p.done, *b)
	delete(p.open, i)
}

// each calls f for the cells of seq at positions first to end, in order.
func (p *plainBlocks) each(seq, first, end int32, f func(uint32, *plainCell)) {
	var cells []uint32
	for c, x := range p.cells {
		if (seq < 0 || x.seq == seq) && (first < 0 || x.pos >= first) && (end < 0 || x.pos < end) {
			cells = append(cells, c)
		}
	}
	slices.Sort(cells)
	for _, c := range cells {
		f(c, p.cells[c])
	}
}

func (p *plainBlocks) rows() []KVBlock {
	rows := slices.Clone(p.done)
	for _, b := range p.open {
		rows = append(rows, *b)
	}
	slices.SortFunc(rows, func(a, b KVBlock) int {
		return cmp.Or(cmp.Compare(a.Allocated, b.Allocated), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Life, b.Life))
	})
	return rows
}

func TestKVBlocksAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "cells a block")
		k := NewKVBlocks(n)
		p := &plainBlocks{uint32(n), map[uint32]*plainCell{}, map[uint32]*KVBlock{}, map[uint32]map[uint32]bool{}, map[uint32]map[uint32]bool{}, map[uint32]uint32{}, nil}
		seq := rapid.Int32Range(0, 2)
		pos := rapid.Int32Range(0, 30)
		side := rapid.Int32Range(-1, 30)
		cell := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(0, 700))
		time := uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			time += rapid.Uint64Range(0, 2).Draw(t, "dt")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				c, s, x := cell.Draw(t, "cell"), seq.Draw(t, "seq"), pos.Draw(t, "pos")
				k.Alloc(c, s, x, time)
				p.alloc(c, s, x, time)
			case 1, 2, 3:
				c, s, x := cell.Draw(t, "cell"), seq.Draw(t, "seq"), pos.Draw(t, "pos")
				k.Write(c, s, x, time)
				p.write(c, s, x, time)
			case 4, 5:
				edges := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 800), 2, 6, rapid.ID).Draw(t, "edges")
				slices.Sort(edges)
				var ranges []CellRange
				for i := 0; i+1 < len(edges); i += 2 {
					ranges = append(ranges, CellRange{edges[i], edges[i+1]})
				}
				k.Read(time, ranges...)
				p.read(time, ranges)
			case 6:
				end := rapid.Uint32Range(0, 900).Draw(t, "end")
				k.Read(time, CellRange{0, end})
				p.read(time, []CellRange{{0, end}})
			case 7:
				c := cell.Draw(t, "cell")
				k.Free(c, time)
				p.free(c, time)
			case 8:
				s, a, b := seq.Draw(t, "seq")-1, side.Draw(t, "first"), side.Draw(t, "end")
				k.FreeSeq(s, a, b, time)
				p.each(s, a, b, func(c uint32, _ *plainCell) { p.free(c, time) })
			case 9:
				s, a, b, d := seq.Draw(t, "seq")-1, side.Draw(t, "first"), side.Draw(t, "end"), rapid.Int32Range(-9, 9).Draw(t, "delta")
				k.Shift(s, a, b, d, time)
				p.each(s, a, b, func(c uint32, x *plainCell) {
					if x.pos += d; x.pos < 0 {
						p.free(c, time)
						return
					}
					o := p.open[c/p.n]
					o.FirstPos, o.LastPos = min(o.FirstPos, x.pos), max(o.LastPos, x.pos)
				})
			}
			if len(p.cells) != k.InUse() {
				t.Fatalf("%d cells in use, want %d", k.InUse(), len(p.cells))
			}
			if rapid.IntRange(0, 5).Draw(t, "look") == 0 {
				if d := gocmp.Diff(p.rows(), k.Rows()); d != "" {
					t.Fatal(d)
				}
			}
		}
		time++
		k.Clear(time)
		p.each(-1, -1, -1, func(c uint32, _ *plainCell) { p.free(c, time) })
		if d := gocmp.Diff(p.rows(), k.Rows()); d != "" {
			t.Fatal(d)
		}
	})
}

// A read of the last block that does not touch the last cell taken.
func TestKVBlocksReadBehindTheLastCell(t *testing.T) {
	k := NewKVBlocks(2)
	k.Alloc(444, 0, 0, 1)
	k.Read(2, CellRange{445, 446})
	if r := k.Rows(); len(r) != 1 || r[0].Reads != 1 || r[0].FirstRead != 2 {
		t.Fatalf("%+v", r)
	}
}

// A decode of 8,192 tokens with 30 layers' worth of nothing but reads: the
// figures that a person can work out by hand.
func TestKVBlocksOfADecode(t *testing.T) {
	k := NewKVBlocks(16)
	for i := range uint32(8192) {
		k.Write(i, 0, int32(i), uint64(10*i))
		k.Read(uint64(10*i+5), CellRange{0, i + 1})
	}
	k.FreeSeq(0, 4096, -1, 100_000)
	rows := k.Rows()
	if len(rows) != 512 {
		t.Fatalf("%d blocks, want 512", len(rows))
	}
	want := KVBlock{Block: 300, FirstCell: 4800, Cells: 16, FirstPos: 4800, LastPos: 4815, Allocated: 48000, FirstWrite: 48000, LastWrite: 48150,
		Writes: 16, FirstRead: 48005, LastRead: 81915, Reads: 8192 - 4800, Freed: 100_000}
	if d := gocmp.Diff(want, rows[300]); d != "" {
		t.Error(d)
	}
	row := rows[300].Row(7, 1<<20, 100)
	if w := (trace.KVBlockRow{BlockID: 7, Address: 1<<20 + 480000, AddressPage: (1<<20 + 480000) >> 12, WriteNS: 48000, LastReadNS: 81915,
		EvictNS: 100_000, Evicted: true, TotalReads: 8192 - 4800, LifetimeNS: 52000}); row != w {
		t.Errorf("row %+v, want %+v", row, w)
	}
	if row := rows[0].Row(1, 0, 1); row.Evicted || row.LifetimeNS != 81915 {
		t.Errorf("row of a live block: %+v", row)
	}
	if !rows[255].Live || rows[255].Reads != 8192-255*16 {
		t.Errorf("block 255: %+v", rows[255])
	}
}

// One decode step on a cache of the given size: a write and a read of it all.
func BenchmarkKVStep(b *testing.B) {
	const cells = 1 << 17
	k := NewKVBlocks(16)
	for i := range uint32(cells) {
		k.Write(i, 0, int32(i), uint64(i))
	}
	t := uint64(cells)
	b.ReportAllocs()
	for b.Loop() {
		t++
		k.Write(uint32(t)%cells, 0, int32(t), t)
		k.Read(t, CellRange{0, cells - 8})
	}
}

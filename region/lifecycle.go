package region

import "github.com/tierscope/tierscope/trace"

// kvEntry is what is known of one KV page.
type kvEntry struct {
	id                     uint32
	written, evicted       bool
	address, page          uint64
	write, lastRead, evict uint64
	reads                  uint64
}

// record enters a KV access in the life of its page.
func (l *Labeller) record(r row, p *page, id uint32) {
	if p.block == 0 {
		l.blocks = append(l.blocks, kvEntry{id: id, address: r.address, page: r.page})
		p.block = int32(len(l.blocks))
	}
	e := &l.blocks[p.block-1]
	switch {
	case !r.store:
		e.reads++
		e.lastRead = max(e.lastRead, r.time)
	case !e.written:
		e.written, e.write = true, r.time
	case !e.evicted && r.time != e.write:
		e.evicted, e.evict = true, r.time
	}
}

// Map returns the region map in order of first appearance. Unknown rows make
// no region.
func (l *Labeller) Map() []trace.RegionRow {
	rows := make([]trace.RegionRow, 0, len(l.regions))
	add := func(i int) {
		s := l.regions[i]
		t := l.typeOf(s.typ)
		rows = append(rows, trace.RegionRow{RegionID: uint32(i + 1), RegionType: t.Name, NoType: t.Null, PageMin: s.pageMin, PageMax: s.pageMax,
			FirstSeenNS: s.first, LastSeenNS: s.last, AccessCount: s.count})
	}
	for i := 1; i < len(l.regions); i++ {
		if l.weights == i-1 {
			add(0)
		}
		add(i)
	}
	if l.weights == len(l.regions)-1 {
		add(0)
	}
	return rows
}

// Lifecycle returns mrm-trace's life cycle of KV blocks, one row for each page
// that was labelled KV, in order of first appearance. The block id is the region
// of the page's first access. The first store is the write, the first later one
// at another time the eviction, whatever came between. The lifetime is from the
// write to the eviction, else to the last read, not below 0.
func (l *Labeller) Lifecycle() []trace.KVBlockRow {
	rows := make([]trace.KVBlockRow, 0, len(l.blocks))
	for _, e := range l.blocks {
		r := trace.KVBlockRow{BlockID: e.id, Address: e.address, AddressPage: e.page, WriteNS: e.write, LastReadNS: e.lastRead,
			EvictNS: e.evict, Evicted: e.evicted, TotalReads: e.reads}
		end := e.write
		if e.lastRead != 0 {
			end = e.lastRead
		}
		if e.evict != 0 {
			end = e.evict
		}
		if end > e.write {
			r.LifetimeNS = end - e.write
		}
		rows = append(rows, r)
	}
	return rows
}

// Row returns a block of ours as a row of the compatible life cycle. Cells lie
// cellBytes apart from base on; id is the row's block id. Being given back is
// the eviction. The lifetime of a block that was never written is 0.
func (b *KVBlock) Row(id uint32, base, cellBytes uint64) trace.KVBlockRow {
	r := trace.KVBlockRow{BlockID: id, Address: base + uint64(b.FirstCell)*cellBytes, WriteNS: b.FirstWrite, LastReadNS: b.LastRead, TotalReads: b.Reads}
	r.AddressPage = r.Address >> pageShift
	end := max(b.LastRead, b.FirstWrite)
	if !b.Live {
		r.EvictNS, r.Evicted, end = b.Freed, true, b.Freed
	}
	if b.Writes > 0 && end > r.WriteNS {
		r.LifetimeNS = end - r.WriteNS
	}
	return r
}

package mrm

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/tierscope/tierscope/internal/spill"
)

// digest works partitions off: it groups their rows by address and fills in
// what regions have of stores and pages, and the intervals of the types.
type digest struct {
	s     *State
	types []intervals
	rows  int // rows of a partition that are taken into memory at once

	addrs groups
	pages set
	buf   []record
	gid   []uint32
	time  []uint64
	bits  []uint32
	slow  []access
}

// intervals are the distances in time between accesses of one address, pooled
// over a region type.
type intervals struct {
	log          spill.Log[uint64]
	sumHi, sumLo uint64
}

type access struct {
	time uint64
	lab  label
	bits uint32
}

// recordBytes is about what a row of a partition takes while it is worked on.
const recordBytes = 80

func (s *State) newDigest() *digest {
	d := &digest{s: s, types: make([]intervals, s.labels.types.Len())}
	for i := range d.types {
		d.types[i].log = spill.NewLog[uint64](s.store)
	}
	d.rows = int(min(max(s.opt.Memory/4/recordBytes, 1024), 1<<30))
	return d
}

// partition works off a log whose rows agree in the hash bits above level.
func (d *digest) partition(l *spill.Log[record], level uint) error {
	if d.s.opt.Check != nil {
		if err := d.s.opt.Check(); err != nil {
			return err
		}
	}
	n := int(l.Len())
	if n == 0 {
		return nil
	}
	if n > d.rows {
		one, err := onePage(l)
		if err != nil {
			return err
		}
		if one || level >= 60/partBits {
			return d.sorted(l)
		}
		return d.split(l, level)
	}
	d.buf = slices.Grow(d.buf[:0], n)
	err := d.s.eachRecord(l, func(recs []record) error { d.buf = append(d.buf, recs...); return nil })
	if err != nil {
		return err
	}
	l.Free()
	d.group()
	return d.spillOver()
}

// spillOver moves the intervals to the file if too much is held.
func (d *digest) spillOver() error {
	for i := 0; i < len(d.types) && d.s.store.Over(); i++ {
		if err := d.types[i].log.Spill(true); err != nil {
			return err
		}
	}
	return nil
}

var errDone = errors.New("done")

// onePage reports whether all rows of a log are of one page.
func onePage(l *spill.Log[record]) (bool, error) {
	var page uint64
	begun := false
	err := l.Each(func(_ int32, recs []record) error {
		for i := range recs {
			if p := recs[i].page(); !begun {
				page, begun = p, true
			} else if p != page {
				return errDone
			}
		}
		return nil
	})
	if err == errDone {
		return false, nil
	}
	return err == nil, err
}

// split cuts a log by the next bits of the hash.
func (d *digest) split(l *spill.Log[record], level uint) error {
	var sub [parts]spill.Log[record]
	for i := range sub {
		sub[i] = spill.NewLog[record](d.s.store)
	}
	err := d.s.eachRecord(l, func(recs []record) error {
		for _, r := range recs {
			sub[r.page()*0x9E3779B97F4A7C15<<(level*partBits)>>(64-partBits)].Append(r)
		}
		for i := 0; i < parts && d.s.store.Over(); i++ {
			if err := sub[i].Spill(true); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.Free()
	for i := range sub {
		if err := d.partition(&sub[i], level+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *record) page() uint64 {
	if r.bits&opMask == opPage {
		return r.addr
	}
	return r.addr >> 12
}

// eachRecord calls f with the records of a log; their labels are the state's.
func (s *State) eachRecord(l *spill.Log[record], f func([]record) error) error {
	var buf []record
	return l.Each(func(tag int32, recs []record) error {
		if m := s.runs[tag].labels; m != nil {
			buf = append(buf[:0], recs...)
			for i := range buf {
				b := &buf[i].bits
				*b = m[*b>>labelShift]<<labelShift | *b&(1<<labelShift-1)
			}
			recs = buf
		}
		return f(recs)
	})
}

// group works off the rows in buf.
func (d *digest) group() {
	n := len(d.buf)
	d.addrs.reset()
	d.pages.reset()
	d.gid = slices.Grow(d.gid[:0], n)[:n]
	d.time = slices.Grow(d.time[:0], n)[:n]
	d.bits = slices.Grow(d.bits[:0], n)[:n]
	for i := range d.buf {
		r := &d.buf[i]
		if r.bits&opMask == opPage {
			d.gid[i] = 0
			d.page(r.addr, d.s.labels.list[r.bits>>labelShift])
			continue
		}
		g := d.addrs.of(r.addr)
		d.addrs.list[g].n++
		d.gid[i] = g
	}
	at := uint32(0)
	for i := range d.addrs.list {
		g := &d.addrs.list[i]
		g.n, at = at, at+g.n
	}
	for i := range d.buf {
		g := d.gid[i]
		if g == 0 {
			continue
		}
		k := d.addrs.list[g].n
		d.addrs.list[g].n++
		d.time[k], d.bits[k] = d.buf[i].time, d.buf[i].bits
	}
	// A group's n is now its end.
	start := uint32(0)
	for i := 1; i < len(d.addrs.list); i++ {
		g := &d.addrs.list[i]
		d.address(g.addr>>12, d.time[start:g.n], d.bits[start:g.n])
		start = g.n
	}
}

// address works off the rows of one address, in the order in which they came.
func (d *digest) address(page uint64, time []uint64, bs []uint32) {
	first := bs[0] >> labelShift
	stores := uint64(0)
	prev := time[0]
	for i, b := range bs {
		if b>>labelShift != first || b&(flagNoTime|flagNoPage) != 0 || time[i] < prev {
			d.mixed(page, time, bs)
			return
		}
		prev = time[i]
		if b&opMask == opStore {
			stores++
		}
	}
	lab := d.s.labels.list[first]
	if lab.region >= 0 {
		if stores > 0 {
			r := &d.s.regions[lab.region]
			r.written++
			if stores == 1 {
				r.once++
			}
		}
		d.page(page, lab)
	}
	if lab.typ >= 0 && len(time) > 1 && d.s.want&InterAccess != 0 {
		t := &d.types[lab.typ]
		for i := 1; i < len(time); i++ {
			t.add(time[i] - time[i-1])
		}
	}
}

// add takes a distance in time. Like mrm-trace it takes times as signed.
func (t *intervals) add(v uint64) {
	if int64(v) <= 0 {
		return
	}
	t.log.Append(v)
	var carry uint64
	t.sumLo, carry = bits.Add64(t.sumLo, v, 0)
	t.sumHi += carry
}

// mixed is address for rows of several labels, out of order or with gaps.
func (d *digest) mixed(page uint64, time []uint64, bs []uint32) {
	list := d.s.labels.list
	d.slow = d.slow[:0]
	for i, b := range bs {
		d.slow = append(d.slow, access{time[i], list[b>>labelShift], b})
	}
	slices.SortFunc(d.slow, func(a, b access) int { return cmp.Compare(a.lab.region, b.lab.region) })
	for i := 0; i < len(d.slow); {
		reg, stores, paged := d.slow[i].lab.region, 0, false
		for ; i < len(d.slow) && d.slow[i].lab.region == reg; i++ {
			if d.slow[i].bits&opMask == opStore {
				stores++
			}
			paged = paged || d.slow[i].bits&flagNoPage == 0
		}
		if reg < 0 {
			continue
		}
		if stores > 0 {
			d.s.regions[reg].written++
			if stores == 1 {
				d.s.regions[reg].once++
			}
		}
		if paged {
			d.page(page, label{region: reg})
		}
	}
	d.slow = slices.DeleteFunc(d.slow, func(a access) bool { return a.lab.typ < 0 || a.bits&flagNoTime != 0 })
	slices.SortFunc(d.slow, func(a, b access) int {
		if a.lab.typ != b.lab.typ {
			return cmp.Compare(a.lab.typ, b.lab.typ)
		}
		return cmp.Compare(a.time, b.time)
	})
	for i := 1; i < len(d.slow); i++ {
		if t := d.slow[i].lab.typ; t == d.slow[i-1].lab.typ && d.s.want&InterAccess != 0 {
			d.types[t].add(d.slow[i].time - d.slow[i-1].time)
		}
	}
}

// page counts a page of a region, once.
func (d *digest) page(page uint64, lab label) {
	if lab.region >= 0 && d.pages.add(page, uint32(lab.region)) {
		d.s.regions[lab.region].pages++
	}
}

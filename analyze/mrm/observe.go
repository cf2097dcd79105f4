package mrm

import "github.com/tierscope/tierscope/observe"

// input is what a state keeps between batches to read columns quickly.
type input struct {
	time, addr, page buf64
	lab              [blockLen]uint32

	typeDict, opDict *observe.Dict
	typeOf           []int32 // own number by code of typeDict
	opOf             []uint32

	lastKey uint64
	lastLab uint32
}

// buf64 is a column as a slice.
type buf64 struct {
	v   []uint64
	own []uint64 // memory of ours, for columns that have none
}

func (b *buf64) load(c *observe.Column[uint64], n int) {
	b.v = c.Slice(b.own, n)
	if c.Form != observe.Slice {
		b.own = b.v
	}
}

// Observe implements [github.com/tierscope/tierscope/analyze.Analysis].
func (s *State) Observe(b *observe.Batch) error {
	in := &s.in
	in.dicts(s, b)
	in.time.load(&b.Time, b.Len)
	in.addr.load(&b.Address, b.Len)
	if b.AddressPage.Form != observe.Absent {
		in.page.load(&b.AddressPage, b.Len)
	}
	plain := !b.Time.HasNulls() && !b.Address.HasNulls() &&
		(b.AddressPage.Form == observe.Absent || !b.AddressPage.HasNulls())
	for lo := 0; lo < b.Len; lo += blockLen {
		hi := min(lo+blockLen, b.Len)
		if !s.fits(hi - lo) {
			s.nextRun()
		}
		if err := s.label(b, lo, hi); err != nil {
			return err
		}
		if plain {
			s.plain(b, lo, hi)
		} else {
			s.gappy(b, lo, hi)
		}
		s.rows += uint64(hi - lo)
		if s.store.Over() {
			if err := s.spillOver(); err != nil {
				return err
			}
		}
	}
	return nil
}

// dicts brings the tables by dictionary code up to date.
func (in *input) dicts(s *State, b *observe.Batch) {
	if d := b.RegionType.Dict; d != nil {
		if d != in.typeDict {
			in.typeDict, in.typeOf = d, in.typeOf[:0]
		}
		for c := len(in.typeOf); c < d.Len(); c++ {
			in.typeOf = append(in.typeOf, int32(s.labels.types.Code(d.String(uint32(c)))))
		}
	}
	if d := b.OpType.Dict; d != nil {
		if d != in.opDict {
			in.opDict, in.opOf = d, in.opOf[:0]
		}
		for c := len(in.opOf); c < d.Len(); c++ {
			op := uint32(opOther)
			switch d.String(uint32(c)) {
			case observe.Load:
				op = opLoad
			case observe.Store:
				op = opStore
			}
			in.opOf = append(in.opOf, op)
		}
	}
}

// label fills in.lab with label and operation of rows lo to hi.
func (s *State) label(b *observe.Batch, lo, hi int) error {
	in := &s.in
	lab := in.lab[:hi-lo]
	typ, id, op := &b.RegionType.Column, &b.RegionID, &b.OpType.Column
	constant := (typ.Form == observe.Const || typ.Form == observe.Absent) && typ.Nulls == nil &&
		(id.Form == observe.Const || id.Form == observe.Absent) && id.Nulls == nil
	noIDs, noTypes := id.HasNulls(), typ.HasNulls()
	for i := range lab {
		row := lo + i
		if constant && i > 0 {
			lab[i] = lab[0]
		} else {
			t, r := int32(-1), uint64(noRegion)
			if !noTypes || !typ.Null(row) {
				t = in.typeOf[typ.At(row)]
			}
			if !noIDs || !id.Null(row) {
				r = uint64(id.At(row))
			}
			key := pairKey(r, t)
			if key != in.lastKey {
				l, fresh, err := s.labels.of(r, t)
				if err != nil {
					return err
				}
				if fresh {
					s.regions = append(s.regions, newRegion(uint32(r), t))
				}
				in.lastKey, in.lastLab = key, l<<labelShift
				if g := s.labels.list[l].region; g >= 0 && s.regions[g].typ < 0 {
					s.regions[g].typ = t
				}
			}
			lab[i] = in.lastLab
		}
		switch l := s.labels.list[lab[i]>>labelShift]; {
		case l.region < 0:
			s.notes.noRegion++
		case l.typ < 0:
			s.notes.noType++
		}
	}
	noOps := op.HasNulls()
	for i := range lab {
		row := lo + i
		o := uint32(opNone)
		if !noOps || !op.Null(row) {
			o = in.opOf[op.At(row)]
		}
		switch o {
		case opNone:
			s.notes.noOp++
		case opOther:
			s.notes.otherOp++
		}
		lab[i] |= o
	}
	return nil
}

// plain takes rows that have time, address and page.
func (s *State) plain(b *observe.Batch, lo, hi int) {
	in := &s.in
	time, addr := in.time.v[lo:hi], in.addr.v[lo:hi]
	page := in.page.v
	if b.AddressPage.Form == observe.Absent {
		page = nil
	} else {
		page = page[lo:hi]
	}
	seq := s.seq(s.opt.FirstRow + s.rows)
	list, logged := s.labels.list, s.want&forLogs != 0
	for i, l := range in.lab[:hi-lo] {
		t, a := time[i], addr[i]
		natural := a >> 12
		p := natural
		if page != nil {
			p = page[i]
		}
		lb := list[l>>labelShift]
		if lb.region >= 0 {
			r := &s.regions[lb.region]
			r.count(l&opMask, t, lb.typ)
			s.step(uint32(lb.region), r, point{t, a, p})
		}
		if !logged {
			continue
		}
		if l&opMask == opNone {
			l ^= opNone ^ opOther
		}
		if p != natural {
			s.logs[partOf(p)].Append(record{p, t, l | opPage, seq + uint32(i)})
			l |= flagNoPage
		}
		s.logs[partOf(natural)].Append(record{a, t, l, seq + uint32(i)})
	}
}

// gappy takes rows that may lack time, address or page.
func (s *State) gappy(b *observe.Batch, lo, hi int) {
	in := &s.in
	derived, logged := b.AddressPage.Form == observe.Absent, s.want&forLogs != 0
	seq := s.seq(s.opt.FirstRow + s.rows)
	for i, l := range in.lab[:hi-lo] {
		row := lo + i
		noTime, noAddr := b.Time.Null(row), b.Address.Null(row)
		t, a := in.time.v[row], in.addr.v[row]
		p, noPage := a>>12, derived || b.AddressPage.Null(row)
		if !noPage {
			p = in.page.v[row]
		}
		if noTime {
			s.notes.noTime++
			t = 0
		}
		if noAddr {
			s.notes.noAddress++
		}
		lb := s.labels.list[l>>labelShift]
		if lb.region >= 0 {
			r := &s.regions[lb.region]
			if noTime {
				r.countUntimed(l & opMask)
			} else {
				r.count(l&opMask, t, lb.typ)
			}
			if !noTime && !noAddr {
				s.step(uint32(lb.region), r, point{t, a, p})
			}
		}
		if !logged {
			continue
		}
		if l&opMask == opNone {
			l ^= opNone ^ opOther
		}
		if noTime {
			l |= flagNoTime
		}
		odd := p != a>>12
		if noAddr && !noPage || odd {
			s.logs[partOf(p)].Append(record{p, t, l | opPage, seq + uint32(i)})
		}
		if !noAddr {
			if odd {
				l |= flagNoPage
			}
			s.logs[partOf(a>>12)].Append(record{a, t, l, seq + uint32(i)})
		}
	}
}

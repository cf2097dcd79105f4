package mrm

import (
	"cmp"
	"slices"

	"github.com/tierscope/tierscope/internal/spill"
)

// visit is a row of a region that is to be taken in order of time.
type visit struct {
	time, seq uint64
	place     uint64 // address; page if it is only that
	region    uint32
	bits      uint32
}

// byTime orders visits by region, time and row; a page comes right before the row
// that it belongs to.
func byTime(a, b visit) int {
	switch {
	case a.region != b.region:
		return cmp.Compare(a.region, b.region)
	case a.time != b.time:
		return cmp.Compare(a.time, b.time)
	case a.seq != b.seq:
		return cmp.Compare(a.seq, b.seq)
	}
	return cmp.Compare(b.bits&opMask, a.bits&opMask)
}

// reorder takes the rows of regions that came out of order once more, by time.
func (s *State) reorder() error {
	any := false
	for i := range s.regions {
		r := &s.regions[i]
		if !r.disordered {
			continue
		}
		any = true
		r.n, r.same, r.sumLo, r.sumHi, r.shared = 0, 0, 0, 0, 0
		if r.own != nil {
			r.own.Free()
		}
	}
	if !any {
		return nil
	}
	// What the shared logs hold of these regions so far no longer counts.
	s.nextRun()
	s.reordered = int32(len(s.runs) - 1)
	sorter := spill.NewSorter(s.store, s.opt.Memory/4, byTime)
	for i := range s.logs {
		if s.opt.Check != nil {
			if err := s.opt.Check(); err != nil {
				return err
			}
		}
		err := s.eachVisit(&s.logs[i], sorter.Add)
		if err != nil {
			return err
		}
	}
	var page visit
	return sorter.Each(func(v visit) error {
		if v.bits&opMask == opPage {
			page = v
			return nil
		}
		p := point{time: v.time, addr: v.place, page: v.place >> 12}
		if v.bits&flagNoPage != 0 {
			p.page = page.place
		}
		r := &s.regions[v.region]
		if r.n++; r.n == 1 {
			r.last = p
			return nil
		}
		s.pair(v.region, r, p)
		if r.n%blockLen == 0 && s.store.Over() {
			return s.spillOver()
		}
		return nil
	})
}

// eachVisit calls f with the rows of a log that belong to disordered regions.
func (s *State) eachVisit(l *spill.Log[record], f func(visit) error) error {
	return l.Each(func(tag int32, recs []record) error {
		run := &s.runs[tag]
		for i := range recs {
			r := &recs[i]
			lab := r.bits >> labelShift
			if run.labels != nil {
				lab = run.labels[lab]
			}
			g := s.labels.list[lab].region
			if g < 0 || r.bits&flagNoTime != 0 || !s.regions[g].disordered {
				continue
			}
			err := f(visit{r.time, run.base + uint64(r.seq), r.addr, uint32(g), r.bits & (1<<labelShift - 1)})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// medians returns the median distance of each region, with the halves added in
// doubles as numpy does.
func (s *State) medians() ([]float64, error) {
	out := make([]float64, len(s.regions))
	var members [strideLogs][]uint32
	pos := make([]uint32, len(s.regions))
	for i := range s.regions {
		lane := s.regions[i].lane
		pos[i] = uint32(len(members[lane]))
		members[lane] = append(members[lane], uint32(i))
	}
	for i := range s.strides {
		if s.opt.Check != nil {
			if err := s.opt.Check(); err != nil {
				return nil, err
			}
		}
		if err := s.sharedMedians(&s.strides[i], members[i], pos, out); err != nil {
			return nil, err
		}
		s.strides[i].Free()
	}
	for i := range s.regions {
		r := &s.regions[i]
		if r.own == nil || r.own.Len() == 0 {
			continue
		}
		m := r.own.Len()
		v, err := spill.Select(r.own, []uint64{(m - 1) / 2, m / 2})
		if err != nil {
			return nil, err
		}
		out[i] = middle(v[0], v[1], m)
		r.own.Free()
	}
	return out, nil
}

func middle(a, b, n uint64) float64 {
	if n%2 == 1 {
		return float64(unorder(a))
	}
	return (float64(unorder(a)) + float64(unorder(b))) / 2
}

// sharedMedians takes the distances of a shared log: as many regions at a time as
// memory holds. Regions with a log of their own get the rest of their distances.
func (s *State) sharedMedians(log *spill.Log[stride], members, pos []uint32, out []float64) error {
	room := max(uint64(s.opt.Memory/4/8), 1<<10)
	var at []uint64 // where the next distance of a region goes
	var buf []uint64
	for from := 0; from < len(members); {
		at = at[:0]
		total, to := uint64(0), from
		for ; to < len(members); to++ {
			n := s.regions[members[to]].shared
			if to > from && total+n > room {
				break
			}
			at = append(at, total)
			total += n
		}
		if total == 0 {
			from = to
			continue
		}
		buf = slices.Grow(buf[:0], int(total))[:total]
		err := log.Each(func(tag int32, recs []stride) error {
			m := s.runs[tag].regions
			for _, r := range recs {
				i := r.region
				if m != nil {
					i = m[i]
				}
				k := int(pos[i])
				if k < from || k >= to || tag < s.reordered && s.regions[i].disordered {
					continue
				}
				buf[at[k-from]] = uint64(r.hi)<<32 | uint64(r.lo)
				at[k-from]++
			}
			return nil
		})
		if err != nil {
			return err
		}
		begin := uint64(0)
		for k, i := range members[from:to] {
			vals := buf[begin:at[k]]
			begin = at[k]
			if len(vals) == 0 {
				continue
			}
			if own := s.regions[i].own; own != nil {
				for _, v := range vals {
					own.Append(v)
				}
				continue
			}
			n := len(vals)
			a, b := nth2(vals, (n-1)/2, n/2)
			out[i] = middle(a, b, uint64(n))
		}
		if err := s.spillOver(); err != nil {
			return err
		}
		from = to
	}
	return nil
}

package mrm

import (
	"math/bits"

	"github.com/tierscope/tierscope/internal/spill"
	"github.com/tierscope/tierscope/run"
)

// Follow appends next, the state of the rows right behind those of s, so that s
// is as if it had seen them itself. It takes over what next spilled; next must
// not be used afterwards. A state of other rows or other metrics is an error, and
// both remain as they were.
func (s *State) Follow(next *State) error {
	end := s.opt.FirstRow + s.rows
	if next.opt.FirstRow != end {
		return run.Errorf(run.Invalid, "state of rows from %d does not follow one that ends before row %d", next.opt.FirstRow, end)
	}
	if next.want != s.want {
		return run.Errorf(run.Invalid, "state of metrics %v does not follow one of %v", next.want, s.want)
	}
	typ := make([]int32, next.labels.types.Len())
	for i := range typ {
		typ[i] = int32(s.labels.types.Code(next.labels.types.String(uint32(i))))
	}
	mapType := func(t int32) int32 {
		if t < 0 {
			return t
		}
		return typ[t]
	}
	lab := make([]uint32, len(next.labels.list))
	reg := make([]uint32, len(next.regions))
	for i, l := range next.labels.list {
		id := uint64(noRegion)
		if l.region >= 0 {
			id = uint64(next.labels.ids[l.region])
		}
		v, fresh, err := s.labels.of(id, mapType(l.typ))
		if err != nil {
			return err
		}
		if fresh {
			s.regions = append(s.regions, newRegion(uint32(id), -1))
		}
		lab[i] = v
		if l.region >= 0 {
			reg[l.region] = uint32(s.labels.list[v].region)
		}
	}

	shift := int32(len(s.runs))
	for _, r := range next.runs {
		r.labels, r.regions = chain(r.labels, lab), chain(r.regions, reg)
		s.runs = append(s.runs, r)
	}
	for i := range s.logs {
		s.logs[i].Adopt(&next.logs[i], shift)
	}
	for i := range s.strides {
		s.strides[i].Adopt(&next.strides[i], shift)
	}
	// Distances across the seam are of this state.
	s.rows += next.rows
	s.nextRun()
	for i := range next.regions {
		r := next.regions[i]
		r.typ, r.minType = mapType(r.typ), mapType(r.minType)
		s.follow(reg[i], &r)
	}
	s.notes.add(&next.notes)
	s.also = append(append(s.also, next.store), next.also...)
	next.store, next.also = spill.NewStore("", 0), nil
	s.in.lastKey = 0
	return s.spillOver()
}

// chain returns the table that first maps by a and then by b.
func chain(a, b []uint32) []uint32 {
	if a == nil {
		return b
	}
	out := make([]uint32, len(a))
	for i, v := range a {
		out[i] = b[v]
	}
	return out
}

// follow appends region o to region i.
func (s *State) follow(i uint32, o *region) {
	r := &s.regions[i]
	if o.timed && (!r.timed || o.minTime < r.minTime) {
		r.minTime, r.minType, r.timed = o.minTime, o.minType, true
	}
	if r.typ < 0 {
		r.typ = o.typ
	}
	r.firstStore = min(r.firstStore, o.firstStore)
	r.lastLoad = max(r.lastLoad, o.lastLoad)
	r.loads += o.loads
	r.stores += o.stores
	r.others += o.others
	r.untimedLoads += o.untimedLoads
	r.untimedStores += o.untimedStores

	r.shared += o.shared
	switch {
	case o.own == nil:
	case r.own == nil:
		own := spill.NewLog[uint64](s.store)
		own.Adopt(o.own, 0)
		r.own = &own
	default:
		r.own.Adopt(o.own, 0)
	}
	if o.n == 0 {
		return
	}
	if r.n == 0 {
		r.disordered, r.n, r.head, r.last = o.disordered, o.n, o.head, o.last
		r.same, r.sumLo, r.sumHi = o.same, o.sumLo, o.sumHi
		return
	}
	r.n += o.n
	if r.disordered || o.disordered || o.head.time < r.last.time {
		r.disordered = true
		return
	}
	if s.want&Locality != 0 {
		s.pair(i, r, o.head)
	}
	r.last = o.last
	r.same += o.same
	var carry uint64
	r.sumLo, carry = bits.Add64(r.sumLo, o.sumLo, 0)
	r.sumHi += o.sumHi + int64(carry)
}

func (n *notes) add(o *notes) {
	n.noRegion += o.noRegion
	n.noType += o.noType
	n.noTime += o.noTime
	n.noAddress += o.noAddress
	n.otherOp += o.otherOp
	n.noOp += o.noOp
}

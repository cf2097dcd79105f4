package mrm

import (
	"math"
	"math/bits"

	"github.com/tierscope/tierscope/internal/spill"
)

// region is what is known of a region.
type region struct {
	// Commuting.
	firstStore, lastLoad uint64
	minTime              uint64
	loads, stores        uint64
	others               uint64 // operations that are neither, but there
	untimedLoads         uint64 // loads and stores without time
	untimedStores        uint64
	timed                bool  // some row has a time
	typ                  int32 // first type in file order, -1 if none
	minType              int32 // type of the earliest row

	// Following: distances between rows by time.
	disordered bool // rows came against time; the logs are needed
	n          uint64
	head, last point
	same       uint64 // pairs on one page
	sumLo      uint64 // sum of the distances, 128 bits
	sumHi      int64
	shared     uint64 // distances in the shared log
	lane       uint32 // which one
	own        *spill.Log[uint64]

	// Filled by partitions.
	written, once, pages uint64
}

// point is a row that can have a distance to another.
type point struct {
	time, addr, page uint64
}

func newRegion(id uint32, typ int32) region {
	return region{lane: id % strideLogs, firstStore: math.MaxUint64, minTime: math.MaxUint64, typ: typ, minType: -1}
}

// count takes an operation at a time.
func (r *region) count(op uint32, t uint64, typ int32) {
	switch op {
	case opLoad:
		r.loads++
		r.lastLoad = max(r.lastLoad, t)
	case opStore:
		r.stores++
		r.firstStore = min(r.firstStore, t)
	case opOther:
		r.others++
	}
	if t < r.minTime || !r.timed {
		r.minTime, r.minType, r.timed = t, typ, true
	}
}

// countUntimed takes an operation without time.
func (r *region) countUntimed(op uint32) {
	switch op {
	case opLoad:
		r.loads++
		r.untimedLoads++
	case opStore:
		r.stores++
		r.untimedStores++
	case opOther:
		r.others++
	}
}

// distance returns how far b is from a, as mrm-trace has it: signed 64-bit
// difference without its sign, so that it wraps and can be -2^63.
func distance(a, b uint64) int64 {
	d := int64(b - a)
	if d < 0 {
		d = -d
	}
	return d
}

func (r *region) add(d int64) {
	var carry uint64
	r.sumLo, carry = bits.Add64(r.sumLo, uint64(d), 0)
	r.sumHi += d>>63 + int64(carry)
}

func (r *region) meanStride() float64 {
	lo, hi := r.sumLo, r.sumHi
	neg := hi < 0
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi = -hi - int64(borrow)
	}
	sum := float64(hi)*(1<<64) + float64(lo)
	if neg {
		sum = -sum
	}
	return sum / float64(r.n-1)
}

// order is the order of distances: that of signed numbers.
func order(d int64) uint64   { return uint64(d) ^ 1<<63 }
func unorder(u uint64) int64 { return int64(u ^ 1<<63) }

// logStride keeps a distance for the median.
func (s *State) logStride(i uint32, r *region, d int64) {
	if r.own != nil {
		r.own.Append(order(d))
		return
	}
	u := order(d)
	s.strides[r.lane].Append(stride{i, uint32(u), uint32(u >> 32)})
	if r.shared++; r.shared >= ownStrides {
		own := spill.NewLog[uint64](s.store)
		r.own = &own
	}
}

// step takes the next row of a region that has a time and an address.
func (s *State) step(i uint32, r *region, p point) {
	if r.n++; r.n == 1 {
		r.head, r.last = p, p
		return
	}
	if p.time < r.last.time {
		r.disordered = true
	}
	if r.disordered || s.want&Locality == 0 {
		return
	}
	s.pair(i, r, p)
}

// pair takes the distance from the last row to p.
func (s *State) pair(i uint32, r *region, p point) {
	d := distance(r.last.addr, p.addr)
	r.add(d)
	if p.page == r.last.page {
		r.same++
	}
	s.logStride(i, r, d)
	r.last = p
}

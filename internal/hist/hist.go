// Package hist counts non-negative integers in buckets of equal relative width.
package hist

import "math/bits"

const (
	subBits = 5
	sub     = 1 << subBits
	buckets = (64 - subBits + 1) * sub
)

// RelativeError bounds how far a quantile lies from the value that holds the
// rank: half a bucket.
const RelativeError = 1.0 / (2 * sub)

// Hist is a histogram with exact integer counts. Values below 32 have buckets of
// their own; above, each power of two has 32. The zero value is empty. Not safe for
// concurrent use.
type Hist struct {
	counts []uint64
	total  uint64
	max    uint64
	min    uint64
}

func bucket(v uint64) int {
	if v < sub {
		return int(v)
	}
	e := bits.Len64(v) - 1 - subBits
	return (e+1)*sub + int(v>>e) - sub
}

// bounds returns the smallest and largest value of bucket i.
func bounds(i int) (lo, hi uint64) {
	if i < sub {
		return uint64(i), uint64(i)
	}
	e := i/sub - 1
	lo = uint64(i%sub+sub) << e
	return lo, lo + 1<<e - 1
}

// Add counts v n times.
func (h *Hist) Add(v, n uint64) {
	if n == 0 {
		return
	}
	if h.counts == nil {
		h.counts = make([]uint64, buckets)
		h.min = v
	}
	h.counts[bucket(v)] += n
	h.total += n
	h.max, h.min = max(h.max, v), min(h.min, v)
}

// Join adds the counts of other.
func (h *Hist) Join(other *Hist) {
	if other.total == 0 {
		return
	}
	if h.counts == nil {
		h.counts = make([]uint64, buckets)
		h.min = other.min
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.max, h.min = max(h.max, other.max), min(h.min, other.min)
}

// Total is the number of values.
func (h *Hist) Total() uint64 { return h.total }

// Max is the largest value, exactly; 0 if there is none.
func (h *Hist) Max() uint64 { return h.max }

// Quantile returns a value within [RelativeError] of the smallest one that at
// least a fraction q of all values does not exceed. 0 if there is none.
func (h *Hist) Quantile(q float64) uint64 {
	if h.total == 0 {
		return 0
	}
	rank := uint64(q * float64(h.total))
	if rank >= h.total {
		return h.max
	}
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += n; seen > rank {
			lo, hi := bounds(i)
			return max(min(lo+(hi-lo)/2, h.max), h.min)
		}
	}
	return h.max
}

// Each calls f for every bucket that holds values, from the smallest on; hi is
// the largest value of the bucket.
func (h *Hist) Each(f func(lo, hi, n uint64)) {
	for i, n := range h.counts {
		if n > 0 {
			lo, hi := bounds(i)
			f(lo, hi, n)
		}
	}
}

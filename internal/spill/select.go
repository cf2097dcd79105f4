package spill

import (
	"math/bits"
	"slices"
)

// gatherMax is how many values a selection takes into memory at once.
const gatherMax = 1 << 17

// Select returns the values at the given ranks (0 is the smallest; each below
// the log's length) in their order. It reads the log a few times: it counts
// buckets, then only looks into those that hold a rank, so the result is exact
// and the memory small whatever the length.
func Select(l *Log[uint64], ranks []uint64) ([]uint64, error) {
	out := make([]uint64, len(ranks))
	if l.Len() <= gatherMax {
		vals := make([]uint64, 0, l.Len())
		err := l.Each(func(_ int32, v []uint64) error { vals = append(vals, v...); return nil })
		if err != nil {
			return nil, err
		}
		slices.Sort(vals)
		for i, r := range ranks {
			out[i] = vals[r]
		}
		return out, nil
	}
	hist := make([]uint64, logBuckets)
	err := l.Each(func(_ int32, vals []uint64) error {
		for _, v := range vals {
			hist[logBucket(v)]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var open []*span
	at := make([]*span, logBuckets)
	for i, r := range ranks {
		b, below := find(hist, r)
		if at[b] == nil {
			lo, hi := logBounds(b)
			at[b] = &span{lo: lo, hi: hi, n: hist[b]}
			open = append(open, at[b])
		}
		at[b].want = append(at[b].want, want{i, r - below})
	}
	small := false
	for _, s := range open {
		if s.n <= gatherMax && s.lo != s.hi {
			s.vals = make([]uint64, 0, s.n)
			small = true
		}
	}
	if small {
		err := l.Each(func(_ int32, vals []uint64) error {
			for _, v := range vals {
				if s := at[logBucket(v)]; s != nil && s.vals != nil {
					s.vals = append(s.vals, v)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, s := range open {
		if err := s.resolve(l, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// span is the values from lo to hi, of which some ranks are wanted.
type span struct {
	lo, hi uint64
	n      uint64
	want   []want
	vals   []uint64 // all of them, if there are few
}

type want struct {
	out  int
	rank uint64 // within the span
}

// resolve finds the values of a span, cutting it into ever smaller ones.
func (s *span) resolve(l *Log[uint64], out []uint64) error {
	switch {
	case s.lo == s.hi:
		for _, w := range s.want {
			out[w.out] = s.lo
		}
		return nil
	case s.vals != nil:
		slices.Sort(s.vals)
		for _, w := range s.want {
			out[w.out] = s.vals[w.rank]
		}
		return nil
	case s.n <= gatherMax:
		s.vals = make([]uint64, 0, s.n)
		err := l.Each(func(_ int32, vals []uint64) error {
			for _, v := range vals {
				if v >= s.lo && v <= s.hi {
					s.vals = append(s.vals, v)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return s.resolve(l, out)
	}
	shift := max(0, bits.Len64(s.hi-s.lo)-12)
	hist := make([]uint64, (s.hi-s.lo)>>shift+1)
	err := l.Each(func(_ int32, vals []uint64) error {
		for _, v := range vals {
			if v >= s.lo && v <= s.hi {
				hist[(v-s.lo)>>shift]++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	parts := map[int]*span{}
	for _, w := range s.want {
		b, below := find(hist, w.rank)
		p := parts[b]
		if p == nil {
			lo := s.lo + uint64(b)<<shift
			p = &span{lo: lo, hi: min(s.hi, lo+(1<<shift-1)), n: hist[b]}
			parts[b] = p
		}
		p.want = append(p.want, want{w.out, w.rank - below})
	}
	for _, p := range parts {
		if err := p.resolve(l, out); err != nil {
			return err
		}
	}
	return nil
}

// find returns the bucket that holds a rank and how many values lie below it.
func find(hist []uint64, rank uint64) (bucket int, below uint64) {
	for i, n := range hist {
		if rank < below+n {
			return i, below
		}
		below += n
	}
	panic("spill: rank beyond the log's length")
}

// A bucket holds the values that agree in their length and the ten bits behind
// the first.
const (
	logBits    = 10
	logBuckets = (64-logBits)<<logBits + 1<<logBits
)

func logBucket(v uint64) int {
	e := max(0, bits.Len64(v)-1-logBits)
	return e<<logBits + int(v>>uint(e))
}

func logBounds(b int) (lo, hi uint64) {
	e := max(0, b>>logBits-1)
	lo = uint64(b-e<<logBits) << e
	return lo, lo + (1<<e - 1)
}

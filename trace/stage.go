package trace

import "github.com/tierscope/tierscope/observe"

// stage gathers rows of one column until they fill a page. It keeps the
// simplest form that still holds them: a column that is constant, a run or
// absent costs nothing per row.
type stage[T observe.Number] struct {
	col observe.Column[T] // Values and Nulls are of length n where present
	n   int
	// Buffers that survive reset.
	vals  []T
	nulls []bool
}

func (s *stage[T]) reset() {
	s.vals, s.nulls = s.vals[:0], s.nulls[:0]
	s.col, s.n = observe.Column[T]{}, 0
}

// take appends rows lo to hi of c.
func (s *stage[T]) take(c *observe.Column[T], lo, hi int) {
	k := hi - lo
	if k == 0 {
		return
	}
	nulls := c.Nulls != nil && c.Form != observe.Absent && anyTrue(c.Nulls[lo:hi])
	if s.n == 0 && !nulls && c.Form != observe.Slice {
		s.col = observe.Column[T]{Form: c.Form, First: c.First, Step: c.Step}
		if c.Form == observe.Run {
			s.col.First += T(lo) * c.Step
		}
		s.n = k
		return
	}
	if !nulls && s.col.Nulls == nil && s.extends(c, lo) {
		s.n += k
		return
	}
	s.expand()
	gaps := s.col.Nulls != nil
	if (nulls || c.Form == observe.Absent) && !gaps {
		s.nulls = grow(s.nulls[:0], s.n)
		clear(s.nulls)
		gaps = true
	}
	s.vals = growStage(s.vals, s.n+k)
	out := s.vals[s.n:]
	switch c.Form {
	case observe.Absent:
		clear(out)
	case observe.Slice:
		copy(out, c.Values[lo:hi])
	case observe.Const:
		for i := range out {
			out[i] = c.First
		}
	case observe.Run:
		v := c.First + T(lo)*c.Step
		for i := range out {
			out[i] = v
			v += c.Step
		}
	}
	if gaps {
		s.nulls = growStage(s.nulls, s.n+k)
		out := s.nulls[s.n:]
		switch {
		case nulls:
			copy(out, c.Nulls[lo:hi])
		default:
			for i := range out {
				out[i] = c.Form == observe.Absent
			}
		}
		s.col.Nulls = s.nulls
	}
	s.col.Values = s.vals
	s.n += k
}

// extends reports whether the rows of c from lo on continue the form.
func (s *stage[T]) extends(c *observe.Column[T], lo int) bool {
	if s.col.Form != c.Form || s.n == 0 {
		return false
	}
	switch c.Form {
	case observe.Absent:
		return true
	case observe.Const:
		return c.First == s.col.First
	case observe.Run:
		return c.Step == s.col.Step && c.First+T(lo)*c.Step == s.col.First+T(s.n)*c.Step
	}
	return false
}

// expand turns what is there into a slice.
func (s *stage[T]) expand() {
	if s.col.Form == observe.Slice {
		return
	}
	s.vals = s.col.Slice(grow(s.vals, s.n), s.n)
	var nulls []bool
	if s.col.Form == observe.Absent && s.n > 0 {
		s.nulls = grow(s.nulls, s.n)
		for i := range s.nulls {
			s.nulls[i] = true
		}
		nulls = s.nulls
	}
	s.col = observe.Column[T]{Form: observe.Slice, Values: s.vals, Nulls: nulls}
}

// add appends one value, or a null.
func (s *stage[T]) add(v T, null bool) {
	c := observe.ConstOf(v)
	if null {
		c = observe.Column[T]{}
	}
	s.take(&c, 0, 1)
}

// grow returns s with length n, keeping what fits.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		t := make([]T, n, n+n/4)
		copy(t, s)
		return t
	}
	return s[:n]
}

// growStage is grow in long steps up to a page: a stage is filled by small
// batches, and what it outgrows is garbage.
func growStage[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	t := make([]T, n, max(n, min(4*n, pageRows)))
	copy(t, s)
	return t
}

func anyTrue(b []bool) bool {
	for _, v := range b {
		if v {
			return true
		}
	}
	return false
}

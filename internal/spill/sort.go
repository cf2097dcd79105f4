package spill

import "slices"

// Sorter sorts records that may outgrow memory. Not safe for concurrent use.
type Sorter[T any] struct {
	store *Store
	cmp   func(a, b T) int
	max   int
	buf   []T
	runs  []Log[T]
}

// NewSorter returns a sorter that holds about mem bytes of records in memory.
// Records that compare equal come out in any order.
func NewSorter[T any](s *Store, mem int64, cmp func(a, b T) int) *Sorter[T] {
	return &Sorter[T]{store: s, cmp: cmp, max: int(max(1024, mem/sizeOf[T]()))}
}

// Add takes a record.
func (s *Sorter[T]) Add(v T) error {
	if len(s.buf) == s.max {
		slices.SortFunc(s.buf, s.cmp)
		run := NewLog[T](s.store)
		off, err := s.store.write(bytesOf(s.buf))
		if err != nil {
			return err
		}
		run.pieces = []piece[T]{{store: s.store, off: off, n: len(s.buf)}}
		s.runs = append(s.runs, run)
		s.buf = s.buf[:0]
	}
	s.buf = append(s.buf, v)
	return nil
}

// Each calls f with all records in order. The sorter is empty afterwards.
func (s *Sorter[T]) Each(f func(T) error) error {
	slices.SortFunc(s.buf, s.cmp)
	defer func() { s.buf, s.runs = nil, nil }()
	if len(s.runs) == 0 {
		for _, v := range s.buf {
			if err := f(v); err != nil {
				return err
			}
		}
		return nil
	}
	var heads []*cursor[T]
	for i := range s.runs {
		c := &cursor[T]{rest: s.runs[i].pieces[0]}
		if err := c.next(s.store); err != nil {
			return err
		}
		heads = append(heads, c)
	}
	if len(s.buf) > 0 {
		heads = append(heads, &cursor[T]{buf: s.buf})
	}
	less := func(i, j int) bool { return s.cmp(heads[i].buf[0], heads[j].buf[0]) < 0 }
	down := func(i int) {
		for {
			k := 2*i + 1
			if k >= len(heads) {
				return
			}
			if k+1 < len(heads) && less(k+1, k) {
				k++
			}
			if !less(k, i) {
				return
			}
			heads[i], heads[k] = heads[k], heads[i]
			i = k
		}
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		down(i)
	}
	for len(heads) > 0 {
		c := heads[0]
		if err := f(c.buf[0]); err != nil {
			return err
		}
		if c.buf = c.buf[1:]; len(c.buf) == 0 {
			if err := c.next(s.store); err != nil {
				return err
			}
			if len(c.buf) == 0 {
				heads[0] = heads[len(heads)-1]
				heads = heads[:len(heads)-1]
			}
		}
		down(0)
	}
	return nil
}

// cursor walks over a sorted run.
type cursor[T any] struct {
	buf  []T // what is in memory, first record next
	own  []T
	rest piece[T] // what is not
}

func (c *cursor[T]) next(s *Store) error {
	const k = 1024
	n := min(k, c.rest.n)
	if n == 0 {
		return nil
	}
	if c.own == nil {
		c.own = make([]T, k)
	}
	c.buf = c.own[:n]
	if err := s.read(bytesOf(c.buf), c.rest.off); err != nil {
		return err
	}
	c.rest.off += int64(n) * sizeOf[T]()
	c.rest.n -= n
	return nil
}

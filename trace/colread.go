package trace

import (
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
)

// values turns pages of a chunk into values of a column.
type values[T observe.Number] interface {
	// check refuses chunks of types that the column cannot hold.
	check(*format.SchemaElement) error
	// dictionary returns the entries of a dictionary page.
	dictionary(page) ([]T, error)
	// plain returns the values of a page without dictionary, at most max.
	plain(p page, max int) ([]T, error)
	// marks says which values of the latest of these calls are none; nil =
	// all are.
	marks() []mark
}

// mark says why a stored value is a null in a batch.
type mark uint8

const (
	isNaN mark = iota + 1 // how doubles write null
	unfit                 // out of the range of the column's type
)

// colReader reads one column of a file as columns of batches, in the simplest
// form that the pages show.
type colReader[T observe.Number] struct {
	kind    values[T]
	chunk   *chunkReader // nil: the column is absent
	left    int          // rows left in the page
	levels  hybrid
	leveled bool
	isDict  bool
	codes   hybrid
	dict    []T
	badDict []mark
	vals    []T
	badVals []mark
	merged  stage[T]
	out     []T
	nulls   []bool
	idx     []uint32
	bad     []mark
	unfits  uint64
}

func (r *colReader[T]) skipped() uint64 { return r.unfits }

func (r *colReader[T]) begin(c *chunkReader) error {
	r.chunk, r.left, r.dict, r.badDict = c, 0, nil, nil
	if c == nil {
		return nil
	}
	if _, null := c.element.LogicalType.Value.(*format.NullType); null {
		r.chunk = nil
		return nil
	}
	return r.kind.check(c.element)
}

// read returns the next n rows, valid until the next call.
func (r *colReader[T]) read(n int) (observe.Column[T], error) {
	if r.chunk == nil {
		return observe.Column[T]{}, nil
	}
	if r.left == 0 {
		if err := r.nextPage(); err != nil {
			return observe.Column[T]{}, err
		}
	}
	if r.left >= n {
		return r.piece(n)
	}
	r.merged.reset()
	for n > 0 {
		if r.left == 0 {
			if err := r.nextPage(); err != nil {
				return observe.Column[T]{}, err
			}
		}
		k := min(n, r.left)
		c, err := r.piece(k)
		if err != nil {
			return c, err
		}
		r.merged.take(&c, 0, k)
		n -= k
	}
	return r.merged.col, nil
}

func (r *colReader[T]) nextPage() error {
	for {
		p, err := r.chunk.next()
		if err != nil {
			return err
		}
		if p.dict {
			d, err := r.kind.dictionary(p)
			if err != nil {
				return err
			}
			if len(d) < p.n {
				return fmt.Errorf("dictionary of %d values where its header says %d", len(d), p.n)
			}
			r.dict = append(r.dict[:0:0], d[:p.n]...)
			r.badDict = append([]mark(nil), r.kind.marks()...) // nil stays nil
			continue
		}
		if p.n > 0 {
			return r.beginPage(p)
		}
	}
}

func (r *colReader[T]) beginPage(p page) (err error) {
	r.left = p.n
	if r.leveled = r.chunk.optional; r.leveled {
		if r.levels, err = newHybrid(p.levels, 1); err != nil {
			return err
		}
	}
	r.vals, r.badVals = nil, nil
	r.isDict = p.enc == format.RLEDictionary || p.enc == oldDictionary
	if r.isDict {
		if len(p.values) == 0 { // all null
			r.codes = hybrid{}
			return nil
		}
		r.codes, err = newHybrid(p.values[1:], uint(p.values[0]))
		return err
	}
	if len(p.values) == 0 {
		return nil
	}
	r.vals, err = r.kind.plain(p, p.n)
	r.badVals = r.kind.marks()
	return err
}

// piece returns the next n rows of the page.
func (r *colReader[T]) piece(n int) (observe.Column[T], error) {
	r.left -= n
	if r.leveled {
		level, ok, err := r.levels.same(n)
		if err != nil {
			return observe.Column[T]{}, err
		}
		if ok && level == 0 {
			return observe.Column[T]{}, nil
		}
		if !ok {
			return r.sparse(n)
		}
	}
	if r.isDict {
		code, ok, err := r.codes.same(n)
		if err != nil {
			return observe.Column[T]{}, err
		}
		if ok && int(code) < len(r.dict) && (r.badDict == nil || r.badDict[code] == 0) {
			return observe.ConstOf(r.dict[code]), nil
		}
		if ok {
			r.codes.left += n // take the long way
		}
	}
	vals, bad, err := r.take(n)
	if err != nil {
		return observe.Column[T]{}, err
	}
	c := observe.SliceOf(vals)
	if bad != nil {
		c.Nulls = r.nullsOf(bad)
	}
	return c, nil
}

// take returns the next n values that are not null.
func (r *colReader[T]) take(n int) ([]T, []mark, error) {
	if !r.isDict {
		if len(r.vals) < n {
			return nil, nil, fmt.Errorf("page has %d values too few", n-len(r.vals))
		}
		v := r.vals[:n]
		r.vals = r.vals[n:]
		if r.badVals == nil {
			return v, nil, nil
		}
		bad := r.badVals[:n]
		r.badVals = r.badVals[n:]
		return v, bad, nil
	}
	r.idx = grow(r.idx, n)
	if err := r.codes.read(r.idx); err != nil {
		return nil, nil, err
	}
	r.out = grow(r.out, n)
	dict, out := r.dict, r.out[:len(r.idx)]
	for i, k := range r.idx {
		if uint(k) >= uint(len(dict)) {
			return nil, nil, fmt.Errorf("code %d in a dictionary of %d", k, len(dict))
		}
		out[i] = dict[k]
	}
	if r.badDict == nil {
		return out, nil, nil
	}
	r.bad = grow(r.bad, n)
	for i, k := range r.idx {
		r.bad[i] = r.badDict[k]
	}
	return out, r.bad, nil
}

// sparse returns n rows some of which may be null.
func (r *colReader[T]) sparse(n int) (observe.Column[T], error) {
	r.idx = grow(r.idx, n)
	if err := r.levels.read(r.idx); err != nil {
		return observe.Column[T]{}, err
	}
	r.nulls = grow(r.nulls, n)
	present := 0
	for i, level := range r.idx {
		r.nulls[i] = level == 0
		present += int(level & 1)
	}
	if present == 0 {
		return observe.Column[T]{}, nil
	}
	vals, bad, err := r.take(present)
	if err != nil {
		return observe.Column[T]{}, err
	}
	if present == n && bad == nil {
		return observe.SliceOf(vals), nil
	}
	// Spread the values from the end, so that this works in place.
	if !r.isDict {
		r.out = grow(r.out, n)
		copy(r.out, vals)
	}
	r.out = grow(r.out, n)
	var zero T
	for i, k := n-1, present; i >= 0; i-- {
		if r.nulls[i] {
			r.out[i] = zero
			continue
		}
		k--
		r.out[i] = r.out[k]
		if bad != nil && bad[k] != 0 {
			r.nulls[i], r.out[i] = true, zero
			r.count(bad[k])
		}
	}
	return observe.Column[T]{Form: observe.Slice, Values: r.out[:n], Nulls: r.nulls[:n]}, nil
}

// nullsOf turns marks into nulls; nil if there are none.
func (r *colReader[T]) nullsOf(bad []mark) []bool {
	r.nulls = grow(r.nulls, len(bad))
	found := false
	for i, m := range bad {
		r.nulls[i] = m != 0
		found = found || m != 0
		r.count(m)
	}
	if !found {
		return nil
	}
	return r.nulls
}

func (r *colReader[T]) count(m mark) {
	if m == unfit {
		r.unfits++
	}
}

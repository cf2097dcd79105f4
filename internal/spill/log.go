package spill

const (
	firstChunk = 64   // records of a log's first chunk; each next one is twice as large
	lastChunk  = 8192 // up to this
	readChunk  = 8192 // records read back at once
)

// Log is an append-only sequence of records without pointers. Each record
// carries a tag, that of the log when it was appended. The zero value is not
// usable; make one with [NewLog]. Not safe for concurrent use.
type Log[T any] struct {
	store  *Store
	cur    []T
	tag    int32
	mem    int64 // bytes of memory held, cur included
	n      uint64
	pieces []piece[T]
}

// piece is a run of records, in memory or in a file.
type piece[T any] struct {
	tag   int32
	mem   []T // nil if it lies in the file
	store *Store
	off   int64
	n     int
}

// NewLog returns an empty log.
func NewLog[T any](s *Store) Log[T] { return Log[T]{store: s} }

// Len returns the number of records.
func (l *Log[T]) Len() uint64 { return l.n + uint64(len(l.cur)) }

// Memory returns the bytes of memory that the log holds.
func (l *Log[T]) Memory() int64 { return l.mem }

// Append adds a record.
func (l *Log[T]) Append(v T) {
	if len(l.cur) == cap(l.cur) {
		l.grow()
	}
	l.cur = append(l.cur, v)
}

func (l *Log[T]) grow() {
	size := min(max(firstChunk, 2*cap(l.cur)), lastChunk)
	l.seal()
	l.cur = make([]T, 0, size)
	l.account(int64(size) * sizeOf[T]())
}

// seal makes what cur holds a piece.
func (l *Log[T]) seal() {
	if len(l.cur) == 0 {
		l.account(-int64(cap(l.cur)) * sizeOf[T]())
	} else {
		l.pieces = append(l.pieces, piece[T]{tag: l.tag, mem: l.cur, n: len(l.cur)})
		l.n += uint64(len(l.cur))
	}
	l.cur = nil
}

func (l *Log[T]) account(n int64) {
	l.mem += n
	l.store.used += n
}

// SetTag sets the tag of the records appended from now on.
func (l *Log[T]) SetTag(tag int32) {
	if tag != l.tag {
		l.seal()
		l.tag = tag
	}
}

// Spill moves all records to the file. It keeps one chunk of memory to append
// to unless all is set.
func (l *Log[T]) Spill(all bool) error {
	for i := range l.pieces {
		p := &l.pieces[i]
		if p.mem == nil {
			continue
		}
		off, err := l.store.write(bytesOf(p.mem))
		if err != nil {
			return err
		}
		l.account(-int64(cap(p.mem)) * sizeOf[T]())
		*p = piece[T]{tag: p.tag, store: l.store, off: off, n: p.n}
	}
	if len(l.cur) > 0 && (all || len(l.cur) >= cap(l.cur)/2) {
		off, err := l.store.write(bytesOf(l.cur))
		if err != nil {
			return err
		}
		l.pieces = append(l.pieces, piece[T]{tag: l.tag, store: l.store, off: off, n: len(l.cur)})
		l.n += uint64(len(l.cur))
		l.cur = l.cur[:0]
	}
	if all {
		l.seal()
	}
	l.merge()
	return nil
}

// merge joins pieces that lie one behind the other in the file.
func (l *Log[T]) merge() {
	out := l.pieces[:0]
	for _, p := range l.pieces {
		if k := len(out) - 1; k >= 0 && p.mem == nil && out[k].mem == nil && out[k].store == p.store &&
			out[k].tag == p.tag && out[k].off+int64(out[k].n)*sizeOf[T]() == p.off {
			out[k].n += p.n
			continue
		}
		out = append(out, p)
	}
	clear(l.pieces[len(out):])
	l.pieces = out
}

// Adopt appends the records of other, whose tags grow by shift. What other
// spilled stays in its store, which must stay open; other is empty afterwards.
func (l *Log[T]) Adopt(other *Log[T], shift int32) {
	l.seal()
	other.seal()
	for _, p := range other.pieces {
		p.tag += shift
		l.pieces = append(l.pieces, p)
	}
	l.n += other.n
	mem := other.mem
	other.account(-mem)
	l.account(mem)
	*other = NewLog[T](other.store)
}

// Free drops all records.
func (l *Log[T]) Free() {
	l.account(-l.mem)
	*l = NewLog[T](l.store)
}

// Each calls f with all records in order, some at a time. f must not keep the
// slice and may write to it only if the log is not read again.
func (l *Log[T]) Each(f func(tag int32, recs []T) error) error {
	var buf []T
	for i := range l.pieces {
		p := &l.pieces[i]
		if p.mem != nil {
			if err := f(p.tag, p.mem); err != nil {
				return err
			}
			continue
		}
		for done := 0; done < p.n; {
			k := min(p.n-done, readChunk)
			if cap(buf) < k {
				buf = make([]T, k)
			}
			buf = buf[:k]
			if err := p.store.read(bytesOf(buf), p.off+int64(done)*sizeOf[T]()); err != nil {
				return err
			}
			if err := f(p.tag, buf); err != nil {
				return err
			}
			done += k
		}
	}
	if len(l.cur) > 0 {
		return f(l.tag, l.cur)
	}
	return nil
}

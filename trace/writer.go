package trace

import (
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// Writer writes trace.parquet. One goroutine at a time. Its memory is bounded
// by the row group (8 MiB), whatever the length of the trace.
type Writer struct {
	file  *file
	cols  []batchWriter
	pages []uint64
}

// Create begins the trace file path, which must not exist. It has a temporary
// name in the same directory until Close.
func Create(path string, opts Options) (*Writer, error) {
	out, err := run.NewAtomic(path)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(out, opts)
	if err != nil {
		out.Abort()
	}
	return w, err
}

// NewWriter writes a trace to out, which Close commits and Abort aborts.
func NewWriter(out *run.Atomic, opts Options) (*Writer, error) {
	w := &Writer{}
	var cols []column
	for _, l := range layout {
		if opts.Columns != 0 && opts.Columns&l.bit == 0 {
			continue
		}
		c := l.writer()
		w.cols = append(w.cols, c)
		cols = append(cols, c)
	}
	var err error
	w.file, err = newFile(out, SchemaTrace, opts, cols)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Accesses appends the rows of b, from which it copies what it keeps. Where the
// batch knows addresses and no pages, pages are derived. An error, once
// returned, stays.
func (w *Writer) Accesses(b *observe.Batch) error {
	src := b
	if b.AddressPage.Form == observe.Absent && b.Address.Form != observe.Absent {
		t := *b
		w.derivePages(&t)
		src = &t
	}
	for lo := 0; lo < b.Len; {
		hi := min(b.Len, lo+w.file.room())
		for _, c := range w.cols {
			c.takeFrom(src, lo, hi)
		}
		if err := w.file.advance(hi - lo); err != nil {
			return err
		}
		lo = hi
	}
	return w.file.err
}

func (w *Writer) derivePages(b *observe.Batch) {
	a := &b.Address
	b.AddressPage = observe.Column[uint64]{Form: a.Form, First: a.First >> 12, Nulls: a.Nulls}
	if a.Form == observe.Const {
		return
	}
	w.pages = grow(w.pages, b.Len)
	for i := range w.pages {
		w.pages[i] = a.At(i) >> 12
	}
	b.AddressPage.Form, b.AddressPage.Values = observe.Slice, w.pages
}

// Rows returns the number of rows taken so far.
func (w *Writer) Rows() int64 { return w.file.rows }

// Close writes the footer, makes the file durable and gives it its name. After
// an error there is no file.
func (w *Writer) Close() error { return w.file.close() }

// Abort removes what was written; after Close it does nothing.
func (w *Writer) Abort() { w.file.out.Abort() }

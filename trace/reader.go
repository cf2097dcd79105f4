package trace

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// batchRows is how many rows a batch of a reader has at most.
const batchRows = pageRows

// Reader reads trace.parquet of any version 1, of tierscope and of mrm-trace.
// One goroutine at a time; [Reader.Fork] gives others their own.
type Reader struct {
	file   *parquetFile
	forked bool
	cols   [len(layout)]batchReader
	chunks [len(layout)]chunkReader
	active []int
	batch  observe.Batch
}

// Open opens a trace. A file that is no Parquet, that was cut short, of another
// major version or without one of [RequiredColumns] is [run.Corrupt].
func Open(path string) (*Reader, error) {
	p, err := openParquet(path)
	if err != nil {
		return nil, err
	}
	if err := p.check(SchemaTrace); err != nil {
		p.f.Close()
		return nil, err
	}
	return newReader(p), nil
}

func newReader(p *parquetFile) *Reader {
	r := &Reader{file: p}
	for i := range layout {
		r.cols[i] = layout[i].reader()
	}
	return r
}

// Fork returns another reader of the same open file, with dictionaries of its
// own, for use by another goroutine. It lives until the first reader is closed;
// closing it does nothing.
func (r *Reader) Fork() *Reader {
	f := newReader(r.file)
	f.forked = true
	return f
}

// Close closes the file.
func (r *Reader) Close() error {
	if r.forked {
		return nil
	}
	return r.file.f.Close()
}

// Path returns the name that the file was opened by.
func (r *Reader) Path() string { return r.file.name }

// Rows returns the number of rows of the trace.
func (r *Reader) Rows() int64 { return r.file.meta.NumRows }

// RowGroups returns the number of row groups, the units of parallel reading.
func (r *Reader) RowGroups() int { return len(r.file.meta.RowGroups) }

// GroupRows returns the number of rows of row group i.
func (r *Reader) GroupRows(i int) int64 { return r.file.meta.RowGroups[i].NumRows }

// Version returns the schema version that the file carries; "" if none, as in
// all files that mrm-trace wrote.
func (r *Reader) Version() string {
	v, _ := r.file.version(SchemaTrace)
	return v
}

// Has returns the columns that the file has, filled or not.
func (r *Reader) Has() observe.Cols {
	var has observe.Cols
	for _, l := range layout {
		if r.file.leaves[l.name] != nil {
			has |= l.bit
		}
	}
	return has
}

// Skipped returns how many numbers were delivered as null so far because they
// are out of the range of their column's type. Files with inferred types, as
// mrm-trace 0.1.0 wrote them, can have such; its later versions could not write
// them at all.
func (r *Reader) Skipped() uint64 {
	var n uint64
	for _, c := range r.cols {
		n += c.skipped()
	}
	return n
}

// Read delivers the rows in file order, in batches that hold only the columns
// cols. A column that the file lacks is absent. Codes of strings stay valid for
// all batches of this reader. A batch belongs to the reader again when fn
// returns; an error of fn ends the reading and is returned as it is. A damaged
// file is [run.Corrupt], after the batches before the damage.
func (r *Reader) Read(cols observe.Cols, fn func(*observe.Batch) error) error {
	for i := range r.RowGroups() {
		if err := r.ReadGroup(i, cols, fn); err != nil {
			return err
		}
	}
	return nil
}

// ReadGroup is [Reader.Read] for row group i alone.
func (r *Reader) ReadGroup(i int, cols observe.Cols, fn func(*observe.Batch) error) error {
	if i < 0 || i >= r.RowGroups() {
		return run.Errorf(run.Misuse, "%s: row group %d of %d", r.file.name, i, r.RowGroups())
	}
	if err := r.begin(i, cols); err != nil {
		return err
	}
	for left := r.GroupRows(i); left > 0; {
		n := int(min(left, batchRows))
		if err := r.next(i, n); err != nil {
			return err
		}
		if err := fn(&r.batch); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

func (r *Reader) begin(group int, cols observe.Cols) (err error) {
	r.batch = observe.Batch{}
	r.active = r.active[:0]
	at := 0
	defer r.guard(group, &at, &err)
	for k, l := range layout {
		if cols&l.bit == 0 {
			continue
		}
		at = k
		leaf := r.file.leaves[l.name]
		if leaf == nil {
			continue
		}
		c := &r.chunks[k]
		if err := c.open(r.file, group, leaf); err != nil {
			return err
		}
		if err := r.cols[k].begin(c); err != nil {
			return err
		}
		r.active = append(r.active, k)
	}
	return nil
}

func (r *Reader) next(group, n int) (err error) {
	at := 0
	defer r.guard(group, &at, &err)
	r.batch.Len = n
	for _, at = range r.active {
		if err := r.cols[at].next(&r.batch, n); err != nil {
			return err
		}
	}
	return nil
}

// guard says where an error happened. Decoders may panic on hostile input,
// which is no more than a damaged file either.
func (r *Reader) guard(group int, at *int, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("damaged: %v", p)
	}
	if *err != nil {
		*err = r.file.damage(layout[*at].name, group, *err)
	}
}

// damage is the error for a column of a row group.
func (p *parquetFile) damage(name string, group int, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return run.Errorf(run.IO, "%w", err)
	}
	return p.corrupt("column %s, row group %d: %w", name, group, err)
}

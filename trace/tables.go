package trace

import (
	"fmt"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// cell is one column of a table of rows T: how a value goes into a file and
// comes out of it.
type cell[T any] struct {
	name string
	make func() (column, func(*T))
	read func() cellReader[T]
}

// cellReader fills one field of rows from a column.
type cellReader[T any] interface {
	begin(*chunkReader) error
	fill(rows []T) error
}

// numCell is a column of numbers that is stored as S and held by rows as V.
// get returns the value and whether it is null; set takes it back.
func numCell[S, V observe.Number, T any](name string, get func(*T) (V, bool), set func(*T, V, bool)) cell[T] {
	return cell[T]{name,
		func() (column, func(*T)) {
			c := newNumCol[S](name)
			return c, func(row *T) {
				v, null := get(row)
				c.add(S(v), null)
			}
		},
		func() cellReader[T] { return &numCellReader[V, T]{newNumReader[V](), name, set} },
	}
}

func textCell[T any](name string, get func(*T) (string, bool), set func(*T, string, bool)) cell[T] {
	return cell[T]{name,
		func() (column, func(*T)) {
			c := newStrCol(name)
			return c, func(row *T) { c.add(get(row)) }
		},
		func() cellReader[T] { return &textCellReader[T]{newStrReader(), set} },
	}
}

type numCellReader[V observe.Number, T any] struct {
	*numReader[V]
	name string
	set  func(*T, V, bool)
}

func (r *numCellReader[V, T]) fill(rows []T) error {
	before := r.skipped()
	c, err := r.read(len(rows))
	if err != nil {
		return err
	}
	if r.skipped() != before {
		return fmt.Errorf("holds a number out of range")
	}
	for i := range rows {
		r.set(&rows[i], c.At(i), c.Null(i))
	}
	return nil
}

type textCellReader[T any] struct {
	*strReader
	set func(*T, string, bool)
}

func (r *textCellReader[T]) fill(rows []T) error {
	c, err := r.read(len(rows))
	if err != nil {
		return err
	}
	s := observe.Strings{Column: c, Dict: r.dict}
	for i := range rows {
		r.set(&rows[i], s.Text(i), s.Null(i))
	}
	return nil
}

// Table writes a file of rows T. One goroutine at a time. The file exists after
// Close also when no row was written.
type Table[T any] struct {
	file *file
	adds []func(*T)
}

func createTable[T any](path, schema string, opts Options, cells []cell[T]) (*Table[T], error) {
	out, err := run.NewAtomic(path)
	if err != nil {
		return nil, err
	}
	t, err := newTable(out, schema, opts, cells)
	if err != nil {
		out.Abort()
	}
	return t, err
}

func newTable[T any](out *run.Atomic, schema string, opts Options, cells []cell[T]) (*Table[T], error) {
	t := &Table[T]{}
	var cols []column
	for _, l := range cells {
		c, add := l.make()
		cols = append(cols, c)
		t.adds = append(t.adds, add)
	}
	var err error
	if t.file, err = newFile(out, schema, opts, cols); err != nil {
		return nil, err
	}
	return t, nil
}

// Write appends rows. An error, once returned, stays.
func (t *Table[T]) Write(rows ...T) error {
	for i := range rows {
		for _, add := range t.adds {
			add(&rows[i])
		}
		if err := t.file.advance(1); err != nil {
			return err
		}
	}
	return nil
}

// Close writes the footer, makes the file durable and gives it its name. After
// an error there is no file.
func (t *Table[T]) Close() error { return t.file.close() }

// Abort removes what was written; after Close it does nothing.
func (t *Table[T]) Abort() { t.file.out.Abort() }

// readTable calls fn for every row of a file.
func readTable[T any](path, schema string, cells []cell[T], fn func(*T) error) error {
	p, err := openParquet(path)
	if err != nil {
		return err
	}
	defer p.f.Close()
	if err := p.check(schema); err != nil {
		return err
	}
	readers := make([]cellReader[T], len(cells))
	for i, c := range cells {
		readers[i] = c.read()
	}
	rows := make([]T, 0, 4096)
	for g := range p.meta.RowGroups {
		chunks := make([]*chunkReader, len(cells))
		for left := p.meta.RowGroups[g].NumRows; left > 0; {
			n := int(min(left, int64(cap(rows))))
			rows = rows[:n]
			clear(rows)
			if err := fillRows(p, g, cells, readers, chunks, rows); err != nil {
				return err
			}
			for i := range rows {
				if err := fn(&rows[i]); err != nil {
					return err
				}
			}
			left -= int64(n)
		}
	}
	return nil
}

// fillRows fills rows from row group g, whose chunks it opens the first time.
func fillRows[T any](p *parquetFile, g int, cells []cell[T], readers []cellReader[T], chunks []*chunkReader, rows []T) (err error) {
	name := ""
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged: %v", r)
		}
		if err != nil {
			err = p.damage(name, g, err)
		}
	}()
	for i, r := range readers {
		name = cells[i].name
		l := p.leaves[name]
		if chunks[i] == nil {
			chunks[i] = &chunkReader{}
			if l != nil {
				if err := chunks[i].open(p, g, l); err != nil {
					return err
				}
				err = r.begin(chunks[i])
			} else {
				err = r.begin(nil)
			}
			if err != nil {
				return err
			}
		}
		if err := r.fill(rows); err != nil {
			return err
		}
	}
	return nil
}

package trace

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/run"
)

// leaf is a column of a file: where its chunks are in each row group, and what
// the schema says about it.
type leaf struct {
	index   int
	element *format.SchemaElement
	nested  bool // part of a list or structure: none of ours is
}

// parquetFile is an open file with its footer read and checked.
type parquetFile struct {
	f      *os.File
	name   string
	size   int64
	meta   *format.FileMetaData
	leaves map[string]*leaf
}

const (
	magic = "PAR1"
	// maxFooter is far beyond any real footer.
	maxFooter = 1 << 28
)

// openParquet opens a file and checks the footer: after that, all chunks lie
// within the file and each row group has all columns.
func openParquet(path string) (p *parquetFile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, run.Errorf(run.IO, "%w", err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = run.Errorf(run.Corrupt, "%s: footer is damaged: %v", path, r)
		}
		if err != nil {
			f.Close()
			p = nil
		}
	}()
	p = &parquetFile{f: f, name: path, leaves: map[string]*leaf{}}
	if err = p.readFooter(); err != nil {
		return nil, err
	}
	if err = p.readSchema(); err != nil {
		return nil, p.corrupt("%w", err)
	}
	if err = p.checkGroups(); err != nil {
		return nil, p.corrupt("%w", err)
	}
	return p, nil
}

func (p *parquetFile) corrupt(text string, args ...any) error {
	return run.Errorf(run.Corrupt, "%s: "+text, append([]any{p.name}, args...)...)
}

func (p *parquetFile) readFooter() error {
	info, err := p.f.Stat()
	if err != nil {
		return run.Errorf(run.IO, "%w", err)
	}
	if info.IsDir() {
		return run.Errorf(run.Misuse, "%s is a directory: name a Parquet file", p.name)
	}
	p.size = info.Size()
	var head [4]byte
	var tail [8]byte
	if p.size < int64(len(head)+len(tail)) {
		return p.corrupt("%d bytes are too few for a Parquet file", p.size)
	}
	if _, err := p.f.ReadAt(head[:], 0); err != nil {
		return run.Errorf(run.IO, "%w", err)
	}
	if string(head[:]) != magic {
		return p.corrupt("no Parquet file: begins with %q", head[:])
	}
	if _, err := p.f.ReadAt(tail[:], p.size-8); err != nil {
		return run.Errorf(run.IO, "%w", err)
	}
	if string(tail[4:]) != magic {
		return p.corrupt("no footer: the file was cut short or its writer was killed; write it again from its source")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	if n > p.size-12 || n > maxFooter {
		return p.corrupt("footer of %d bytes in a file of %d", n, p.size)
	}
	b := make([]byte, n)
	if _, err := p.f.ReadAt(b, p.size-8-n); err != nil {
		return run.Errorf(run.IO, "%w", err)
	}
	if _, err := structLen(b); err != nil {
		return p.corrupt("footer is damaged: %w", err)
	}
	var d format.FooterDecoder
	if p.meta, _, err = d.Decode(b); err != nil {
		return p.corrupt("footer is damaged: %w", err)
	}
	return nil
}

// readSchema finds the leaves: the schema is a tree written depth first.
func (p *parquetFile) readSchema() error {
	s := p.meta.Schema
	if len(s) == 0 || !s[0].NumChildren.Valid {
		return fmt.Errorf("the footer has no schema")
	}
	index, pos := 0, 1
	var walk func(children int32, nested bool, depth int) error
	walk = func(children int32, nested bool, depth int) error {
		for range children {
			if pos >= len(s) || depth > maxThriftDepth {
				return fmt.Errorf("the schema is damaged")
			}
			e := &s[pos]
			pos++
			if e.NumChildren.Valid && e.NumChildren.V > 0 {
				if err := walk(e.NumChildren.V, true, depth+1); err != nil {
					return err
				}
				continue
			}
			repeated := e.RepetitionType.Valid && e.RepetitionType.V == format.Repeated
			if !nested {
				if p.leaves[e.Name] != nil {
					return fmt.Errorf("two columns are called %s", e.Name)
				}
				p.leaves[e.Name] = &leaf{index, e, repeated}
			}
			index++
		}
		return nil
	}
	if err := walk(s[0].NumChildren.V, false, 0); err != nil {
		return err
	}
	if pos != len(s) {
		return fmt.Errorf("the schema is damaged")
	}
	for i, g := range p.meta.RowGroups {
		if len(g.Columns) != index {
			return fmt.Errorf("row group %d has %d columns, the schema %d", i, len(g.Columns), index)
		}
	}
	return nil
}

func (p *parquetFile) checkGroups() error {
	var rows int64
	for i := range p.meta.RowGroups {
		g := &p.meta.RowGroups[i]
		if g.NumRows < 0 || g.NumRows > 1<<40 {
			return fmt.Errorf("row group %d has %d rows", i, g.NumRows)
		}
		rows += g.NumRows
		for name, l := range p.leaves {
			m := &g.Columns[l.index].MetaData
			start := chunkStart(m)
			switch {
			case g.Columns[l.index].FilePath != "":
				return fmt.Errorf("column %s lies in another file", name)
			case g.NumRows == 0:
			case start < 4 || m.TotalCompressedSize < 0 || start > p.size || m.TotalCompressedSize > p.size-start:
				return fmt.Errorf("column %s of row group %d lies outside of the file", name, i)
			case m.NumValues != g.NumRows && !l.nested:
				return fmt.Errorf("column %s of row group %d has %d values for %d rows", name, i, m.NumValues, g.NumRows)
			}
		}
	}
	if rows != p.meta.NumRows {
		return fmt.Errorf("the footer says %d rows, the row groups %d", p.meta.NumRows, rows)
	}
	return nil
}

// chunkStart is where the pages of a chunk begin.
func chunkStart(m *format.ColumnMetaData) int64 {
	if d := m.DictionaryPageOffset; d > 0 && d < m.DataPageOffset {
		return d
	}
	return m.DataPageOffset
}

// key returns a footer value.
func (p *parquetFile) key(key string) (string, bool) {
	for _, kv := range p.meta.KeyValueMetadata {
		if kv.Key == key {
			return kv.Value, true
		}
	}
	return "", false
}

// check refuses a file of another major version or without required columns.
func (p *parquetFile) check(schema string) error {
	if v, ok := p.version(schema); ok {
		if err := CheckVersion(schema, v); err != nil {
			return p.corrupt("%w", err)
		}
	}
	err := checkColumns(schema, func(name string) bool { return p.leaves[name] != nil })
	if err != nil {
		return p.corrupt("%w", err)
	}
	return nil
}

// version returns the schema version that the file carries.
func (p *parquetFile) version(schema string) (string, bool) {
	if s, ok := p.key(keySchema); ok {
		if name, v, ok := strings.Cut(s, " "); ok && name == schema {
			return v, true
		}
	}
	return p.key(keyMRMVersion)
}

// CheckParquet reports whether the file can be read as schema: whole footer,
// version, required columns. Errors are [run.Corrupt] or [run.IO].
func CheckParquet(path, schema string) error {
	p, err := openParquet(path)
	if err != nil {
		return err
	}
	defer p.f.Close()
	return p.check(schema)
}

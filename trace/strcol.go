package trace

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
)

// strCol is a column of strings, always as codes into a dictionary of the row
// group.
type strCol struct {
	field
	stage[uint32]
	chunk
	codes map[string]uint32
	strs  []string
	bytes int
	// Codes of the dictionary that batches came with last, plus one; 0 = not
	// met in this row group.
	from  *observe.Dict
	known []uint32
	buf   []uint32
	enc   []byte
	vals  []int32
}

func newStrCol(name string) *strCol {
	return &strCol{field: field{name, kindString}, codes: map[string]uint32{}}
}

func (c *strCol) def() field            { return c.field }
func (c *strCol) open(comp *compressor) { c.comp = comp }
func (c *strCol) size() int             { return len(c.pages) + c.bytes }

func (c *strCol) code(s string) uint32 {
	k, ok := c.codes[s]
	if !ok {
		k = uint32(len(c.strs))
		c.strs = append(c.strs, s)
		c.codes[s] = k
		c.bytes += len(s) + 4
	}
	return k
}

// add appends one string, or a null.
func (c *strCol) add(s string, null bool) {
	var k uint32
	if !null {
		k = c.code(s)
	}
	c.stage.add(k, null)
}

// take appends rows lo to hi of s.
func (c *strCol) take(s *observe.Strings, lo, hi int) {
	if s.Form == observe.Absent || lo == hi {
		c.stage.take(&s.Column, lo, hi)
		return
	}
	if c.from != s.Dict {
		c.from, c.known = s.Dict, c.known[:0]
	}
	if n := s.Dict.Len(); len(c.known) < n {
		old := len(c.known)
		c.known = grow(c.known, n)
		clear(c.known[old:])
	}
	t := s.Column
	if t.Form == observe.Const {
		t.First = c.translate(t.First)
		c.stage.take(&t, lo, hi)
		return
	}
	c.buf = grow(c.buf, hi-lo)
	for i := range c.buf {
		if t.Nulls == nil || !t.Nulls[lo+i] {
			c.buf[i] = c.translate(t.At(lo + i))
		} else {
			c.buf[i] = 0
		}
	}
	part := observe.SliceOf(c.buf)
	if t.Nulls != nil {
		part.Nulls = t.Nulls[lo:hi]
	}
	c.stage.take(&part, 0, hi-lo)
}

func (c *strCol) translate(code uint32) uint32 {
	if k := c.known[code]; k != 0 {
		return k - 1
	}
	k := c.code(c.from.String(code))
	c.known[code] = k + 1
	return k
}

func (c *strCol) flushPage() error {
	n, col := c.stage.n, c.stage.col
	defer c.stage.reset()
	switch {
	case n == 0:
		return nil
	case col.Form == observe.Absent:
		return c.nullPage(n)
	case col.Form == observe.Const:
		levels, err := c.nullLevels(nil, n)
		if err != nil {
			return err
		}
		c.body = levels
		c.enc = dictIndex(c.enc[:0], n, col.First)
		return c.dataPage(n, 0, levels, c.enc, format.RLEDictionary)
	}
	codes := view[int32](col.Slice(nil, n))
	if col.Nulls != nil {
		c.vals = c.vals[:0]
		for i, null := range col.Nulls[:n] {
			if !null {
				c.vals = append(c.vals, codes[i])
			}
		}
		codes = c.vals
	}
	if len(codes) == 0 {
		return c.nullPage(n)
	}
	levels, err := c.nullLevels(col.Nulls, n)
	if err != nil {
		return err
	}
	c.body = levels
	if c.enc, err = indexRLE.EncodeInt32(c.enc, codes); err != nil {
		return err
	}
	return c.dataPage(n, n-len(codes), levels, c.enc, format.RLEDictionary)
}

func (c *strCol) flushChunk(off int64, write func(...[]byte) error) (format.ColumnChunk, error) {
	var dict []byte
	var raw int
	var err error
	if len(c.strs) > 0 {
		plain := c.enc[:0]
		for _, s := range c.strs {
			plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(s))), s...)
		}
		c.enc = plain
		if dict, raw, err = c.dictPage(len(c.strs), plain); err != nil {
			return format.ColumnChunk{}, err
		}
	}
	d := c.finish(c.field, off, dict, raw)
	err = write(dict, c.pages)
	c.chunk.reset()
	clear(c.codes)
	clear(c.strs)
	c.strs, c.known, c.bytes = c.strs[:0], c.known[:0], 0
	return d, err
}

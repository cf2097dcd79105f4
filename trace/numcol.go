package trace

import (
	"encoding/binary"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
)

// column is one column of a file in the making.
type column interface {
	def() field
	open(*compressor)
	// flushPage encodes the staged rows.
	flushPage() error
	// size is the number of bytes that the row group holds so far.
	size() int
	// flushChunk hands out the dictionary page and the data pages, and begins a
	// new row group.
	flushChunk(off int64, write func(...[]byte) error) (format.ColumnChunk, error)
}

// numCol is a column of integers. A page is a dictionary page where values
// repeat, else it is delta encoded.
type numCol[T observe.Number] struct {
	field
	stage[T]
	chunk
	dict   numDict[T]
	lo, hi T
	bounds bool // lo and hi hold
	wraps  bool // a run wrapped around: no bounds for this row group
	vals   []T
	codes  []int32
	wide   []int32
	enc    []byte
	planes []byte
}

func newNumCol[T observe.Number](name string) *numCol[T] {
	return &numCol[T]{field: field{name, kindOf[T]()}}
}

func (c *numCol[T]) def() field            { return c.field }
func (c *numCol[T]) open(comp *compressor) { c.comp = comp }
func (c *numCol[T]) size() int             { return len(c.pages) + len(c.dict.vals)*8 }

func (c *numCol[T]) flushPage() error {
	n, col := c.stage.n, c.stage.col
	defer c.stage.reset()
	switch {
	case n == 0:
		return nil
	case col.Form == observe.Absent:
		return c.nullPage(n)
	case col.Form == observe.Const:
		return c.constPage(n, 0, nil, col.First)
	case col.Form == observe.Run && c.kind.bits() >= 32:
		return c.runPage(n, col.First, col.Step)
	}
	vals := col.Slice(c.vals, n)
	if col.Nulls != nil {
		c.vals = grow(c.vals, n)
		k := 0
		for i, null := range col.Nulls[:n] {
			c.vals[k] = vals[i]
			if !null {
				k++
			}
		}
		vals = c.vals[:k]
	}
	if len(vals) == 0 {
		return c.nullPage(n)
	}
	lo, hi := vals[0], vals[0]
	for _, v := range vals {
		lo, hi = min(lo, v), max(hi, v)
	}
	nulls := n - len(vals)
	if lo == hi {
		return c.constPage(n, nulls, col.Nulls, lo)
	}
	c.bound(lo, hi)
	levels, err := c.nullLevels(col.Nulls, n)
	if err != nil {
		return err
	}
	c.body = levels
	if repeats(vals) && c.dict.encode(vals, &c.codes) {
		if c.enc, err = indexRLE.EncodeInt32(c.enc, c.codes); err != nil {
			return err
		}
		return c.dataPage(n, nulls, levels, c.enc, format.RLEDictionary)
	}
	if c.enc, err = c.delta(c.enc, vals); err != nil {
		return err
	}
	if c.scattered(vals) {
		return c.dataPage(n, nulls, levels, c.planes, format.ByteStreamSplit)
	}
	return c.dataPage(n, nulls, levels, c.enc, format.DeltaBinaryPacked)
}

// scattered reports whether vals, delta encoded in enc, are much smaller as
// planes of bytes, and leaves them in planes. So are addresses that jump
// between distant mappings: each jump costs all bits of the distance, while
// their upper bytes hold little.
func (c *numCol[T]) scattered(vals []T) bool {
	n := len(vals)
	if c.kind.bits() != 64 || n < 1024 || len(c.enc) < 4*n || c.comp.codec == format.Uncompressed {
		return false
	}
	c.planes = grow(c.planes, 8*n)
	p := c.planes
	for i, v := range vals {
		w := uint64(v)
		p[i], p[i+n], p[i+2*n], p[i+3*n] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
		p[i+4*n], p[i+5*n], p[i+6*n], p[i+7*n] = byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56)
	}
	small, _ := c.comp.shrink(p)
	return len(small) > 0 && len(small) < len(c.enc)*5/6
}

func (c *numCol[T]) bound(lo, hi T) {
	if !c.bounds {
		c.lo, c.hi, c.bounds = lo, hi, true
		return
	}
	c.lo, c.hi = min(c.lo, lo), max(c.hi, hi)
}

func (c *numCol[T]) constPage(n, nulls int, isNull []bool, v T) error {
	c.bound(v, v)
	levels, err := c.nullLevels(isNull, n)
	if err != nil {
		return err
	}
	c.body = levels
	if code, ok := c.dict.code(v); ok {
		c.enc = dictIndex(c.enc[:0], n-nulls, code)
		return c.dataPage(n, nulls, levels, c.enc, format.RLEDictionary)
	}
	c.enc = appendDeltaRun(c.enc[:0], n-nulls, c.physical(v), 0)
	return c.dataPage(n, nulls, levels, c.enc, format.DeltaBinaryPacked)
}

func (c *numCol[T]) runPage(n int, first, step T) error {
	last := first + T(n-1)*step
	hi, span := bits.Mul64(uint64(step), uint64(n-1))
	if hi != 0 || first > last || uint64(last-first) != span || step < 0 {
		c.wraps = true
	}
	c.bound(min(first, last), max(first, last))
	levels, err := c.nullLevels(nil, n)
	if err != nil {
		return err
	}
	c.body = levels
	c.enc = appendDeltaRun(c.enc[:0], n, c.physical(first), c.physical(step))
	return c.dataPage(n, 0, levels, c.enc, format.DeltaBinaryPacked)
}

// physical returns v as the signed integer of the file that has its bits.
func (c *numCol[T]) physical(v T) int64 {
	if c.kind.physical() == format.Int32 {
		return int64(int32(v))
	}
	return int64(v)
}

// appendDeltaRun is DELTA_BINARY_PACKED of n values first, first+step, ...:
// blocks of 128 deltas that are all the minimum, so without bits.
func appendDeltaRun(dst []byte, n int, first, step int64) []byte {
	dst = binary.AppendUvarint(dst, 128)
	dst = binary.AppendUvarint(dst, 4)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = binary.AppendVarint(dst, first)
	for i := 1; i < n; i += 128 {
		dst = binary.AppendVarint(dst, step)
		dst = append(dst, 0, 0, 0, 0)
	}
	return dst
}

var deltaPacked delta.BinaryPackedEncoding

func (c *numCol[T]) delta(dst []byte, vals []T) ([]byte, error) {
	switch c.kind.bits() {
	case 64:
		return deltaPacked.EncodeInt64(dst, view[int64](vals))
	case 32:
		return deltaPacked.EncodeInt32(dst, view[int32](vals))
	}
	c.wide = grow(c.wide, len(vals))
	for i, v := range vals {
		c.wide[i] = int32(v)
	}
	return deltaPacked.EncodeInt32(dst, c.wide)
}

// plain returns the values plain-encoded.
func (c *numCol[T]) plain(dst []byte, vals ...T) []byte {
	for _, v := range vals {
		if c.kind.physical() == format.Int64 {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
	}
	return dst
}

func (c *numCol[T]) flushChunk(off int64, write func(...[]byte) error) (format.ColumnChunk, error) {
	var dict []byte
	var raw int
	var err error
	if len(c.dict.vals) > 0 {
		if dict, raw, err = c.dictPage(len(c.dict.vals), c.plain(c.enc[:0], c.dict.vals...)); err != nil {
			return format.ColumnChunk{}, err
		}
	}
	if c.bounds && !c.wraps {
		c.min, c.max = c.plain(nil, c.lo), c.plain(nil, c.hi)
	}
	d := c.finish(c.field, off, dict, raw)
	err = write(dict, c.pages)
	c.chunk.reset()
	c.dict.reset()
	c.bounds, c.wraps = false, false
	return d, err
}

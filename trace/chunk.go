package trace

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

var (
	compact      thrift.CompactProtocol
	levelRLE     = rle.Encoding{BitWidth: 1}
	indexRLE     rle.DictionaryEncoding
	typeOrdering = format.ColumnOrder{Value: &format.TypeDefinedOrder{}}
)

// chunk gathers the encoded pages of one column of a row group.
type chunk struct {
	comp     *compressor
	pages    []byte
	raw      int // uncompressed bytes of pages, headers included
	rows     int
	nulls    int
	uses     [16]bool // encodings used, by number
	min, max []byte   // plain-encoded bounds; nil if not known
	body     []byte
	levels   []byte
}

func (c *chunk) reset() {
	*c = chunk{comp: c.comp, pages: c.pages[:0], body: c.body, levels: c.levels}
}

// nullLevels encodes which of n rows are null; nil means none.
func (c *chunk) nullLevels(isNull []bool, n int) ([]byte, error) {
	if isNull == nil {
		return appendRun(c.body[:0], n, 1, 1), nil
	}
	c.levels = grow(c.levels, n)
	for i, null := range isNull[:n] {
		c.levels[i] = 1
		if null {
			c.levels[i] = 0
		}
	}
	return levelRLE.EncodeLevels(c.body[:0], c.levels)
}

// appendRun appends n times v as one run of the hybrid encoding.
func appendRun(dst []byte, n int, v uint32, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for ; width > 0; width -= 8 {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}

// dictIndex is the body of a page whose values are all entry code.
func dictIndex(dst []byte, n int, code uint32) []byte {
	width := bits.Len32(code)
	return appendRun(append(dst, byte(width)), n, code, width)
}

// dataPage appends a data page of n rows, of which nulls are null as levels
// say; values are the others, encoded with enc.
func (c *chunk) dataPage(n, nulls int, levels, values []byte, enc format.Encoding) error {
	small, ok := c.comp.shrink(values)
	if !ok {
		small = values
	}
	h := format.PageHeader{
		Type:                 format.DataPageV2,
		UncompressedPageSize: int32(len(levels) + len(values)),
		CompressedPageSize:   int32(len(levels) + len(small)),
		CRC:                  int32(crc32.Update(crc32.ChecksumIEEE(levels), crc32.IEEETable, small)),
		DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
			NumValues:                  int32(n),
			NumNulls:                   int32(nulls),
			NumRows:                    int32(n),
			Encoding:                   enc,
			DefinitionLevelsByteLength: int32(len(levels)),
			IsCompressed:               thrift.New(ok),
			Statistics:                 format.Statistics{NullCount: int64(nulls)},
		}),
	}
	head, err := thrift.Marshal(&compact, &h)
	if err != nil {
		return err
	}
	c.pages = append(append(append(c.pages, head...), levels...), small...)
	c.raw += len(head) + len(levels) + len(values)
	c.rows += n
	c.nulls += nulls
	c.uses[enc] = true
	return nil
}

// nullPage appends a page of n nulls.
func (c *chunk) nullPage(n int) error {
	return c.dataPage(n, n, appendRun(c.body[:0], n, 0, 1), nil, format.Plain)
}

// dictPage returns the dictionary page with n plain-encoded values.
func (c *chunk) dictPage(n int, values []byte) ([]byte, int, error) {
	// Unlike a data page, a dictionary page cannot opt out of the codec.
	small := c.comp.compress(values)
	h := format.PageHeader{
		Type:                 format.DictionaryPage,
		UncompressedPageSize: int32(len(values)),
		CompressedPageSize:   int32(len(small)),
		CRC:                  int32(crc32.ChecksumIEEE(small)),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain}),
	}
	head, err := thrift.Marshal(&compact, &h)
	if err != nil {
		return nil, 0, err
	}
	c.uses[format.RLEDictionary], c.uses[format.Plain] = true, true
	return append(head, small...), len(head) + len(values), nil
}

// finish returns the description of the chunk that begins at off of the file
// with the dictionary page dict (rawDict bytes uncompressed; empty if none).
func (c *chunk) finish(f field, off int64, dict []byte, rawDict int) format.ColumnChunk {
	m := format.ColumnMetaData{
		Type:                  f.kind.physical(),
		PathInSchema:          thrift.Slice[string]{f.name},
		Codec:                 c.comp.codec,
		NumValues:             int64(c.rows),
		TotalUncompressedSize: int64(c.raw + rawDict),
		TotalCompressedSize:   int64(len(c.pages) + len(dict)),
		DataPageOffset:        off + int64(len(dict)),
		Statistics:            format.Statistics{NullCount: int64(c.nulls), MinValue: c.min, MaxValue: c.max},
		Encoding:              thrift.Slice[format.Encoding]{format.RLE},
	}
	if len(dict) > 0 {
		m.DictionaryPageOffset = off
	}
	for e, used := range c.uses {
		if used && format.Encoding(e) != format.RLE {
			m.Encoding = append(m.Encoding, format.Encoding(e))
		}
	}
	return format.ColumnChunk{FileOffset: off, MetaData: m}
}

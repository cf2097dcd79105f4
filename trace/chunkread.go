package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	readBuffer = 1 << 16
	// maxPage is the most bytes that a page may have, maxPageValues the most
	// values of an encoding that says many in few bytes.
	maxPage       = 1 << 28
	maxPageValues = 1 << 24
)

// chunkReader reads the pages of one column of a row group.
type chunkReader struct {
	in       *bufio.Reader
	element  *format.SchemaElement
	codec    format.CompressionCodec
	optional bool
	left     int64 // values of pages not read yet
	raw      []byte
	data     []byte
	header   format.PageHeader
	dec      thrift.BytesReader
}

// page is a decompressed page. Its slices are valid until the next page and
// have room for 8 bytes more.
type page struct {
	dict   bool
	n      int // values with nulls
	levels []byte
	enc    format.Encoding
	values []byte
}

// open attaches the reader to a chunk.
func (c *chunkReader) open(p *parquetFile, group int, l *leaf) error {
	m := &p.meta.RowGroups[group].Columns[l.index].MetaData
	if l.nested {
		return fmt.Errorf("is a list")
	}
	if m.Type != l.element.Type.V {
		return fmt.Errorf("has type %v in the chunk and %v in the schema", m.Type, l.element.Type.V)
	}
	c.element = l.element
	c.codec = m.Codec
	c.optional = !l.element.RepetitionType.Valid || l.element.RepetitionType.V == format.Optional
	c.left = m.NumValues
	s := io.NewSectionReader(p.f, chunkStart(m), m.TotalCompressedSize)
	if c.in == nil {
		c.in = bufio.NewReaderSize(s, readBuffer)
	} else {
		c.in.Reset(s)
	}
	return nil
}

// next reads the following dictionary or data page.
func (c *chunkReader) next() (page, error) {
	for {
		if err := c.readHeader(); err != nil {
			return page{}, err
		}
		h := &c.header
		if h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage || h.CompressedPageSize < 0 {
			return page{}, fmt.Errorf("page of %d bytes", h.UncompressedPageSize)
		}
		if err := c.readBody(int(h.CompressedPageSize)); err != nil {
			return page{}, err
		}
		switch {
		case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
			return c.dictionary(&h.DictionaryPageHeader.V)
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			return c.v1(&h.DataPageHeader.V)
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
			return c.v2(&h.DataPageHeaderV2.V)
		case h.Type != format.IndexPage:
			return page{}, fmt.Errorf("page of unknown type %v", h.Type)
		}
	}
}

func (c *chunkReader) readHeader() error {
	n, err := 0, io.ErrUnexpectedEOF
	for want := 256; errors.Is(err, io.ErrUnexpectedEOF) && want <= readBuffer; want *= 4 {
		b, readErr := c.in.Peek(want)
		if n, err = structLen(b); err != nil && readErr != nil {
			if readErr != io.EOF {
				return readErr
			}
			return io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		return fmt.Errorf("page header: %w", err)
	}
	b, _ := c.in.Peek(n)
	c.header = format.PageHeader{}
	if c.dec == nil {
		c.dec = compact.NewReaderFromBytes(b)
	} else {
		c.dec.ResetBytes(b)
	}
	if err := thrift.NewDecoder(c.dec).Decode(&c.header); err != nil {
		return fmt.Errorf("page header: %w", err)
	}
	_, err = c.in.Discard(n)
	return err
}

// readBody reads the n bytes of a page, in steps: the header may lie.
func (c *chunkReader) readBody(n int) error {
	const step = 1 << 22
	c.raw = c.raw[:0]
	for len(c.raw) < n {
		have := len(c.raw)
		c.raw = grow(c.raw, min(n, have+step)+8)[:min(n, have+step)]
		if _, err := io.ReadFull(c.in, c.raw[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	if crc := c.header.CRC; crc != 0 && crc != int32(crc32.ChecksumIEEE(c.raw)) {
		return fmt.Errorf("page checksum differs")
	}
	return nil
}

// inflate decompresses src to n bytes.
func (c *chunkReader) inflate(src []byte, n int, compressed bool) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("page of %d bytes", n)
	}
	if !compressed || c.codec == format.Uncompressed {
		if len(src) != n {
			return nil, fmt.Errorf("page of %d bytes where its header says %d", len(src), n)
		}
		return padded(src), nil
	}
	if n == 0 {
		return padded(nil), nil
	}
	c.data = grow(c.data, n+8)[:n]
	return c.data, decompress(c.codec, c.data, src)
}

// padded returns b with room for 8 bytes more.
func padded(b []byte) []byte {
	if cap(b)-len(b) >= 8 {
		return b
	}
	return append(make([]byte, 0, len(b)+8), b...)
}

// oldDictionary is what files from before 2015 call dictionary pages and the codes into
// them, and some writers still do.
const oldDictionary = format.Encoding(2)

func (c *chunkReader) dictionary(h *format.DictionaryPageHeader) (page, error) {
	if h.Encoding != format.Plain && h.Encoding != oldDictionary {
		return page{}, fmt.Errorf("dictionary encoded as %v", h.Encoding)
	}
	b, err := c.inflate(c.raw, int(c.header.UncompressedPageSize), true)
	if h.NumValues < 0 || err == nil && int(h.NumValues) > len(b) {
		return page{}, fmt.Errorf("dictionary of %d values", h.NumValues)
	}
	return page{dict: true, n: int(h.NumValues), enc: format.Plain, values: b}, err
}

func (c *chunkReader) count(n int32) error {
	if n < 0 || int64(n) > c.left {
		return fmt.Errorf("page of %d values where %d are left", n, c.left)
	}
	c.left -= int64(n)
	return nil
}

func (c *chunkReader) v1(h *format.DataPageHeader) (page, error) {
	if err := c.count(h.NumValues); err != nil {
		return page{}, err
	}
	b, err := c.inflate(c.raw, int(c.header.UncompressedPageSize), true)
	if err != nil {
		return page{}, err
	}
	p := page{n: int(h.NumValues), enc: h.Encoding, values: b}
	if !c.optional {
		return p, nil
	}
	if h.DefinitionLevelEncoding != format.RLE {
		return page{}, fmt.Errorf("levels encoded as %v are not supported", h.DefinitionLevelEncoding)
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return page{}, errHybrid
	}
	k := int(binary.LittleEndian.Uint32(b))
	p.levels, p.values = b[4:4+k], b[4+k:]
	return p, nil
}

func (c *chunkReader) v2(h *format.DataPageHeaderV2) (page, error) {
	if err := c.count(h.NumValues); err != nil {
		return page{}, err
	}
	k := int(h.DefinitionLevelsByteLength)
	if h.RepetitionLevelsByteLength != 0 || k < 0 || k > len(c.raw) {
		return page{}, errHybrid
	}
	p := page{n: int(h.NumValues), enc: h.Encoding}
	if c.optional {
		p.levels = c.raw[:k]
	}
	compressed := !h.IsCompressed.Valid || h.IsCompressed.V
	var err error
	p.values, err = c.inflate(c.raw[k:], int(c.header.UncompressedPageSize)-k, compressed)
	return p, err
}

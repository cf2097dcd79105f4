package trace

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/tierscope/tierscope/run"
)

// codecOf returns the codec for a word of the configuration.
func codecOf(name string) (format.CompressionCodec, error) {
	switch name {
	case "", "zstd":
		return format.Zstd, nil
	case "snappy":
		return format.Snappy, nil
	case "gzip":
		return format.Gzip, nil
	case "none":
		return format.Uncompressed, nil
	}
	return 0, run.Errorf(run.Misuse, "compression %q: want zstd, snappy, gzip or none", name)
}

// compressor compresses pages, one after the other.
type compressor struct {
	codec format.CompressionCodec
	zstd  *zstd.Encoder
	gzip  *gzip.Writer
	buf   bytes.Buffer
	out   []byte
}

func newCompressor(codec format.CompressionCodec, level int) (*compressor, error) {
	c := &compressor{codec: codec}
	var err error
	switch codec {
	case format.Zstd:
		if level == 0 {
			level = 1
		}
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithWindowSize(1<<18))
	case format.Gzip:
		if level == 0 {
			level = gzip.BestSpeed
		}
		c.gzip, err = gzip.NewWriterLevel(nil, level)
	}
	if err != nil {
		return nil, run.Errorf(run.Misuse, "compression level %d: %w", level, err)
	}
	return c, nil
}

// shrink returns src in fewer bytes, or false if that cannot be done. The
// result is valid until the next call.
func (c *compressor) shrink(src []byte) ([]byte, bool) {
	if len(src) < 48 || c.codec == format.Uncompressed {
		return nil, false
	}
	out := c.compress(src)
	return out, len(out) < len(src)
}

// compress returns src compressed, valid until the next call.
func (c *compressor) compress(src []byte) []byte {
	switch c.codec {
	case format.Zstd:
		c.out = c.zstd.EncodeAll(src, c.out[:0])
	case format.Snappy:
		c.out = snappy.Encode(c.out[:cap(c.out)], src)
	case format.Gzip:
		c.buf.Reset()
		c.gzip.Reset(&c.buf)
		c.gzip.Write(src)
		c.gzip.Close()
		c.out = append(c.out[:0], c.buf.Bytes()...)
	default:
		return src
	}
	return c.out
}

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}}

// decompress fills dst with what src holds; a different length is an error.
func decompress(codec format.CompressionCodec, dst, src []byte) error {
	n := 0
	switch codec {
	case format.Zstd:
		d := zstdDecoders.Get().(*zstd.Decoder)
		out, err := d.DecodeAll(src, dst[:0:len(dst)])
		zstdDecoders.Put(d)
		if err != nil {
			return err
		}
		n = len(out)
	case format.Snappy:
		size, err := snappy.DecodedLen(src)
		if err != nil {
			return err
		}
		if size == len(dst) {
			if _, err = snappy.Decode(dst, src); err != nil {
				return err
			}
		}
		n = size
	case format.Gzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return err
		}
		if n, err = io.ReadFull(r, dst); err != nil {
			return err
		}
		if k, _ := r.Read(make([]byte, 1)); k > 0 {
			n++
		}
	case format.Lz4Raw:
		var err error
		if n, err = lz4.UncompressBlock(src, dst); err != nil {
			return err
		}
	default:
		return fmt.Errorf("compression %v is not supported (zstd, snappy, gzip, lz4_raw and none are)", codec)
	}
	if n != len(dst) {
		return fmt.Errorf("page of %d bytes where its header says %d", n, len(dst))
	}
	return nil
}

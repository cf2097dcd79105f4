package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/tierscope/tierscope/run"
)

// GraphLogName is the compact record of a live run inside its directory.
const GraphLogName = "graph/graph.log"

// The graph log is the compact form of what an engine did: what the engine's
// child process wrote into its ring, record by record, each framed so that a
// torn end is seen. All numbers are little endian:
//
//	0   8 bytes  "TSGRAPH1"
//	then frames:
//	0   u32      n, length of the payload
//	4   u32      CRC-32C of the kind byte and the payload
//	8   u8       kind; bit 7 set: the payload is zstd-compressed
//	9   n bytes  payload
//
// A writer that dies leaves at most one frame that is short or fails its
// checksum; reading stops in front of it and says so. Nothing behind a bad frame is
// believed.
const graphMagic = "TSGRAPH1"

// EmptyGraphLog is the size in bytes of a log without records.
const EmptyGraphLog = int64(len(graphMagic))

// Kinds of records in a graph log. They are the kinds of the child's ring too.
const (
	KindTables   = 16 + iota // ggml.Tables as JSON
	KindEngine               // Engine as JSON
	KindBuffer               // ggml.Buffer as JSON
	KindTemplate             // ggml.Template
	KindEval                 // ggml.Eval
	KindStep                 // Step
	KindMark                 // observe.Mark
	KindKV                   // KVOp
	KindMaps                 // text of /proc/PID/maps
	KindOutput               // Output as JSON: a finished request
	KindTrial                // Trial: one block of the calibration, as JSON
	KindIdle                 // ggml.Eval during the calibration: same cost, no part of the trace
	KindModel                // Model as JSON: the model file, told by the parent
	KindEnd                  // End as JSON: the last record
)

const (
	compressed   = 0x80
	frameHeader  = 9
	maxRecord    = 16 << 20 // of a payload as it was appended; the child's ring holds half of it
	compressFrom = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// GraphWriter appends records to a graph log. One goroutine.
type GraphWriter struct {
	f   *os.File
	w   *bufio.Writer
	enc *zstd.Encoder
	buf []byte
}

// CreateGraphLog makes a new log; a file of that name is an error.
func CreateGraphLog(path string) (*GraphWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	// One encoder with a small window: records are at most a few hundred KiB, and the
	// parent's memory is part of what the observer costs.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		f.Close()
		return nil, err
	}
	g := &GraphWriter{f: f, w: bufio.NewWriterSize(f, 64<<10), enc: enc}
	_, err = g.w.WriteString(graphMagic)
	return g, err
}

// Append writes one record. It reaches the kernel at the next Flush.
func (g *GraphWriter) Append(kind uint8, payload []byte) error {
	if len(payload) > maxRecord {
		return fmt.Errorf("graph log: record of %d bytes is too long", len(payload))
	}
	if len(payload) >= compressFrom {
		if g.buf = g.enc.EncodeAll(payload, g.buf[:0]); len(g.buf) < len(payload) {
			payload, kind = g.buf, kind|compressed
		}
	}
	var h [frameHeader]byte
	binary.LittleEndian.PutUint32(h[:], uint32(len(payload)))
	h[8] = kind
	crc := crc32.Update(crc32.Checksum(h[8:], castagnoli), castagnoli, payload)
	binary.LittleEndian.PutUint32(h[4:], crc)
	if _, err := g.w.Write(h[:]); err != nil {
		return run.IOError(err)
	}
	if _, err := g.w.Write(payload); err != nil {
		return run.IOError(err)
	}
	return nil
}

// Flush hands everything to the kernel, where it survives the death of this
// process.
func (g *GraphWriter) Flush() error {
	return run.IOError(g.w.Flush())
}

// Close flushes, syncs and closes.
func (g *GraphWriter) Close() error {
	return errors.Join(g.Flush(), g.f.Sync(), g.f.Close(), g.enc.Close())
}

// GraphReader reads a graph log from its beginning. One goroutine.
type GraphReader struct {
	f    *os.File
	r    *bufio.Reader
	dec  *zstd.Decoder
	raw  []byte
	out  []byte
	off  int64
	size int64
	torn error
}

// OpenGraphLog opens a log.
func OpenGraphLog(path string) (*GraphReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	g := &GraphReader{f: f, r: bufio.NewReaderSize(f, 256<<10), off: int64(len(graphMagic))}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	g.size = st.Size()
	magic := make([]byte, len(graphMagic))
	if _, err := io.ReadFull(g.r, magic); err != nil || string(magic) != graphMagic {
		f.Close()
		return nil, run.Errorf(run.Corrupt, "%s is no graph log: it starts with %q", path, magic)
	}
	g.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecord))
	if err != nil {
		f.Close()
		return nil, err
	}
	return g, nil
}

// Next returns the next record; its payload is valid until the next call. It
// returns io.EOF at the end, also at a torn end: ask [GraphReader.Torn].
func (g *GraphReader) Next() (kind uint8, payload []byte, err error) {
	if g.torn != nil {
		return 0, nil, io.EOF
	}
	var h [frameHeader]byte
	if _, err := io.ReadFull(g.r, h[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			g.tear("its header is cut off")
		}
		return 0, nil, g.ended(err)
	}
	n := binary.LittleEndian.Uint32(h[:])
	if n > maxRecord || int64(n) > g.size-g.off-frameHeader {
		g.tear("it is cut off, or its length is wrong")
		return 0, nil, io.EOF
	}
	if cap(g.raw) < int(n) {
		g.raw = make([]byte, n)
	}
	g.raw = g.raw[:n]
	if _, err := io.ReadFull(g.r, g.raw); err != nil {
		g.tear("it is cut off")
		return 0, nil, g.ended(err)
	}
	if crc32.Update(crc32.Checksum(h[8:], castagnoli), castagnoli, g.raw) != binary.LittleEndian.Uint32(h[4:]) {
		g.tear("its checksum is wrong")
		return 0, nil, io.EOF
	}
	payload = g.raw
	if h[8]&compressed != 0 {
		if g.out, err = g.dec.DecodeAll(g.raw, g.out[:0]); err != nil {
			g.tear("it does not decompress")
			return 0, nil, io.EOF
		}
		payload = g.out
	}
	g.off += int64(frameHeader) + int64(n)
	return h[8] &^ compressed, payload, nil
}

// ended is io.EOF where the file ends, and what went wrong where it does not.
func (g *GraphReader) ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return run.IOError(fmt.Errorf("%s: %w", g.f.Name(), err))
}

func (g *GraphReader) tear(what string) {
	g.torn = run.Errorf(run.Corrupt, "%s: record at byte %d: %s", g.f.Name(), g.off, what)
}

// Torn is the reason why reading ended before the end of the file, nil if it
// did not.
func (g *GraphReader) Torn() error { return g.torn }

// Offset is the number of bytes that were read as whole records.
func (g *GraphReader) Offset() int64 { return g.off }

// Close closes the file.
func (g *GraphReader) Close() error {
	g.dec.Close()
	return g.f.Close()
}

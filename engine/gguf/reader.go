package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"

	"github.com/tierscope/tierscope/run"
)

// Bounds on what a header may hold, far above any published model. They and
// the file's own size bound all memory used for reading one.
const (
	maxPairs     = 1 << 16
	maxTensors   = 1 << 20
	maxKey       = 1 << 16 // bytes, of the GGUF specification
	maxName      = 64      // bytes, of ggml with its final zero
	maxKept      = 1 << 16 // bytes of a string that are kept; chat templates are longer than names
	maxKeptAll   = 16 << 20
	maxKeptItems = 4096
)

// Open reads the header of the GGUF at path. A file that is no GGUF, is of
// another version or byte order, is damaged or shorter than its tensors is a
// run.Corrupt error; a directory is run.Misuse; a file that cannot be read is
// run.IO. Every error names the path. It never allocates more than a small
// multiple of the header's size.
func Open(path string) (*File, error) {
	fd, err := os.Open(path)
	if err != nil {
		return nil, run.Errorf(run.IO, "model: %w", err)
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		return nil, run.Errorf(run.IO, "model: %w", err)
	}
	switch {
	case st.IsDir():
		return nil, run.Errorf(run.Misuse, "model %s is a directory; name the .gguf file in it", path)
	case !st.Mode().IsRegular():
		return nil, run.Errorf(run.Misuse, "model %s is not a regular file", path)
	}
	f, err := read(fd, st.Size())
	if err != nil {
		var io *ioError
		if errors.As(err, &io) {
			return nil, run.Errorf(run.IO, "model %s: %w", path, io.err)
		}
		return nil, run.Errorf(run.Corrupt, "model %s: %w", path, err)
	}
	f.Path = path
	return f, nil
}

// ioError is an error of the disk, not of the file's content.
type ioError struct{ err error }

func (e *ioError) Error() string { return e.err.Error() }

// errShort is the end of the file inside the header.
var errShort = errors.New("truncated: the file ends inside its header; fetch it again")

type reader struct {
	r    *bufio.Reader
	pos  int64
	size int64
	kept int64
	buf  [8]byte
}

func read(r io.Reader, size int64) (*File, error) {
	if size == 0 {
		return nil, errors.New("the file is empty")
	}
	d := &reader{r: bufio.NewReaderSize(r, 64<<10), size: size}
	var magic [4]byte
	if err := d.full(magic[:]); err != nil {
		return nil, errors.New("not a GGUF: shorter than its magic")
	}
	switch string(magic[:]) {
	case "GGUF":
	case "FUGG":
		return nil, errBigEndian
	default:
		return nil, fmt.Errorf("not a GGUF: it starts with %q, not \"GGUF\"", magic[:])
	}
	version, err := d.u32()
	if err != nil {
		return nil, err
	}
	if version != 2 && version != 3 {
		if s := bits.ReverseBytes32(version); s >= 1 && s <= 3 {
			return nil, errBigEndian
		}
		return nil, fmt.Errorf("GGUF version %d is not supported, only 2 and 3", version)
	}
	f := &File{Version: int(version), Size: size, Meta: Metadata{}}
	tensors, err := d.count("tensors", 24, maxTensors)
	if err != nil {
		return nil, err
	}
	pairs, err := d.count("metadata pairs", 13, maxPairs)
	if err != nil {
		return nil, err
	}
	for i := range pairs {
		if err := d.pair(f.Meta); err != nil {
			return nil, fmt.Errorf("metadata pair %d: %w", i, err)
		}
	}
	if err := d.tensors(f, tensors); err != nil {
		return nil, err
	}
	if f.Shape, err = shapeOf(f.Meta, f.Tensors); err != nil {
		return nil, err
	}
	f.Splits = int(clamp(f.Meta.Int("split.count", 1), 1, math.MaxUint16))
	if on, _ := f.Meta["tierscope.synthetic"].(bool); on {
		f.Synthetic = &Slice{
			Preset:     f.Meta.String("tierscope.preset"),
			FullLayers: int(clamp(f.Meta.Int("tierscope.full_layers", 0), 0, maxLayers)),
		}
	}
	return f, nil
}

var errBigEndian = errors.New("a big-endian GGUF; convert it to little-endian")

// count reads a number of things that take at least min bytes each.
func (d *reader) count(what string, min int64, max uint64) (int, error) {
	n, err := d.u64()
	if err != nil {
		return 0, err
	}
	if n > max {
		return 0, fmt.Errorf("%d %s are more than any model has", n, what)
	}
	if n > uint64((d.size-d.pos)/min) {
		return 0, fmt.Errorf("truncated: %d %s do not fit into a file of %d bytes; fetch it again", n, what, d.size)
	}
	return int(n), nil
}

// full reads len(b) bytes.
func (d *reader) full(b []byte) error {
	n, err := io.ReadFull(d.r, b)
	d.pos += int64(n)
	return short(err)
}

func short(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errShort
	}
	return &ioError{err}
}

// skip passes over n bytes, which the file must still hold.
func (d *reader) skip(n int64) error {
	if n > d.size-d.pos {
		return errShort
	}
	for n > 0 {
		c, err := d.r.Discard(int(min(n, 1<<30)))
		d.pos += int64(c)
		n -= int64(c)
		if err != nil {
			return short(err)
		}
	}
	return nil
}

func (d *reader) u32() (uint32, error) {
	err := d.full(d.buf[:4])
	return binary.LittleEndian.Uint32(d.buf[:4]), err
}

func (d *reader) u64() (uint64, error) {
	err := d.full(d.buf[:8])
	return binary.LittleEndian.Uint64(d.buf[:8]), err
}

// text reads a string and keeps its first keep bytes.
func (d *reader) text(keep int64) (string, int64, error) {
	n, err := d.u64()
	if err != nil {
		return "", 0, err
	}
	if n > uint64(d.size-d.pos) {
		return "", 0, errShort
	}
	b := make([]byte, min(int64(n), keep))
	if err := d.full(b); err != nil {
		return "", 0, err
	}
	return string(b), int64(n), d.skip(int64(n) - int64(len(b)))
}

func (d *reader) pair(m Metadata) error {
	key, n, err := d.text(maxKey)
	switch {
	case err != nil:
		return err
	case n == 0 || n > maxKey:
		return fmt.Errorf("a key of %d bytes", n)
	case len(m) > 0:
		if _, twice := m[key]; twice {
			return fmt.Errorf("key %q is there twice", key)
		}
	}
	d.kept += n
	kind, err := d.u32()
	if err != nil {
		return err
	}
	v, err := d.value(kind)
	if err != nil {
		return fmt.Errorf("key %.80q: %w", key, err)
	}
	if d.kept > maxKeptAll {
		return fmt.Errorf("metadata strings of more than %d bytes", maxKeptAll)
	}
	m[key] = v
	return nil
}

func (d *reader) value(kind uint32) (any, error) {
	switch {
	case kind == kindString:
		s, _, err := d.text(maxKept)
		d.kept += int64(len(s))
		return s, err
	case kind == kindArray:
		return d.array()
	case kind > kindFloat64:
		return nil, fmt.Errorf("value type %d is unknown", kind)
	}
	b := d.buf[:kindSize[kind]]
	if err := d.full(b); err != nil {
		return nil, err
	}
	return number(kind, b), nil
}

// number decodes a value of fixed size.
func number(kind uint32, b []byte) any {
	le := binary.LittleEndian
	switch kind {
	case kindUint8:
		return int64(b[0])
	case kindInt8:
		return int64(int8(b[0]))
	case kindUint16:
		return int64(le.Uint16(b))
	case kindInt16:
		return int64(int16(le.Uint16(b)))
	case kindUint32:
		return int64(le.Uint32(b))
	case kindInt32:
		return int64(int32(le.Uint32(b)))
	case kindFloat32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case kindBool:
		return b[0] != 0
	case kindInt64:
		return int64(le.Uint64(b))
	case kindFloat64:
		return math.Float64frombits(le.Uint64(b))
	}
	if v := le.Uint64(b); v > math.MaxInt64 {
		return v
	}
	return int64(le.Uint64(b))
}

func (d *reader) array() (any, error) {
	kind, err := d.u32()
	if err != nil {
		return nil, err
	}
	n, err := d.u64()
	if err != nil {
		return nil, err
	}
	if kind == kindArray || kind > kindFloat64 {
		return nil, fmt.Errorf("array of type %d is not supported", kind)
	}
	size := kindSize[kind]
	if n > uint64((d.size-d.pos)/max(size, 8*b2i(kind == kindString))) {
		return nil, errShort
	}
	a := Array{Len: int64(n)}
	if kind == kindString {
		for range n {
			if _, _, err := d.text(0); err != nil {
				return nil, err
			}
		}
		return a, nil
	}
	if n > maxKeptItems {
		return a, d.skip(int64(n) * size)
	}
	d.kept += int64(n) * 16
	a.Values = make([]any, n)
	for i := range a.Values {
		if a.Values[i], err = d.value(kind); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func clamp(v, lo, hi int64) int64 { return max(lo, min(v, hi)) }

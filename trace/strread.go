package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
)

type strReader struct {
	colReader[uint32]
	dict *observe.Dict
}

func newStrReader() *strReader {
	r := &strReader{dict: observe.NewDict()}
	r.kind = &strValues{dict: r.dict, known: map[string]uint32{}}
	return r
}

var errStrings = errors.New("strings overrun their page")

// strValues turns strings into codes of a dictionary that all chunks of the
// column share.
type strValues struct {
	dict  *observe.Dict
	known map[string]uint32 // as in dict, but asked without making a string
	codes []uint32
}

func (v *strValues) marks() []mark { return nil }

func (v *strValues) check(e *format.SchemaElement) error {
	if e.Type.V != format.ByteArray {
		return fmt.Errorf("is %v, not a string", e.Type.V)
	}
	return nil
}

func (v *strValues) code(b []byte) uint32 {
	c, ok := v.known[string(b)]
	if !ok {
		s := string(b)
		c = v.dict.Code(s)
		v.known[s] = c
	}
	return c
}

func (v *strValues) dictionary(p page) ([]uint32, error) { return v.plain(p, p.n) }

func (v *strValues) plain(p page, limit int) ([]uint32, error) {
	if err := checkValueCount(p, limit); err != nil {
		return nil, err
	}
	v.codes = v.codes[:0]
	switch p.enc {
	case format.Plain:
		for b := p.values; len(b) > 0 && len(v.codes) < limit; {
			if len(b) < 4 {
				return nil, errStrings
			}
			n := uint64(binary.LittleEndian.Uint32(b))
			if n > uint64(len(b)-4) {
				return nil, errStrings
			}
			v.codes = append(v.codes, v.code(b[4:4+n]))
			b = b[4+n:]
		}
	case format.DeltaLengthByteArray:
		data, offsets, err := parquet.LookupEncoding(p.enc).DecodeByteArray(nil, p.values, nil)
		if err != nil {
			return nil, err
		}
		for i := 1; i < len(offsets); i++ {
			lo, hi := offsets[i-1], offsets[i]
			if lo > hi || uint64(hi) > uint64(len(data)) {
				return nil, errStrings
			}
			v.codes = append(v.codes, v.code(data[lo:hi]))
		}
	default:
		return nil, fmt.Errorf("strings encoded as %v are not supported", p.enc)
	}
	return v.codes, nil
}

package trace

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
)

type numReader[T observe.Number] struct{ colReader[T] }

func newNumReader[T observe.Number]() *numReader[T] {
	r := &numReader[T]{}
	r.kind = &numValues[T]{}
	return r
}

// numValues reads any integer type and doubles. A negative number in an
// unsigned column of 64 bits is a wrapped one: files of mrm-trace 0.1.0 are
// signed.
type numValues[T observe.Number] struct {
	physical format.Type
	unsigned bool
	i64      []int64
	i32      []int32
	out      []T
	bad      []mark
	anyBad   bool
}

func (v *numValues[T]) marks() []mark {
	if !v.anyBad {
		return nil
	}
	return v.bad
}

func (v *numValues[T]) check(e *format.SchemaElement) error {
	v.physical = e.Type.V
	v.unsigned = false
	switch t := e.LogicalType.Value.(type) {
	case nil:
	case *format.IntType:
		v.unsigned = !t.IsSigned
	default:
		return fmt.Errorf("is %v, not an integer", t)
	}
	switch v.physical {
	case format.Int32, format.Int64, format.Double, format.Float:
		return nil
	}
	return fmt.Errorf("is %v, not an integer", v.physical)
}

func (v *numValues[T]) dictionary(p page) ([]T, error) { return v.plain(p, p.n) }

func (v *numValues[T]) plain(p page, limit int) ([]T, error) {
	v.anyBad = false
	if err := checkValueCount(p, limit); err != nil {
		return nil, err
	}
	var err error
	switch v.physical {
	case format.Int64:
		if v.i64, err = v.int64s(p, limit); err != nil {
			return nil, err
		}
		if kindOf[T]().bits() == 64 {
			return view[T](v.i64), nil
		}
		v.reset(len(v.i64))
		for i, x := range v.i64 {
			v.out[i] = T(x)
			if int64(v.out[i]) != x {
				v.miss(i)
			}
		}
	case format.Int32:
		if v.i32, err = v.int32s(p, limit); err != nil {
			return nil, err
		}
		k := kindOf[T]()
		if k.bits() == 32 && k.signed() != v.unsigned {
			return view[T](v.i32), nil
		}
		v.reset(len(v.i32))
		for i, x := range v.i32 {
			wide := int64(x)
			if v.unsigned {
				wide = int64(uint32(x))
			}
			v.out[i] = T(wide)
			if int64(v.out[i]) != wide {
				v.miss(i)
			}
		}
	default:
		return v.doubles(p, limit)
	}
	return v.out, nil
}

func (v *numValues[T]) reset(n int) {
	v.out = grow(v.out, n)
	v.bad = grow(v.bad, n)
	clear(v.bad)
}

func (v *numValues[T]) miss(i int) { v.drop(i, unfit) }

func (v *numValues[T]) drop(i int, m mark) { v.out[i], v.bad[i], v.anyBad = 0, m, true }

func (v *numValues[T]) int64s(p page, limit int) ([]int64, error) {
	if p.enc == format.Plain {
		n := min(limit, len(p.values)/8)
		dst := grow(v.i64, n)
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(p.values[8*i:]))
		}
		return dst, nil
	}
	return parquet.LookupEncoding(p.enc).DecodeInt64(v.i64, p.values)
}

func (v *numValues[T]) int32s(p page, limit int) ([]int32, error) {
	if p.enc == format.Plain {
		n := min(limit, len(p.values)/4)
		dst := grow(v.i32, n)
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint32(p.values[4*i:]))
		}
		return dst, nil
	}
	return parquet.LookupEncoding(p.enc).DecodeInt32(v.i32, p.values)
}

// doubles accepts whole numbers and takes NaN for null, as pandas writes
// integers with gaps.
func (v *numValues[T]) doubles(p page, limit int) ([]T, error) {
	size := 8
	if v.physical == format.Float {
		size = 4
	}
	b := p.values
	if p.enc != format.Plain {
		return nil, fmt.Errorf("doubles encoded as %v are not supported", p.enc)
	}
	n := min(limit, len(b)/size)
	v.reset(n)
	for i := range n {
		var x float64
		if size == 8 {
			x = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			x = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		switch {
		case math.IsNaN(x):
			v.drop(i, isNaN)
		case x != math.Trunc(x):
			return nil, fmt.Errorf("holds %v, not a whole number", x)
		default:
			v.whole(i, x)
		}
	}
	return v.out, nil
}

// whole stores x, which is a whole number.
func (v *numValues[T]) whole(i int, x float64) {
	const two63, two64 = 1 << 63, 1 << 64
	k := kindOf[T]()
	switch {
	case x >= -two63 && x < 0:
		v.out[i] = T(int64(x))
		if k.bits() < 64 && float64(v.out[i]) != x {
			v.miss(i)
		}
	case x >= 0 && x < two64:
		v.out[i] = T(uint64(x))
		if float64(v.out[i]) != x {
			v.miss(i)
		}
	default:
		v.miss(i)
	}
}

// checkValueCount refuses a page whose delta header promises more values than
// the page or its bytes can have, before anything is allocated for them.
func checkValueCount(p page, limit int) error {
	switch p.enc {
	case format.Plain, format.ByteStreamSplit:
		return nil
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
	default:
		return fmt.Errorf("encoding %v is not supported", p.enc)
	}
	b := p.values
	var head [3]uint64 // block size, miniblocks, values
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return fmt.Errorf("delta header is damaged")
		}
		head[i], b = v, b[n:]
	}
	if head[0] > 1<<16 || head[1] == 0 || head[1] > head[0] || head[2] > uint64(limit) || head[2] > maxPageValues {
		return fmt.Errorf("delta header promises %d values in a page of %d", head[2], limit)
	}
	if blocks := uint64(len(b)) / (1 + head[1]); head[2] > 1+blocks*head[0] && p.enc == format.DeltaBinaryPacked {
		return fmt.Errorf("delta header promises %d values in %d bytes", head[2], len(b))
	}
	return nil
}

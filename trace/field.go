package trace

import (
	"unsafe"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tierscope/tierscope/observe"
)

// kind is the type of a column in a file.
type kind uint8

const (
	kindString kind = iota
	kindUint8
	kindUint16
	kindUint32
	kindUint64
	kindInt32
	kindInt64
)

// kindOf returns the kind of T.
func kindOf[T observe.Number]() kind {
	var zero T
	signed := zero-1 < zero
	switch unsafe.Sizeof(zero) {
	case 1:
		return kindUint8
	case 2:
		return kindUint16
	case 4:
		if signed {
			return kindInt32
		}
		return kindUint32
	}
	if signed {
		return kindInt64
	}
	return kindUint64
}

// bits is the width of an integer kind.
func (k kind) bits() int8 {
	return [...]int8{kindUint8: 8, kindUint16: 16, kindUint32: 32, kindUint64: 64, kindInt32: 32, kindInt64: 64}[k]
}

func (k kind) signed() bool { return k == kindInt32 || k == kindInt64 }

func (k kind) physical() format.Type {
	switch k {
	case kindString:
		return format.ByteArray
	case kindUint64, kindInt64:
		return format.Int64
	}
	return format.Int32
}

// field is the name and type of a column in a file. All are nullable.
type field struct {
	name string
	kind kind
}

func (f field) element() format.SchemaElement {
	e := format.SchemaElement{
		Name:           f.name,
		Type:           thrift.New(f.kind.physical()),
		RepetitionType: thrift.New(format.Optional),
	}
	if f.kind == kindString {
		e.ConvertedType = thrift.New(deprecated.UTF8)
		e.LogicalType = format.LogicalType{Value: &format.StringType{}}
		return e
	}
	e.ConvertedType = thrift.New(map[kind]deprecated.ConvertedType{
		kindUint8: deprecated.Uint8, kindUint16: deprecated.Uint16, kindUint32: deprecated.Uint32,
		kindUint64: deprecated.Uint64, kindInt32: deprecated.Int32, kindInt64: deprecated.Int64,
	}[f.kind])
	e.LogicalType = format.LogicalType{Value: &format.IntType{BitWidth: f.kind.bits(), IsSigned: f.kind.signed()}}
	return e
}

// view returns the values of s as To, which must have the same size.
func view[To, From any](s []From) []To {
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

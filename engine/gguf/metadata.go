package gguf

import "math"

// Value types of metadata, as stored.
const (
	kindUint8 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

// kindSize is the bytes of a value of fixed size; 0 for string and array.
var kindSize = [13]int64{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// Metadata are the key-value pairs of a file: bool, string, int64, uint64
// (only above the range of int64), float64, or Array.
type Metadata map[string]any

// Array is an array of metadata. Arrays of numbers and truth values up to 4096
// elements are kept; of others only the length is known (a vocabulary is large
// and its strings are never needed here).
type Array struct {
	Len    int64
	Values []any // nil if not kept
}

// String returns the string under key, or "".
func (m Metadata) String(key string) string {
	s, _ := m[key].(string)
	return s
}

// Int returns the integer under key, or def when there is none; a float that
// is no whole number is none.
func (m Metadata) Int(key string, def int64) int64 {
	if v, ok := toInt(m[key]); ok {
		return v
	}
	return def
}

// Float returns the finite number under key, or def when there is none.
func (m Metadata) Float(key string, def float64) float64 {
	switch v := m[key].(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return def
		}
		return v
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	}
	return def
}

func toInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

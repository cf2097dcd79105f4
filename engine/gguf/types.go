package gguf

import (
	"fmt"
	"strings"
)

// Type is the number of a ggml tensor type, as stored in a GGUF.
type Type uint32

// The types that the writer can fill; Type knows all others by number.
const (
	F32   Type = 0
	F16   Type = 1
	Q4_0  Type = 2
	Q4_1  Type = 3
	Q5_0  Type = 6
	Q5_1  Type = 7
	Q8_0  Type = 8
	Q2K   Type = 10
	Q3K   Type = 11
	Q4K   Type = 12
	Q5K   Type = 13
	Q6K   Type = 14
	IQ4NL Type = 20
	IQ4XS Type = 23
	BF16  Type = 30
	MXFP4 Type = 39
)

type typeInfo struct {
	name  string
	block int64 // elements in a block
	bytes int64 // bytes of a block
}

// typeTable is ggml's type_traits (ggml/src/ggml.c), the block structures being
// those of ggml/src/ggml-common.h. Numbers that are missing were removed from
// ggml. A test compares it with the engine library.
var typeTable = map[Type]typeInfo{
	0: {"f32", 1, 4}, 1: {"f16", 1, 2}, 30: {"bf16", 1, 2}, 28: {"f64", 1, 8},
	24: {"i8", 1, 1}, 25: {"i16", 1, 2}, 26: {"i32", 1, 4}, 27: {"i64", 1, 8},
	2: {"q4_0", 32, 18}, 3: {"q4_1", 32, 20}, 6: {"q5_0", 32, 22}, 7: {"q5_1", 32, 24},
	8: {"q8_0", 32, 34}, 9: {"q8_1", 32, 36},
	10: {"q2_K", 256, 84}, 11: {"q3_K", 256, 110}, 12: {"q4_K", 256, 144},
	13: {"q5_K", 256, 176}, 14: {"q6_K", 256, 210}, 15: {"q8_K", 256, 292},
	16: {"iq2_xxs", 256, 66}, 17: {"iq2_xs", 256, 74}, 18: {"iq3_xxs", 256, 98},
	19: {"iq1_s", 256, 50}, 20: {"iq4_nl", 32, 18}, 21: {"iq3_s", 256, 110},
	22: {"iq2_s", 256, 82}, 23: {"iq4_xs", 256, 136}, 29: {"iq1_m", 256, 56},
	34: {"tq1_0", 256, 54}, 35: {"tq2_0", 256, 66},
	39: {"mxfp4", 32, 17}, 40: {"nvfp4", 64, 36}, 41: {"q1_0", 128, 18}, 42: {"q2_0", 64, 18},
}

// String returns ggml's name of the type, "q4_K" say.
func (t Type) String() string {
	if i, ok := typeTable[t]; ok {
		return i.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// MarshalText gives the name.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Block returns the elements and the bytes of one block, and whether the type
// is known. Types that are not quantised have one element a block.
func (t Type) Block() (elements, bytes int64, ok bool) {
	i, ok := typeTable[t]
	return i.block, i.bytes, ok
}

// RowBytes returns the bytes of n consecutive elements; n is a multiple of the
// block.
func (t Type) RowBytes(n int64) int64 {
	i := typeTable[t]
	if i.block == 0 {
		return 0
	}
	return n / i.block * i.bytes
}

// ParseType returns the type of a name, in upper or lower case.
func ParseType(name string) (Type, bool) {
	for t, i := range typeTable {
		if strings.EqualFold(i.name, name) {
			return t, true
		}
	}
	return 0, false
}

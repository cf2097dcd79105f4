package gguf

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
)

// rng is wyrand: one multiplication a word, good enough for weights and as
// fast as memory. Words depend on the seed alone.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(uint64(*r), uint64(*r)^0xe7037ed1a0b428db)
	return hi ^ lo
}

// at returns the generator of one chunk of one tensor, so that chunks can be
// filled in any order.
func at(seed uint64, tensor, chunk int) rng {
	r := rng(seed)
	r = rng(r.next() + uint64(tensor)*0x9e3779b97f4a7c15)
	r = rng(r.next() + uint64(chunk)*0xd1342543de82ef95)
	return rng(r.next())
}

// words fills b with random bits; its length need not be whole words.
func (r *rng) words(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, r.next())
	}
	if len(b) > 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], r.next())
		copy(b, w[:])
	}
}

// scaled are the quantised types: where a block keeps its scale (and its
// minimum; -1: none) as half floats, the standard deviation of a value with
// random bits at scale 1, and the minimum that makes its mean 0, per scale.
// The deviations follow from the dequantisation in ggml/src/ggml-quants.c with
// all bits uniform: e.g. q4_K is d*sc*q - dmin*m with sc, m in 0..63, q in
// 0..15. A test compares them with the engine's own dequantisation.
var scaled = map[Type]struct {
	d, min int
	std    float64
	ratio  float64
}{
	Q4_0:  {0, -1, 4.637, 0},
	Q4_1:  {0, 2, 4.610, -7.5},
	Q5_0:  {0, -1, 9.247, 0},
	Q5_1:  {0, 2, 9.233, -15.5},
	Q8_0:  {0, -1, 73.9, 0},
	Q2K:   {80, 82, 13.87, 1.5},
	Q3K:   {108, -1, 43.34, 0},
	Q4K:   {0, 2, 258.3, 7.5},
	Q5K:   {0, 2, 526.9, 15.5},
	Q6K:   {208, -1, 1365.7, 0},
	IQ4NL: {0, -1, 67.44, 0},
	IQ4XS: {0, -1, 1246.2, 0},
}

// filler fills chunks of one tensor.
type filler struct {
	t     Type
	block int64 // bytes
	table []uint16
	scale float32
	d, m  uint16
	at    [2]int
	e     byte
	norm  bool
}

// newFiller chooses values for a tensor: norms near 1, biases near 0, matrices
// uniform with deviation 1/sqrt(row), which keeps activations and logits near 1.
func newFiller(t *Tensor) *filler {
	_, block, _ := t.Type.Block()
	f := &filler{t: t.Type, block: block}
	std := 1 / math.Sqrt(float64(t.Shape[0]))
	if strings.Contains(t.Name, "norm") {
		f.norm, std = true, 0.1
	} else if strings.HasSuffix(t.Name, ".bias") || len(t.Shape) == 1 {
		std = 0.1
	}
	switch t.Type {
	case F32:
		f.scale = float32(std * math.Sqrt(3) / (1 << 31))
	case F16, BF16:
		f.table = make([]uint16, 1<<12)
		for i := range f.table {
			v := float32((float64(i)/(1<<11) - 1 + 1.0/(1<<12)) * std * math.Sqrt(3))
			if f.table[i] = half(v); t.Type == BF16 {
				f.table[i] = uint16(math.Float32bits(v) >> 16)
			}
		}
	case MXFP4: // a block's scale is 2^(e-128), its values 0 to 12 by sign
		f.e = byte(clamp(int64(math.Round(128+math.Log2(std/5.852))), 1, 254))
	default:
		s := scaled[t.Type]
		d := std / s.std
		f.at = [2]int{s.d, s.min}
		f.d, f.m = half(float32(d)), half(float32(d*s.ratio))
	}
	return f
}

// fill writes whole blocks into b.
func (f *filler) fill(b []byte, r rng) {
	le := binary.LittleEndian
	switch {
	case f.t == F32:
		one := float32(0)
		if f.norm {
			one = 1
		}
		for ; len(b) >= 8; b = b[8:] {
			w := r.next()
			lo, hi := float32(float32(int32(w))*f.scale), float32(float32(int32(w>>32))*f.scale)
			le.PutUint64(b, uint64(math.Float32bits(one+lo))|uint64(math.Float32bits(one+hi))<<32)
		}
		if len(b) >= 4 {
			le.PutUint32(b, math.Float32bits(one+float32(float32(int32(r.next()))*f.scale)))
		}
	case f.table != nil:
		for len(b) >= 8 {
			w := r.next()
			le.PutUint64(b, uint64(f.table[w&0xfff])|uint64(f.table[w>>16&0xfff])<<16|
				uint64(f.table[w>>32&0xfff])<<32|uint64(f.table[w>>48&0xfff])<<48)
			b = b[8:]
		}
		for w := r.next(); len(b) >= 2; b, w = b[2:], w>>16 {
			le.PutUint16(b, f.table[w&0xfff])
		}
	case f.t == MXFP4:
		r.words(b)
		for ; len(b) > 0; b = b[f.block:] {
			b[0] = f.e
		}
	default:
		r.words(b)
		for ; len(b) > 0; b = b[f.block:] {
			if f.t == Q8_0 {
				noMin(b[2:f.block])
			}
			le.PutUint16(b[f.at[0]:], f.d)
			if f.at[1] >= 0 {
				le.PutUint16(b[f.at[1]:], f.m)
			}
		}
	}
}

// noMin replaces the byte -128, which no q8_0 quantiser writes.
func noMin(b []byte) {
	for i := 0; i < len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:]) ^ 0x8080808080808080
		if (w-0x0101010101010101)&^w&0x8080808080808080 == 0 {
			continue
		}
		for j := i; j < i+8; j++ {
			if b[j] == 0x80 {
				b[j] = 0x81
			}
		}
	}
}

// half returns the bits of the nearest half float to v, ties to even; v is
// within its range.
func half(v float32) uint16 {
	b := math.Float32bits(v)
	sign, a := uint16(b>>16&0x8000), math.Abs(float64(v))
	if a < 1.0/(1<<14) { // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	m := b&0x7fffffff + 0xfff + b>>13&1
	return sign | uint16(m>>13-(127-15)<<10)
}

package trace

import (
	"math/bits"

	"github.com/tierscope/tierscope/observe"
)

// maxDict is how many entries a dictionary of integers may have: beyond it the
// codes are hardly narrower than deltas, and the table leaves the cache.
const maxDict = 1 << 15

// numDict numbers the values of one row group.
type numDict[T observe.Number] struct {
	vals []T
	slot []uint32 // code+1 by hash; 0 = empty
	full bool
}

func (d *numDict[T]) reset() {
	d.vals = d.vals[:0]
	clear(d.slot)
	d.full = false
}

const golden = 0x9e3779b97f4a7c15

// code returns the code of v, or false if the dictionary is full.
func (d *numDict[T]) code(v T) (uint32, bool) {
	if d.full {
		return 0, false
	}
	if 2*(len(d.vals)+1) > len(d.slot) {
		d.rehash()
	}
	shift := 65 - bits.Len(uint(len(d.slot)))
	mask := uint32(len(d.slot) - 1)
	for i := uint32(uint64(v) * golden >> shift); ; i = (i + 1) & mask {
		switch c := d.slot[i]; {
		case c == 0:
			if len(d.vals) == maxDict {
				d.full = true
				return 0, false
			}
			d.vals = append(d.vals, v)
			d.slot[i] = uint32(len(d.vals))
			return uint32(len(d.vals)) - 1, true
		case d.vals[c-1] == v:
			return c - 1, true
		}
	}
}

func (d *numDict[T]) rehash() {
	d.slot = make([]uint32, max(64, 4*len(d.slot)))
	shift := 65 - bits.Len(uint(len(d.slot)))
	mask := uint32(len(d.slot) - 1)
	for k, v := range d.vals {
		i := uint32(uint64(v) * golden >> shift)
		for ; d.slot[i] != 0; i = (i + 1) & mask {
		}
		d.slot[i] = uint32(k) + 1
	}
}

// encode sets codes to the codes of vals; false if the dictionary is full: it
// then takes nothing more in this row group.
func (d *numDict[T]) encode(vals []T, codes *[]int32) bool {
	before := len(d.vals)
	out := grow(*codes, len(vals))
	*codes = out
	var last T
	var code uint32
	ok := false
	for i, v := range vals {
		if !ok || v != last {
			last = v
			if code, ok = d.code(v); !ok {
				d.vals, d.full = d.vals[:before], true
				return false
			}
		}
		out[i] = int32(code)
	}
	return true
}

// repeats reports whether a sample of vals repeats itself enough for a
// dictionary to pay.
func repeats[T observe.Number](vals []T) bool {
	const sample = 1024
	var slot [2 * sample]T
	var used [2 * sample]bool
	n := min(len(vals), sample)
	distinct := 0
	for k := range n {
		v := vals[k*len(vals)/n]
		i := uint64(v) * golden >> (64 - 11)
		for used[i] && slot[i] != v {
			i = (i + 1) % uint64(len(slot))
		}
		if !used[i] {
			used[i], slot[i] = true, v
			distinct++
		}
	}
	return distinct*2 <= n
}

package trace

import (
	"encoding/binary"
	"errors"
)

var errHybrid = errors.New("damaged run of codes or levels")

// hybrid reads the RLE and bit-packed encoding of codes and levels piece by
// piece. Its source has at least 8 bytes of capacity beyond its length.
type hybrid struct {
	src    []byte
	width  uint
	left   int // values left in the current run
	packed bool
	value  uint32 // of a repeated run
	bit    int    // position in bits of the next packed value
	bits   []byte
}

func newHybrid(src []byte, width uint) (hybrid, error) {
	if width > 32 {
		return hybrid{}, errHybrid
	}
	return hybrid{src: src, width: width}, nil
}

// run moves to the next run if the current one is used up.
func (h *hybrid) run() error {
	for h.left == 0 {
		u, n := binary.Uvarint(h.src)
		if n <= 0 {
			return errHybrid
		}
		h.src = h.src[n:]
		count := u >> 1
		if h.packed = u&1 != 0; h.packed {
			// The last group may be cut where only its padding is missing.
			size := min(count*uint64(h.width), uint64(len(h.src)))
			if count > 1<<31 {
				return errHybrid
			}
			h.left = int(count) * 8
			if h.width > 0 {
				h.left = min(h.left, int(size)*8/int(h.width))
				if h.left == 0 && count > 0 {
					return errHybrid
				}
			}
			h.bits, h.src, h.bit = h.src[:size], h.src[size:], 0
			continue
		}
		size := int(h.width+7) / 8
		if count > 1<<31 || len(h.src) < size {
			return errHybrid
		}
		h.left, h.value = int(count), 0
		for i := size - 1; i >= 0; i-- {
			h.value = h.value<<8 | uint32(h.src[i])
		}
		h.src = h.src[size:]
	}
	return nil
}

// same takes n values if they are one repeated value.
func (h *hybrid) same(n int) (uint32, bool, error) {
	if err := h.run(); err != nil {
		return 0, false, err
	}
	if h.packed && h.width > 0 || h.left < n {
		return 0, false, nil
	}
	h.left -= n
	if h.packed {
		return 0, true, nil
	}
	return h.value, true, nil
}

// read fills dst.
func (h *hybrid) read(dst []uint32) error {
	for len(dst) > 0 {
		if err := h.run(); err != nil {
			return err
		}
		n := min(h.left, len(dst))
		out := dst[:n]
		if h.packed {
			h.unpack(out)
		} else {
			for i := range out {
				out[i] = h.value
			}
		}
		h.left -= n
		dst = dst[n:]
	}
	return nil
}

func (h *hybrid) unpack(out []uint32) {
	width, bit, b := h.width, h.bit, h.bits[:cap(h.bits)]
	mask := uint64(1)<<width - 1
	for i := range out {
		w := binary.LittleEndian.Uint64(b[bit>>3:])
		out[i] = uint32(w >> (bit & 7) & mask)
		bit += int(width)
	}
	h.bit = bit
}

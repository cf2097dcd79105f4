package trace

import (
	"encoding/binary"
	"errors"
	"io"
)

var errThrift = errors.New("malformed header")

// maxThriftDepth is deeper than any structure of the format.
const maxThriftDepth = 16

// structLen returns the length of the compact-protocol structure at the start
// of b, or io.ErrUnexpectedEOF if it goes on beyond b. It is asked before
// anything is decoded, since the decoder believes the lengths it meets.
func structLen(b []byte) (int, error) {
	s := thriftScanner{b: b}
	if err := s.structure(0); err != nil {
		return 0, err
	}
	return s.pos, nil
}

type thriftScanner struct {
	b   []byte
	pos int
}

func (s *thriftScanner) varint() (uint64, error) {
	v, n := binary.Uvarint(s.b[s.pos:])
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if n < 0 {
		return 0, errThrift
	}
	s.pos += n
	return v, nil
}

func (s *thriftScanner) skip(n uint64) error {
	if n > uint64(len(s.b)-s.pos) {
		return io.ErrUnexpectedEOF
	}
	s.pos += int(n)
	return nil
}

func (s *thriftScanner) byte() (byte, error) {
	if s.pos >= len(s.b) {
		return 0, io.ErrUnexpectedEOF
	}
	s.pos++
	return s.b[s.pos-1], nil
}

// Types of the compact protocol.
const (
	thriftTrue = iota + 1
	thriftFalse
	thriftInt8
	thriftInt16
	thriftInt32
	thriftInt64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

func (s *thriftScanner) structure(depth int) error {
	if depth > maxThriftDepth {
		return errThrift
	}
	for {
		h, err := s.byte()
		if err != nil || h == 0 {
			return err
		}
		if h>>4 == 0 {
			if _, err := s.varint(); err != nil { // field number in full
				return err
			}
		}
		t := h & 15
		if t == thriftTrue || t == thriftFalse {
			continue // the value is the type
		}
		if err := s.value(t, depth); err != nil {
			return err
		}
	}
}

func (s *thriftScanner) value(t byte, depth int) error {
	switch t {
	case thriftTrue, thriftFalse, thriftInt8:
		return s.skip(1)
	case thriftInt16, thriftInt32, thriftInt64:
		_, err := s.varint()
		return err
	case thriftDouble:
		return s.skip(8)
	case thriftBinary:
		n, err := s.varint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case thriftList, thriftSet:
		return s.list(depth)
	case thriftStruct:
		return s.structure(depth + 1)
	}
	return errThrift // the format has no maps
}

func (s *thriftScanner) list(depth int) error {
	h, err := s.byte()
	if err != nil {
		return err
	}
	n := uint64(h >> 4)
	if n == 15 {
		if n, err = s.varint(); err != nil {
			return err
		}
	}
	if n > uint64(len(s.b)-s.pos) { // an element has at least a byte
		return io.ErrUnexpectedEOF
	}
	for range n {
		if err := s.value(h&15, depth+1); err != nil {
			return err
		}
	}
	return nil
}

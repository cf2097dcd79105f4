//go:build linux

package ggml

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// verifyBuffer makes sure that what stands where a tensor's buffer should is
// one: the library takes it without a look. It must point into this process's
// memory, and the tensor's data must lie in the buffer.
func (l *Lib) verifyBuffer(t ptr) error {
	p := t.buffer()
	if p == 0 {
		return nil
	}
	b, known := l.buffers[p]
	if !known {
		if !mapped(p) {
			return &LayoutError{"buffer of " + t.name()}
		}
		b = l.buffer(p)
		l.buffers[p] = b
	}
	if d := uint64(t.data()); d != 0 && b.Size > 0 && (d < b.Base || d > b.Base+b.Size) {
		return &LayoutError{"buffer of " + t.name()}
	}
	return nil
}

// mapped reports whether an address can be read.
func mapped(p ptr) bool {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var start, end uint64
		span, rest, _ := strings.Cut(sc.Text(), " ")
		if n, _ := fmt.Sscanf(span, "%x-%x", &start, &end); n == 2 && uint64(p) >= start && uint64(p) < end {
			return strings.HasPrefix(rest, "r")
		}
	}
	return false
}

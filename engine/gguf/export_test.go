package gguf

import "bytes"

// Parse reads a header from memory.
func Parse(b []byte) (*File, error) { return read(bytes.NewReader(b), int64(len(b))) }

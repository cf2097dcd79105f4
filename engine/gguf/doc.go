// Package gguf reads the header of a GGUF model file (shape, tensor table,
// file offsets), says which bytes of it a decode token must read, and writes
// synthetic models of any shape with random weights.
//
// The format, versions 2 and 3, little-endian; a string is a uint64 length
// and that many bytes:
//
//	offset  size  field
//	0       4     "GGUF"
//	4       4     version
//	8       8     number of tensors
//	16      8     number of metadata pairs
//	24      ..    pairs: string key, uint32 value type, value
//	..      ..    tensors: string name, uint32 dimensions, uint64 size of each
//	              (fastest first), uint32 type, uint64 offset in the data
//	align   ..    data: each tensor at a multiple of general.alignment (32)
//
// An array value is a uint32 element type, a uint64 count and the elements.
// A torn file is one whose last tensor ends beyond the end of the file.
//
// The reader is our own. github.com/gpustack/gguf-parser-go v0.26.3 gives the
// same table (a test compares them), but a hostile header ends the program:
// nested arrays overflow its stack, which nothing can recover from, and
// split.tensors.count, general.alignment (0, or no uint32) and tensor sizes
// beyond 64 bits panic.
package gguf

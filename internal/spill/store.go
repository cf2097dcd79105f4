// Package spill holds what may outgrow memory: logs of fixed-size records,
// exact order statistics of a log, and an external sort. All of them share a
// [Store], which counts their memory and lends them room in one temporary file.
//
// The file has no format: records lie in it as they lie in memory, each log
// remembers where. It loses its name as soon as it is open, so nothing is left
// behind however the program ends.
package spill

import (
	"fmt"
	"io"
	"os"
	"unsafe"
)

// File is what a [Store] writes to.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Store is the memory that logs may use and the file they spill to. The file is
// made when it is first needed. Not safe for concurrent use.
type Store struct {
	dir   string
	limit int64
	used  int64
	end   int64
	file  File
	open  func(dir string) (File, error)
}

// NewStore returns a store whose logs should hold no more than limit bytes of
// memory and spill to a file in dir ("" is the system's temporary directory).
func NewStore(dir string, limit int64) *Store {
	return NewStoreOn(dir, limit, openTemp)
}

// NewStoreOn is [NewStore] with a function of the caller's that opens the file.
func NewStoreOn(dir string, limit int64, open func(dir string) (File, error)) *Store {
	if dir == "" {
		dir = os.TempDir()
	}
	return &Store{dir: dir, limit: limit, open: open}
}

func openTemp(dir string) (File, error) {
	f, err := os.CreateTemp(dir, "tierscope-spill-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Limit returns the bytes of memory that logs should keep to.
func (s *Store) Limit() int64 { return s.limit }

// Used returns the bytes of memory that logs hold.
func (s *Store) Used() int64 { return s.used }

// Spilled returns the bytes written to the file.
func (s *Store) Spilled() int64 { return s.end }

// Over reports whether the logs hold more memory than they should.
func (s *Store) Over() bool { return s.used > s.limit }

// Close gives the file back. Logs that spilled to it are not to be used
// afterwards.
func (s *Store) Close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

// write appends b to the file and returns where it lies.
func (s *Store) write(b []byte) (int64, error) {
	if s.file == nil {
		f, err := s.open(s.dir)
		if err != nil {
			return 0, fmt.Errorf("spill file in %s cannot be made; name another directory or raise the memory limit: %w", s.dir, err)
		}
		s.file = f
	}
	off := s.end
	if _, err := s.file.WriteAt(b, off); err != nil {
		return 0, fmt.Errorf("spill file in %s cannot be written; name another directory or raise the memory limit: %w", s.dir, err)
	}
	s.end += int64(len(b))
	return off, nil
}

func (s *Store) read(b []byte, off int64) error {
	if _, err := s.file.ReadAt(b, off); err != nil {
		return fmt.Errorf("spill file in %s cannot be read back: %w", s.dir, err)
	}
	return nil
}

// sizeOf returns the size of a T in bytes.
func sizeOf[T any]() int64 { var v T; return int64(unsafe.Sizeof(v)) }

// bytesOf returns the memory of records that hold no pointers.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(sizeOf[T]()))
}

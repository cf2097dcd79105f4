// Package vfs is the small set of file operations with which results are
// written, so that tests can make the disk full, tear writes and cut a program
// off between any two of them.
package vfs

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// File is an open file.
type File interface {
	io.Reader
	io.Writer
	io.WriterAt
	io.Closer
	Sync() error
	Stat() (fs.FileInfo, error)
	Name() string
	Fd() uintptr
}

// FS is a file system. Its methods are safe for concurrent use; errors are those
// of package os.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	// Rename moves old to new and replaces what is there.
	Rename(old, new string) error
	// RenameNew moves old to new; if new exists it fails with [fs.ErrExist].
	RenameNew(old, new string) error
	Remove(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Free returns the bytes that an unprivileged user may still write where
	// path lies.
	Free(path string) (uint64, error)
}

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }
func (osFS) Rename(old, new string) error              { return os.Rename(old, new) }
func (osFS) Remove(name string) error                  { return os.Remove(name) }

func (osFS) RenameNew(old, new string) error {
	err := unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, new, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		// A file system without the flag: a hard link never replaces either.
		if err = os.Link(old, new); err != nil {
			return err
		}
		return os.Remove(old)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
	}
	return nil
}

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

func (osFS) Free(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return s.Bavail * uint64(s.Bsize), nil
}

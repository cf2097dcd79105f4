package vfs

import (
	"io/fs"
	"sync"
)

// Op names an operation for [Faulty].
type Op string

// The operations.
const (
	OpOpen   Op = "open"
	OpWrite  Op = "write"
	OpSync   Op = "sync"
	OpClose  Op = "close"
	OpMkdir  Op = "mkdir"
	OpRename Op = "rename"
	OpRemove Op = "remove"
	OpDir    Op = "syncdir"
	OpFree   Op = "free"
)

// Faulty passes operations on to FS and lets Fault decide about each of them
// first.
type Faulty struct {
	FS
	// Fault returns the error of operation n (from 0, in order) on name; nil
	// lets it pass. For a write, short is how many bytes get to the file before
	// the error. Calls are not concurrent.
	Fault func(n int, op Op, name string) (short int, err error)

	mu sync.Mutex
	n  int
}

// Ops returns how many operations were asked for.
func (f *Faulty) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *Faulty) fault(op Op, name string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.n
	f.n++
	return f.Fault(n, op, name)
}

// OpenFile implements [FS].
func (f *Faulty) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if _, err := f.fault(OpOpen, name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

// Mkdir implements [FS].
func (f *Faulty) Mkdir(name string, perm fs.FileMode) error {
	if _, err := f.fault(OpMkdir, name); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	return f.FS.Mkdir(name, perm)
}

// Rename implements [FS].
func (f *Faulty) Rename(old, new string) error {
	if _, err := f.fault(OpRename, new); err != nil {
		return &fs.PathError{Op: "rename", Path: new, Err: err}
	}
	return f.FS.Rename(old, new)
}

// RenameNew implements [FS].
func (f *Faulty) RenameNew(old, new string) error {
	if _, err := f.fault(OpRename, new); err != nil {
		return &fs.PathError{Op: "rename", Path: new, Err: err}
	}
	return f.FS.RenameNew(old, new)
}

// Remove implements [FS].
func (f *Faulty) Remove(name string) error {
	if _, err := f.fault(OpRemove, name); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return f.FS.Remove(name)
}

// SyncDir implements [FS].
func (f *Faulty) SyncDir(name string) error {
	if _, err := f.fault(OpDir, name); err != nil {
		return &fs.PathError{Op: "sync", Path: name, Err: err}
	}
	return f.FS.SyncDir(name)
}

// Free implements [FS].
func (f *Faulty) Free(path string) (uint64, error) {
	if _, err := f.fault(OpFree, path); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return f.FS.Free(path)
}

type faultyFile struct {
	File
	fs *Faulty
}

func (f *faultyFile) Write(p []byte) (int, error) {
	short, err := f.fs.fault(OpWrite, f.Name())
	if err == nil {
		return f.File.Write(p)
	}
	n, werr := f.File.Write(p[:min(short, len(p))])
	if werr != nil {
		err = werr
	}
	return n, &fs.PathError{Op: "write", Path: f.Name(), Err: err}
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	short, err := f.fs.fault(OpWrite, f.Name())
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	n, werr := f.File.WriteAt(p[:min(short, len(p))], off)
	if werr != nil {
		err = werr
	}
	return n, &fs.PathError{Op: "write", Path: f.Name(), Err: err}
}

func (f *faultyFile) Sync() error {
	if _, err := f.fs.fault(OpSync, f.Name()); err != nil {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
	}
	return f.File.Sync()
}

// Close closes the file in any case.
func (f *faultyFile) Close() error {
	_, fault := f.fs.fault(OpClose, f.Name())
	err := f.File.Close()
	if fault != nil {
		return &fs.PathError{Op: "close", Path: f.Name(), Err: fault}
	}
	return err
}

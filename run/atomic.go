package run

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tierscope/tierscope/internal/vfs"
)

// Atomic is a file in the making: it has a temporary name in the directory of
// its path until [Atomic.Commit], so that a reader finds all of it or nothing.
// One goroutine at a time.
type Atomic struct {
	fs      vfs.FS
	f       vfs.File
	path    string
	tmp     string
	replace bool
	err     error // first failed write; Commit refuses with it
	done    bool
	ended   func()
	before  func() error // runs before the file gets its name
}

// NewAtomic begins the file path, which must not exist: nothing is overwritten.
// Its directory must exist. End it with Commit or Abort.
func NewAtomic(path string) (*Atomic, error) { return newAtomic(vfs.OS, path, false) }

// ReplaceAtomic is like [NewAtomic] and replaces what is at path at Commit.
func ReplaceAtomic(path string) (*Atomic, error) { return newAtomic(vfs.OS, path, true) }

func newAtomic(fsys vfs.FS, path string, replace bool) (*Atomic, error) {
	if !replace {
		if _, err := os.Lstat(path); err == nil {
			return nil, exists(path)
		}
	}
	dir, name := filepath.Split(path)
	tmp := fmt.Sprintf("%s.%s.tmp-%08x", dir, name, rand.Uint32())
	f, err := fsys.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, ioError(err)
	}
	return &Atomic{fs: fsys, f: f, path: path, tmp: tmp, replace: replace}, nil
}

// isTemp reports whether a base name is that of an unfinished [Atomic].
func isTemp(base string) bool {
	i := strings.LastIndex(base, ".tmp-")
	return i > 0 && strings.HasPrefix(base, ".") && len(base) == i+len(".tmp-")+8
}

// tempOf returns the name that the temporary file base would have got.
func tempOf(base string) string { return base[1:strings.LastIndex(base, ".tmp-")] }

func exists(path string) error {
	return Errorf(Misuse, "%s exists: nothing is overwritten; choose another name or remove it", path)
}

func ioError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return Errorf(IO, "%w: free some space or write the results elsewhere", err)
	}
	return Errorf(IO, "%w", err)
}

// IOError returns err as an error of class [IO], with what to do about a full
// disk. An error that has a class already keeps it.
func IOError(err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return ioError(err)
}

// Path returns the name that the file gets.
func (a *Atomic) Path() string { return a.path }

// TempPath returns the name that it has until then.
func (a *Atomic) TempPath() string { return a.tmp }

// Write appends p.
func (a *Atomic) Write(p []byte) (int, error) {
	n, err := a.f.Write(p)
	return n, a.failed(err)
}

// WriteAt writes p at off.
func (a *Atomic) WriteAt(p []byte, off int64) (int, error) {
	n, err := a.f.WriteAt(p, off)
	return n, a.failed(err)
}

func (a *Atomic) failed(err error) error {
	if err == nil {
		return nil
	}
	err = ioError(err)
	if a.err == nil {
		a.err = err
	}
	return err
}

// Commit makes the file durable and gives it its name. It fails if any write
// did, and removes the file then. After Commit, Abort does nothing.
func (a *Atomic) Commit() error {
	if a.done {
		return Errorf(Invalid, "%s: ended before", a.path)
	}
	defer a.end()
	err := a.err
	if err == nil {
		err = a.f.Sync()
	}
	if e := a.f.Close(); err == nil {
		err = e
	}
	if err == nil && a.before != nil {
		err = a.before()
	}
	if err == nil {
		err = a.rename()
	}
	if err == nil {
		return a.sync()
	}
	a.fs.Remove(a.tmp)
	if ClassOf(err) == Misuse {
		return err
	}
	return ioError(err)
}

func (a *Atomic) rename() error {
	if a.replace {
		return a.fs.Rename(a.tmp, a.path)
	}
	err := a.fs.RenameNew(a.tmp, a.path)
	if errors.Is(err, fs.ErrExist) {
		return exists(a.path)
	}
	return err
}

func (a *Atomic) sync() error {
	if err := a.fs.SyncDir(filepath.Dir(a.path)); err != nil {
		return ioError(err)
	}
	return nil
}

func (a *Atomic) end() {
	a.done = true
	if a.ended != nil {
		a.ended()
	}
}

// Abort removes the file, unless it was committed.
func (a *Atomic) Abort() {
	if a.done {
		return
	}
	a.f.Close()
	a.fs.Remove(a.tmp)
	a.end()
}

// WriteFile writes data to the new file path as [NewAtomic] does.
func WriteFile(path string, data []byte) error { return writeFile(vfs.OS, path, data, false) }

// ReplaceFile writes data to path as [ReplaceAtomic] does.
func ReplaceFile(path string, data []byte) error { return writeFile(vfs.OS, path, data, true) }

func writeFile(fsys vfs.FS, path string, data []byte, replace bool) error {
	a, err := newAtomic(fsys, path, replace)
	if err != nil {
		return err
	}
	return a.fill(data)
}

func (a *Atomic) fill(data []byte) error {
	if _, err := a.Write(data); err != nil {
		a.Abort()
		return err
	}
	return a.Commit()
}

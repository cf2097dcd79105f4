package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/internal/vfs"
)

// lockName is the file in a run directory that its writer holds locked. It goes
// when the run is finished; left over, it marks a run that was cut off.
const lockName = ".lock"

// errLocked says that another process writes.
var errLocked = errors.New("locked")

// lockFile takes the lock file path without waiting and writes this process's id
// to it. The kernel frees the lock when the process dies, however it dies.
func lockFile(fsys vfs.FS, path string) (vfs.File, error) {
	for {
		f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o644)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			owner, _ := io.ReadAll(io.LimitReader(f, 32))
			f.Close()
			if err == unix.EWOULDBLOCK {
				return nil, fmt.Errorf("%w by process %s", errLocked, strings.TrimSpace(string(owner)))
			}
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		// The last owner may have removed the name between open and lock.
		mine, err := f.Stat()
		if err == nil {
			var now os.FileInfo
			if now, err = os.Lstat(path); err == nil && os.SameFile(mine, now) {
				if _, err = f.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0); err == nil {
					return f, nil
				}
			} else if err == nil || errors.Is(err, os.ErrNotExist) {
				f.Close()
				continue
			}
		}
		f.Close()
		return nil, err
	}
}

// isLive reports whether a process holds the lock of the run directory root.
func isLive(root string) bool {
	f, err := os.Open(filepath.Join(root, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	// Shared and for an instant: a writer that comes just then tries again.
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// waitLock takes the lock file path, which stays, and waits for it.
func waitLock(fsys vfs.FS, path string) (unlock func(), err error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EINTR {
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
	}
}

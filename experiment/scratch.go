package experiment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/run"
)

// scratch is a temporary directory that is locked while its process lives, so that one
// that a kill left behind is known as such and removed by the next.
type scratch struct {
	dir  string
	lock *os.File
}

const scratchPrefix = "tierscope-lib-"

// newScratch makes a directory in the system's temporary directory.
func newScratch() (*scratch, error) {
	sweepScratch(os.TempDir())
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return nil, run.IOError(err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, errors.Join(run.IOError(err), os.RemoveAll(dir))
	}
	return &scratch{dir, lock}, nil
}

func (s *scratch) remove() {
	os.RemoveAll(s.dir)
	s.lock.Close()
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweepScratch removes what killed processes of this user left. A directory is
// given a minute from its making to its lock.
func sweepScratch(temp string) {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), scratchPrefix) {
			continue
		}
		st, err := e.Info()
		if err != nil || time.Since(st.ModTime()) < time.Minute || !mine(st) {
			continue
		}
		dir := filepath.Join(temp, e.Name())
		if lock, err := lockDir(dir); err == nil {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}

func mine(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}

package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/run"
)

const stampName = "stamp.json"

// stamp is what was checked once, so that it need not be read again.
type stamp struct {
	Archives []string             `json:"archives"` // SHA-256
	Files    map[string]stampFile `json:"files"`
}

type stampFile struct {
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime_ns"`
	Sum   string `json:"sha256"`
}

// stamp checks the sums of the files in dir and writes its stamp.
func (it *Item) stamp(ctx context.Context, dir string) error {
	s := stamp{Files: map[string]stampFile{}}
	for _, k := range it.pkgs {
		s.Archives = append(s.Archives, k.sum)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		sum, err := hash(ctx, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		s.Files[e.Name()] = stampFile{st.Size(), st.ModTime().UnixNano(), sum}
	}
	for _, f := range it.files {
		if got := s.Files[f.name].Sum; f.sum != "" && got != f.sum {
			return differ(f.name, got, f.sum)
		}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, stampName), b, 0o644)
}

// verify says whether dir holds the item whole. Files are read only when their
// size or time is not the stamp's (the cache was copied, say).
func (it *Item) verify(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, stampName))
	if err != nil {
		return err
	}
	var s stamp
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is damaged", filepath.Join(dir, stampName))
	}
	if len(s.Archives) != len(it.pkgs) {
		return fmt.Errorf("%s is of another version", dir)
	}
	for i, k := range it.pkgs {
		if s.Archives[i] != k.sum {
			return fmt.Errorf("%s is of another version", dir)
		}
	}
	for _, f := range it.files {
		if _, ok := s.Files[f.name]; !ok && f.name != "" {
			return fmt.Errorf("%s is not in its stamp", f.name)
		}
	}
	for name, want := range s.Files {
		path := filepath.Join(dir, name)
		st, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("%s is gone", path)
		case st.Size() != want.Size:
			return fmt.Errorf("%s has %d bytes instead of %d", path, st.Size(), want.Size)
		case st.ModTime().UnixNano() == want.MTime:
			continue
		}
		if sum, err := hash(context.Background(), path); err != nil || sum != want.Sum {
			return fmt.Errorf("%s was changed", path)
		}
	}
	for name, target := range it.links {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != target {
			return fmt.Errorf("%s is no link to %s", filepath.Join(dir, name), target)
		}
	}
	return nil
}

// sumIs compares a file's SHA-256 with the pinned one.
func sumIs(ctx context.Context, path, want string) error {
	got, err := hash(ctx, path)
	if err != nil {
		return err
	}
	if got != want {
		return differ(filepath.Base(path), got, want)
	}
	return nil
}

func differ(name, got, want string) error {
	return run.Errorf(run.Corrupt, "%s has SHA-256 %s instead of %s; a mirror or proxy changed it, nothing was kept", name, got, want)
}

func hash(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, reader{ctx, f}, make([]byte, 1<<20)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// lock takes the lock file at path; waiting is called once if it is held by
// another. The file stays: removing it would let two hold it.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		case !said:
			waiting()
			said = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

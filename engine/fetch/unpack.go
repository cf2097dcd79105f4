package fetch

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// maxUnpacked bounds what one archive may become, bytes; all items are far
// below it.
const maxUnpacked = 1 << 30

// unpack writes the item's files from its archives into out. Only members that
// the item names are written, under names without a path.
func (it *Item) unpack(ctx context.Context, archives, out string) error {
	got := map[string]bool{}
	member := func(name string, r io.Reader) error {
		target, part, ok := it.target(name)
		if !ok {
			return nil
		}
		if got[name] {
			return run.Errorf(run.Corrupt, "archive has %s twice", name)
		}
		got[name] = true
		if part > 0 {
			target = fmt.Sprintf("%s.part%d", target, part)
		}
		return write(ctx, filepath.Join(out, target), r)
	}
	for _, k := range it.pkgs {
		err := members(filepath.Join(archives, k.archive), member)
		if err != nil {
			return fmt.Errorf("%s: %w", k.archive, err)
		}
		os.Remove(filepath.Join(archives, k.archive)) // its space is needed
	}
	for _, f := range it.files {
		for i, m := range f.members {
			if !got[m] {
				return run.Errorf(run.Corrupt, "archives have no %s", m)
			}
			if i > 0 {
				if err := join(ctx, filepath.Join(out, f.name), fmt.Sprintf("%s.part%d", filepath.Join(out, f.name), i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// target returns the file that a member belongs to, and as which part.
func (it *Item) target(member string) (name string, part int, ok bool) {
	for _, f := range it.files {
		for i, m := range f.members {
			if m == member {
				return f.name, i, true
			}
		}
		if f.dir != "" && path.Dir(member) == f.dir && safe(path.Base(member)) {
			return path.Base(member), 0, true
		}
	}
	return "", 0, false
}

// safe says whether a name of an archive is one plain file name that is not
// ours.
func safe(name string) bool {
	return name != "." && name != ".." && name != stampName && !strings.ContainsAny(name, "/\\\x00")
}

// members calls f with every regular file in a zip (.whl) or tar.gz (.tgz).
func members(archive string, f func(name string, r io.Reader) error) error {
	if strings.HasSuffix(archive, ".whl") {
		return zipMembers(archive, f)
	}
	fd, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer fd.Close()
	z, err := gzip.NewReader(fd)
	if err != nil {
		return damaged(err)
	}
	t := tar.NewReader(io.LimitReader(z, maxUnpacked))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := f(h.Name, t); err != nil {
			return err
		}
	}
}

func zipMembers(archive string, f func(name string, r io.Reader) error) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return damaged(err)
	}
	defer z.Close()
	for _, m := range z.File {
		if !m.Mode().IsRegular() {
			continue
		}
		r, err := m.Open()
		if err != nil {
			return damaged(err)
		}
		err = f(m.Name, io.LimitReader(r, maxUnpacked))
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func damaged(err error) error {
	var errno interface{ Timeout() bool }
	if errors.As(err, &errno) {
		return err
	}
	return run.Errorf(run.Corrupt, "archive is damaged: %w", err)
}

// write makes a new file of what r holds.
func write(ctx context.Context, name string, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, reader{ctx, r}, make([]byte, 1<<20))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// join appends the file part to the file name and removes it.
func join(ctx context.Context, name, part string) error {
	in, err := os.Open(part)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, reader{ctx, in}, make([]byte, 1<<20))
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Remove(part)
}

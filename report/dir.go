package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// Written is what [WriteFile] and [WriteDir] wrote.
type Written struct {
	Paths []string // the page first
	// Missing says of figures without data why they were not drawn.
	Missing []string
}

// WriteFile writes the page to a file. Without replace a file that exists is an
// error of class [run.Misuse].
func WriteFile(path string, d *Data, replace bool) (*Written, error) {
	return write(filepath.Dir(path), d, replace, filepath.Base(path), false)
}

// WriteDir writes the page as report.html into dir and the figures that have data
// into its figures/; both are made if need be. Without replace a file that exists
// is an error of class [run.Misuse], and then nothing is written.
func WriteDir(dir string, d *Data, replace bool) (*Written, error) {
	return write(dir, d, replace, "report.html", true)
}

func write(dir string, d *Data, replace bool, name string, figures bool) (*Written, error) {
	if _, err := os.Lstat(filepath.Join(dir, "manifest.json")); err == nil {
		return nil, run.Errorf(run.Misuse, "%s is a run with a manifest, which vouches for its files: write the report elsewhere", dir)
	}
	var page bytes.Buffer
	if err := Render(&page, d); err != nil {
		return nil, err
	}
	files, w := []namedFile{{name, page.Bytes()}}, &Written{}
	if figures {
		drawn, empty, err := figureFiles(d)
		if err != nil {
			return nil, err
		}
		if empty != nil {
			w.Missing = strings.Split(empty.Error(), "\n")
		}
		for _, f := range drawn {
			files = append(files, namedFile{filepath.Join("figures", f.name), f.data})
		}
	}
	for i := range files {
		p := filepath.Join(dir, files[i].name)
		switch st, err := os.Lstat(p); {
		case err == nil && st.IsDir():
			return nil, run.Errorf(run.Misuse, "%s is a directory: name a file, or end a directory's name in /", p)
		case err == nil && !replace:
			return nil, run.Errorf(run.Misuse, "%s exists: choose another place, or replace it with --force", p)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return nil, run.IOError(err)
		}
	}
	put := run.WriteFile
	if replace {
		put = run.ReplaceFile
	}
	for _, f := range files {
		p := filepath.Join(dir, f.name)
		if figures {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return w, run.IOError(err)
			}
		}
		if err := put(p, f.data); err != nil {
			return w, err
		}
		w.Paths = append(w.Paths, p)
	}
	return w, nil
}

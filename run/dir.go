package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/tierscope/tierscope/internal/vfs"
)

// LowSpace is the free space in bytes below which Create warns: 1 GiB, where the
// original refuses.
const LowSpace = 1 << 30

// Dir is a run directory that is being written, by this process alone. Its
// methods are safe for concurrent use.
type Dir struct {
	// Notes are the notes of the run; Finish adds them to the metadata.
	Notes Notes

	fs   vfs.FS
	root string
	id   string
	lock vfs.File

	mu       sync.Mutex
	open     map[*Atomic]bool
	made     bool // by Create, in this process
	sealed   bool // a manifest is in place and must go before a file changes
	finished bool
}

// Option changes [Create].
type Option func(*options)

type options struct {
	fs        vfs.FS
	low       uint64
	refuseLow bool
}

// MinFree sets the free space in bytes below which Create warns, or refuses with
// an error of class [IO] if refuse is set.
func MinFree(bytes uint64, refuse bool) Option {
	return func(o *options) { o.low, o.refuseLow = bytes, refuse }
}

// Files sets the file system that everything is written through.
func Files(fsys vfs.FS) Option { return func(o *options) { o.fs = fsys } }

// Create makes the directory base/model/runID, where base may be new, and locks
// it. A directory that exists is never used again: that, and a name that
// [CheckName] refuses, is an error of class [Misuse]. End with [Dir.Finish] or
// [Dir.Close].
func Create(base, model, runID string, opts ...Option) (*Dir, error) {
	o := options{fs: vfs.OS, low: LowSpace}
	for _, f := range opts {
		f(&o)
	}
	if err := CheckName("model", model); err != nil {
		return nil, err
	}
	if err := CheckName("run id", runID); err != nil {
		return nil, err
	}
	parent := filepath.Join(base, model)
	if err := mkdirAll(o.fs, parent); err != nil {
		return nil, ioError(err)
	}
	d := &Dir{fs: o.fs, root: filepath.Join(parent, runID), id: runID, made: true, open: map[*Atomic]bool{}}
	if err := d.checkSpace(parent, o); err != nil {
		return nil, err
	}
	if err := o.fs.Mkdir(d.root, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, Errorf(Misuse, "run directory %s exists: a run is never overwritten; choose another run id or --out", d.root)
		}
		return nil, ioError(err)
	}
	if err := d.begin(); err != nil {
		o.fs.Remove(d.root)
		return nil, err
	}
	return d, nil
}

func (d *Dir) begin() error {
	lock, err := lockFile(d.fs, d.Path(lockName))
	if errors.Is(err, errLocked) {
		return Errorf(Misuse, "run directory %s is %w", d.root, err)
	}
	if err == nil {
		d.lock = lock
		err = d.fs.SyncDir(filepath.Dir(d.root))
	}
	if err != nil {
		if d.lock != nil {
			d.lock.Close()
		}
		d.fs.Remove(d.Path(lockName))
		return ioError(err)
	}
	return nil
}

func (d *Dir) checkSpace(at string, o options) error {
	free, err := o.fs.Free(at)
	if err != nil {
		return ioError(err)
	}
	if free >= o.low {
		return nil
	}
	text := fmt.Sprintf("%d MiB free where the results go, less than %d MiB: free some space or choose another --out", free>>20, o.low>>20)
	if o.refuseLow {
		return Errorf(IO, "%s: %s", at, text)
	}
	d.Notes.Add(Note{Code: "low_disk_space", Severity: Warning, Text: text})
	return nil
}

func mkdirAll(fsys vfs.FS, dir string) error {
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := mkdirAll(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Root returns the path of the directory.
func (d *Dir) Root() string { return d.root }

// ID returns the run id.
func (d *Dir) ID() string { return d.id }

// Path returns the path of the file with the slash-separated relative name.
func (d *Dir) Path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// CreateFile begins the file with the slash-separated relative name, such as
// graph/templates.bin; its directories are made. Nothing is overwritten.
func (d *Dir) CreateFile(name string) (*Atomic, error) { return d.createFile(name, false) }

// ReplaceFile is like [Dir.CreateFile] and replaces what is there at Commit.
func (d *Dir) ReplaceFile(name string) (*Atomic, error) { return d.createFile(name, true) }

// WriteFile writes a whole new file.
func (d *Dir) WriteFile(name string, data []byte) error {
	a, err := d.CreateFile(name)
	if err != nil {
		return err
	}
	return a.fill(data)
}

// Mkdir makes the directory with the relative name, for files that other
// programs write into the run, such as raw. It may exist.
func (d *Dir) Mkdir(name string) (string, error) {
	if err := checkFile(name); err != nil {
		return "", err
	}
	if err := mkdirAll(d.fs, d.Path(name)); err != nil {
		return "", ioError(err)
	}
	return d.Path(name), nil
}

func checkFile(name string) error {
	base := path.Base(name)
	if !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsFunc(name, unprintable) ||
		name == manifestName || base == lockName || isTemp(base) {
		return Errorf(Misuse, "file name %q: want a relative path of a file of the run", name)
	}
	return nil
}

func (d *Dir) createFile(name string, replace bool) (*Atomic, error) {
	if err := checkFile(name); err != nil {
		return nil, err
	}
	if err := mkdirAll(d.fs, filepath.Dir(d.Path(name))); err != nil {
		return nil, ioError(err)
	}
	a, err := newAtomic(d.fs, d.Path(name), replace)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.finished {
		a.Abort()
		return nil, Errorf(Invalid, "run %s is finished: %s comes too late", d.id, name)
	}
	d.open[a] = true
	a.before = d.unseal
	a.ended = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, a)
	}
	return a, nil
}

// unseal takes away the manifest before the first file under it changes.
func (d *Dir) unseal() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.sealed {
		return nil
	}
	if err := d.fs.Remove(d.Path(manifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.sealed = false
	return d.fs.SyncDir(d.root)
}

// Checkpoint writes metadata.json as it stands, with state partial, and replaces
// the last one: what a killed run is known by. Call it at the start, when the
// plan is known, and whenever much has changed.
func (d *Dir) Checkpoint(m *Metadata) error {
	c := *m
	c.State = StatePartial
	return d.writeMetadata(&c)
}

func (d *Dir) writeMetadata(m *Metadata) error {
	c := *m
	c.RunID = d.id
	c.Validity.merge(d.Notes.List())
	data, err := EncodeJSON(&c)
	if err != nil {
		return err
	}
	a, err := d.ReplaceFile(metadataName)
	if err != nil {
		return err
	}
	return a.fill(data)
}

// Finish ends the run: it writes metadata.json from m with the notes of d (m nil:
// leaves the one that is there), makes every file durable, and only then writes
// manifest.json and frees the lock. The state is complete unless m says partial.
// If it fails, the run is unfinished and still locked; try again or [Dir.Close].
func (d *Dir) Finish(m *Metadata) error {
	if err := d.idle(); err != nil {
		return err
	}
	if m == nil {
		m, _ = ReadMetadata(d.root)
	} else {
		if m.State == "" {
			m.State = StateComplete
		}
		if err := d.writeMetadata(m); err != nil {
			return err
		}
	}
	if err := d.unseal(); err != nil {
		return ioError(err)
	}
	d.mu.Lock()
	d.sealed = true // also if only the last step of it fails
	d.mu.Unlock()
	info := ManifestInfo{RunID: d.id, Partial: m != nil && m.State == StatePartial}
	if _, err := writeManifest(d.fs, d.root, info); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
	return d.release(true)
}

func (d *Dir) idle() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.open {
		return Errorf(Invalid, "run %s: %d files are still being written, one is %s", d.id, len(d.open), a.Path())
	}
	return nil
}

// Close frees the lock without finishing: what is there stays and is a partial
// run, for recover; files that were not committed keep their temporary names.
// After Finish it does nothing.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
	return d.release(false)
}

// Discard removes the directory with all that is in it: of a run in which nothing
// ran. It is for a directory that [Create] made and no one has finished; on any other
// it is an error of class [Invalid].
func (d *Dir) Discard() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.made || d.finished {
		return Errorf(Invalid, "run %s was not made here or is finished: it stays", d.root)
	}
	d.finished = true
	err := os.RemoveAll(d.root)
	if e := d.release(false); err == nil {
		err = e
	}
	if err != nil {
		return ioError(err)
	}
	return nil
}

// release frees the lock; d.mu is held.
func (d *Dir) release(remove bool) error {
	if d.lock == nil {
		return nil
	}
	// Removed while it is held, so that nobody locks a name about to vanish.
	var err error
	if remove {
		err = d.fs.Remove(d.Path(lockName))
	}
	if e := d.lock.Close(); err == nil {
		err = e
	}
	d.lock = nil
	if err != nil {
		return ioError(err)
	}
	return nil
}

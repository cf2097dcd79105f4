package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tierscope/tierscope/internal/vfs"
)

// States of a run directory.
type State string

// The states that [Open] tells apart. Complete and partial are also the words of
// metadata.json and manifest.json.
const (
	Finished State = "finished" // has a manifest
	Cut      State = "partial"  // was begun; its writer is gone
	Live     State = "live"     // is being written
	Foreign  State = "foreign"  // is not a run
)

// Words of the state in metadata.json and manifest.json.
const (
	StateComplete = "complete"
	StatePartial  = "partial"
)

// Run is an existing run directory.
type Run struct {
	Root     string
	State    State
	Manifest *Manifest // nil unless finished
	Metadata *Metadata // nil if there is none
}

// Open looks at the run directory root without changing it. It reads the
// manifest and the metadata but checks no other file; [Verify] does. A damaged
// manifest or metadata is an error of class [Corrupt], a path that is no
// directory one of class [Misuse].
func Open(root string) (*Run, error) {
	st, err := os.Stat(root)
	if err != nil {
		return nil, Errorf(Misuse, "run %w", err)
	}
	if !st.IsDir() {
		return nil, Errorf(Misuse, "%s is a file: want a run directory", root)
	}
	r := &Run{Root: root, State: Finished}
	r.Manifest, err = ReadManifest(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.State = stateWithout(root)
	case err != nil:
		return nil, err
	}
	r.Metadata, err = ReadMetadata(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r, nil
}

func stateWithout(root string) State {
	if _, err := os.Lstat(filepath.Join(root, lockName)); err == nil {
		if isLive(root) {
			return Live
		}
		return Cut
	}
	for _, name := range []string{metadataName, "trace.parquet"} {
		if st, err := os.Lstat(filepath.Join(root, name)); err == nil && st.Mode().IsRegular() {
			return Cut
		}
	}
	return Foreign
}

// Reopen takes over the partial run root, to finish what a crash left. A run that
// is live, finished or none is an error of class [Misuse].
func Reopen(root string) (*Dir, error) { return reopen(root, Cut) }

// Amend takes a finished run to add or replace files, such as a report that is
// drawn again. Before the first file changes the manifest goes, and Finish
// writes it anew: cut off in between, the run is partial.
func Amend(root string) (*Dir, error) { return reopen(root, Finished) }

func reopen(root string, want State) (*Dir, error) {
	r, err := Open(root)
	if err != nil {
		return nil, err
	}
	refuse := func(s State) error {
		return Errorf(Misuse, "run %s is %s: want one that is %s", root, s, want)
	}
	if r.State != want {
		return nil, refuse(r.State)
	}
	d := &Dir{fs: vfs.OS, root: filepath.Clean(root), id: filepath.Base(root), open: map[*Atomic]bool{}, sealed: want == Finished}
	if r.Metadata != nil && r.Metadata.RunID != "" {
		d.id = r.Metadata.RunID
	}
	d.lock, err = lockFile(d.fs, d.Path(lockName))
	if errors.Is(err, errLocked) {
		return nil, Errorf(Misuse, "run %s is %w", root, err)
	}
	if err != nil {
		return nil, ioError(err)
	}
	// Its writer may have finished it before the lock was ours.
	if _, err := os.Lstat(d.Path(manifestName)); (err == nil) != d.sealed {
		d.lock.Close()
		return nil, Errorf(Misuse, "run %s is changed by another process: try again", root)
	}
	return d, nil
}

// Leftover is a file that its writer did not commit.
type Leftover struct {
	Path string // path as it lies there
	Name string // slash-separated name in the run that it would have got
	Size int64
}

// Leftovers returns the unfinished files of the run, sorted by path. Recovery
// reads what can be read of them into new files and removes them with
// [Dir.Drop].
func (d *Dir) Leftovers() ([]Leftover, error) {
	files, _, err := list(d.root)
	if err != nil {
		return nil, err
	}
	var out []Leftover
	for _, f := range files {
		dir, base := filepath.Split(filepath.FromSlash(f.path))
		if isTemp(base) {
			out = append(out, Leftover{d.Path(f.path), filepath.ToSlash(dir + tempOf(base)), f.size})
		}
	}
	return out, nil
}

// Drop removes an unfinished file.
func (d *Dir) Drop(l Leftover) error {
	if !isTemp(filepath.Base(l.Path)) {
		return Errorf(Misuse, "%s is not an unfinished file", l.Path)
	}
	if err := d.fs.Remove(l.Path); err != nil {
		return ioError(err)
	}
	return nil
}

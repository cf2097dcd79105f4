package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tierscope/tierscope/internal/vfs"
)

const (
	manifestName    = "manifest.json"
	metadataName    = "metadata.json"
	manifestVersion = "1.0"
	generator       = "tierscope"
	maxManifest     = 256 << 20
)

// schemas are the versions of the files that have one, by base name. The first
// five are those of mrm-trace.
var schemas = map[string]string{
	"trace.parquet":              "1.0",
	"region_map.parquet":         "1.0",
	"kv_block_lifecycle.parquet": "1.0",
	"metrics.csv":                "1.0",
	metadataName:                 "1.0",
	"objects.parquet":            "1.0",
	"marks.parquet":              "1.0",
}

// SchemaVersion returns the version of the schema of the file with that base
// name, "" if it has none.
func SchemaVersion(base string) string { return schemas[base] }

// Entry is a file in a manifest.
type Entry struct {
	Path   string `json:"path"`       // slash-separated, relative to the run directory
	Size   int64  `json:"size_bytes"` // bytes
	SHA256 string `json:"sha256"`     // lower-case hex
	Schema string `json:"schema_version,omitempty"`
}

// Manifest is manifest.json: its presence says that the run is finished.
type Manifest struct {
	Version   string  `json:"manifest_schema_version"`
	RunID     string  `json:"run_id"`
	Created   string  `json:"created_at_utc"`      // RFC 3339
	Generator string  `json:"generator,omitempty"` // "" in manifests of mrm-trace, which do not list every file
	Tool      string  `json:"generator_version,omitempty"`
	State     string  `json:"state,omitempty"` // complete or partial
	Files     []Entry `json:"files"`           // sorted by path
}

// ManifestInfo is what a manifest says beside its files.
type ManifestInfo struct {
	RunID   string // "" = unknown
	Partial bool   // the run was cut off; what is there is readable
}

// WriteManifest makes every file below root durable and then writes
// root/manifest.json, which must not exist, over all of them. It is for
// directories that are not made by [Create]. Links, devices and unfinished
// files are refused, and so is a directory that changes meanwhile.
func WriteManifest(root string, info ManifestInfo) (*Manifest, error) {
	return writeManifest(vfs.OS, root, info)
}

func writeManifest(fsys vfs.FS, root string, info ManifestInfo) (*Manifest, error) {
	m := &Manifest{
		Version: manifestVersion, RunID: info.RunID, Generator: generator, Tool: Version, State: StateComplete,
		Created: time.Now().UTC().Format("2006-01-02T15:04:05.000000-07:00"),
	}
	if m.RunID == "" {
		m.RunID = "unknown"
	}
	if info.Partial {
		m.State = StatePartial
	}
	files, dirs, err := list(root)
	if err != nil {
		return nil, err
	}
	m.Files = make([]Entry, len(files))
	for i, f := range files {
		if isTemp(filepath.Base(f.path)) {
			return nil, Errorf(Invalid, "%s is an unfinished file: recover the run first", filepath.Join(root, f.path))
		}
		if m.Files[i], err = hashFile(fsys, root, f); err != nil {
			return nil, err
		}
	}
	for _, d := range dirs {
		if err := fsys.SyncDir(filepath.Join(root, d)); err != nil {
			return nil, ioError(err)
		}
	}
	if again, _, err := list(root); err != nil {
		return nil, err
	} else if !slices.Equal(files, again) {
		return nil, Errorf(Invalid, "%s changed while it was sealed: another program writes there", root)
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := writeFile(fsys, filepath.Join(root, manifestName), data, false); err != nil {
		return nil, err
	}
	return m, nil
}

// file is a file of a run as a directory listing shows it; comparable, so that
// two listings tell whether anything changed.
type file struct {
	path  string // slash-separated
	size  int64
	mtime int64
	inode uint64
}

// list returns the files of a run directory sorted by path, without the manifest
// and the lock at its root, and the directories from the leaves up.
func list(root string) (files []file, dirs []string, err error) {
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case e.IsDir():
			dirs = append(dirs, rel)
			return nil
		case !e.Type().IsRegular():
			return Errorf(Invalid, "%s is a %s: a run holds plain files only", p, kind(e.Type()))
		case rel == manifestName || rel == lockName:
			return nil
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		sys := st.Sys().(*syscall.Stat_t)
		files = append(files, file{rel, st.Size(), st.ModTime().UnixNano(), sys.Ino})
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	slices.Reverse(dirs)
	return files, dirs, err
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// hashFile makes a file durable and then reads it back for its checksum.
func hashFile(fsys vfs.FS, root string, f file) (Entry, error) {
	r, err := fsys.OpenFile(filepath.Join(root, f.path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return Entry{}, ioError(err)
	}
	var size int64
	var sum string
	if err = r.Sync(); err == nil {
		size, sum, err = checksum(r)
	}
	if e := r.Close(); err == nil {
		err = e
	}
	if err != nil {
		return Entry{}, ioError(err)
	}
	if size != f.size {
		return Entry{}, Errorf(Invalid, "%s changed while it was sealed: another program writes there", filepath.Join(root, f.path))
	}
	return Entry{f.path, size, sum, schemas[filepath.Base(f.path)]}, nil
}

func checksum(r io.Reader) (int64, string, error) {
	h := sha256.New()
	n, err := io.CopyBuffer(onlyWriter{h}, onlyReader{r}, make([]byte, 256<<10))
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// These hide the methods by which io.CopyBuffer would leave its buffer unused.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// ReadManifest reads root/manifest.json. A manifest that is not one, or of
// another major version, or with paths that lead out of the directory, is an
// error of class [Corrupt]; one that does not exist satisfies [fs.ErrNotExist].
func ReadManifest(root string) (*Manifest, error) {
	data, err := readLimited(root, manifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(data)
	if err != nil {
		return nil, Errorf(Corrupt, "%s: %w", filepath.Join(root, manifestName), err)
	}
	return m, nil
}

func readLimited(root, name string, limit int64) ([]byte, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() || st.Size() > limit {
		return nil, Errorf(Corrupt, "%s: not a plain file of at most %d MiB", filepath.Join(root, name), limit>>20)
	}
	return io.ReadAll(f)
}

// ParseManifest parses and checks a manifest.
func ParseManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	if major, _, _ := strings.Cut(m.Version, "."); major != "1" {
		return nil, fmt.Errorf("manifest version %q: this program reads 1.x", m.Version)
	}
	for i, e := range m.Files {
		switch {
		case !filepath.IsLocal(e.Path) || filepath.ToSlash(filepath.Clean(e.Path)) != e.Path || e.Path == ".":
			return nil, fmt.Errorf("file path %q leads out of the run", e.Path)
		case strings.ContainsFunc(e.Path, unprintable):
			return nil, fmt.Errorf("file path %q has a control character", e.Path)
		case e.Path == manifestName:
			return nil, errors.New("the manifest lists itself")
		case e.Size < 0:
			return nil, fmt.Errorf("file %s: size %d", e.Path, e.Size)
		case i > 0 && m.Files[i-1].Path >= e.Path:
			return nil, fmt.Errorf("file %s is out of order or twice", e.Path)
		}
		if sum, err := hex.DecodeString(e.SHA256); err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("file %s: checksum %.80q", e.Path, e.SHA256)
		}
	}
	return m, nil
}

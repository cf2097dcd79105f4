package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Verify checks a finished run against its manifest: every listed file is there,
// plain, of its size and checksum, and, if tierscope wrote the manifest, no file
// is there that is not listed. Files are read through links nowhere. What is
// found is one error of class [Corrupt] that names the first problems; a run
// without manifest is an error of class [Invalid].
func Verify(root string) error {
	m, err := ReadManifest(root)
	if os.IsNotExist(err) {
		if _, e := os.Stat(root); e != nil {
			return Errorf(Misuse, "run %s: no such directory", root)
		}
		return Errorf(Invalid, "%s has no %s: the run is not finished; try recover", root, manifestName)
	}
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return ioError(err)
	}
	defer dir.Close()

	var bad []string
	listed := make(map[string]bool, len(m.Files))
	for _, e := range m.Files {
		listed[e.Path] = true
		why, err := verifyFile(dir, e)
		if err != nil {
			return err
		}
		if why != "" {
			bad = append(bad, e.Path+" "+why)
		}
	}
	if m.Generator == generator {
		files, _, err := list(root)
		if err != nil {
			bad = append(bad, err.Error())
		}
		live := isLive(root) // then unfinished files are those of [Amend]
		for _, f := range files {
			if live && isTemp(filepath.Base(f.path)) {
				continue
			}
			if !listed[f.path] {
				bad = append(bad, f.path+" is not in the manifest")
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	const most = 5
	more := ""
	if len(bad) > most {
		more = fmt.Sprintf(" and %d more", len(bad)-most)
		bad = bad[:most]
	}
	return Errorf(Corrupt, "run %s: %s%s", root, strings.Join(bad, "; "), more)
}

// verifyFile returns what is wrong with a listed file, or an error if it could
// not be read.
func verifyFile(dir *os.Root, e Entry) (why string, err error) {
	f, err := dir.OpenFile(filepath.FromSlash(e.Path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case os.IsNotExist(err):
		return "is missing", nil
	case os.IsPermission(err):
		return "", ioError(err)
	case err != nil:
		return "is not a plain file of the run", nil
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return "", ioError(err)
	case !st.Mode().IsRegular():
		return "is not a plain file", nil
	case st.Size() != e.Size:
		return fmt.Sprintf("has %d bytes, not %d", st.Size(), e.Size), nil
	}
	_, sum, err := checksum(f)
	if err != nil {
		return "", ioError(err)
	}
	if !strings.EqualFold(sum, e.SHA256) {
		return "has another checksum", nil
	}
	return "", nil
}

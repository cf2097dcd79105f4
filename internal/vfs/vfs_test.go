package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestRenameNewKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	os.WriteFile(a, []byte("a"), 0o644)
	os.WriteFile(b, []byte("b"), 0o644)
	if err := OS.RenameNew(a, b); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if err := OS.RenameNew(a, c); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{b: "b", c: "a"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if _, err := os.Stat(a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name is still there: %v", err)
	}
}

func TestFaultyTearsAWrite(t *testing.T) {
	at := 0
	f := &Faulty{FS: OS, Fault: func(n int, op Op, _ string) (int, error) {
		if op == OpWrite && n == at {
			return 3, syscall.ENOSPC
		}
		return 0, nil
	}}
	path := filepath.Join(t.TempDir(), "f")
	file, err := f.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	at = f.Ops()
	if n, err := file.Write([]byte("hello")); n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%d %v", n, err)
	}
	if n, err := file.Write([]byte("lo")); n != 2 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "hello" {
		t.Errorf("%q", got)
	}
}

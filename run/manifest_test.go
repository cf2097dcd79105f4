package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func finished(t *testing.T) *Dir {
	t.Helper()
	d := mustCreate(t)
	for _, name := range []string{"trace.parquet", "metrics.csv", "raw/a"} {
		if err := d.WriteFile(name, []byte("content of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Finish(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestVerifyFinds(t *testing.T) {
	edit := func(t *testing.T, d *Dir, f func(m *Manifest)) {
		m, err := ReadManifest(d.Root())
		if err != nil {
			t.Fatal(err)
		}
		f(m)
		data, _ := json.Marshal(m)
		if err := os.WriteFile(d.Path(manifestName), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		harm func(t *testing.T, d *Dir)
		want string
		exit int
	}{
		"missing": {func(t *testing.T, d *Dir) { os.Remove(d.Path("raw/a")) }, "raw/a is missing", 3},
		"longer":  {func(t *testing.T, d *Dir) { os.WriteFile(d.Path("metrics.csv"), make([]byte, 99), 0o644) }, "metrics.csv has 99 bytes, not 22", 3},
		"changed": {func(t *testing.T, d *Dir) { os.WriteFile(d.Path("metrics.csv"), make([]byte, 22), 0o644) }, "metrics.csv has another checksum", 3},
		"unlisted": {func(t *testing.T, d *Dir) { os.WriteFile(d.Path("raw/b"), nil, 0o644) },
			"raw/b is not in the manifest", 3},
		"leftover": {func(t *testing.T, d *Dir) { os.WriteFile(d.Path(".x.tmp-00000000"), nil, 0o644) },
			".x.tmp-00000000 is not in the manifest", 3},
		"link": {func(t *testing.T, d *Dir) {
			os.Rename(d.Path("raw/a"), filepath.Join(filepath.Dir(d.Root()), "a"))
			os.Symlink(filepath.Join(filepath.Dir(d.Root()), "a"), d.Path("raw/a"))
		}, "raw/a is not a plain file of the run", 3},
		"linked directory": {func(t *testing.T, d *Dir) {
			os.Rename(d.Path("raw"), filepath.Join(filepath.Dir(d.Root()), "raw"))
			os.Symlink(filepath.Join(filepath.Dir(d.Root()), "raw"), d.Path("raw"))
		}, "raw is a symbolic link", 3},
		"directory for a file": {func(t *testing.T, d *Dir) { os.Remove(d.Path("raw/a")); os.Mkdir(d.Path("raw/a"), 0o755) },
			"raw/a is not a plain file", 3},
		"unfinished": {func(t *testing.T, d *Dir) { os.Remove(d.Path(manifestName)) }, "not finished", 1},
		"gone":       {func(t *testing.T, d *Dir) { os.RemoveAll(d.Root()) }, "no such directory", 2},
		"traversal": {func(t *testing.T, d *Dir) { edit(t, d, func(m *Manifest) { m.Files[0].Path = "../../etc/passwd" }) },
			"leads out of the run", 3},
		"absolute": {func(t *testing.T, d *Dir) { edit(t, d, func(m *Manifest) { m.Files[0].Path = "/etc/passwd" }) },
			"leads out of the run", 3},
		"twice":        {func(t *testing.T, d *Dir) { edit(t, d, func(m *Manifest) { m.Files[1] = m.Files[0] }) }, "out of order or twice", 3},
		"version":      {func(t *testing.T, d *Dir) { edit(t, d, func(m *Manifest) { m.Version = "2.0" }) }, `version "2.0"`, 3},
		"checksum":     {func(t *testing.T, d *Dir) { edit(t, d, func(m *Manifest) { m.Files[0].SHA256 = "00" }) }, "checksum", 3},
		"not JSON":     {func(t *testing.T, d *Dir) { os.WriteFile(d.Path(manifestName), []byte("{"), 0o644) }, "not a manifest", 3},
		"many at once": {func(t *testing.T, d *Dir) { os.Remove(d.Path("raw/a")); os.Remove(d.Path("metrics.csv")) }, "metrics.csv is missing; raw/a is missing", 3},
	} {
		t.Run(name, func(t *testing.T) {
			d := finished(t)
			if err := Verify(d.Root()); err != nil {
				t.Fatal(err)
			}
			c.harm(t, d)
			err := Verify(d.Root())
			if err == nil || !strings.Contains(err.Error(), c.want) || ExitCode(err) != c.exit {
				t.Errorf("got %v (exit %d), want %q (exit %d)", err, ExitCode(err), c.want, c.exit)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestVerifyRunOfTheOriginal(t *testing.T) {
	root := filepath.Join(t.TempDir(), "run_fx")
	if err := os.CopyFS(root, os.DirFS("testdata/mrm/run_fx")); err != nil {
		t.Fatal(err)
	}
	// It never listed what is in raw.
	os.Mkdir(filepath.Join(root, "raw"), 0o755)
	os.WriteFile(filepath.Join(root, "raw", "perf.data"), []byte("x"), 0o644)
	if err := Verify(root); err != nil {
		t.Error(err)
	}
	r, err := Open(root)
	if err != nil || r.State != Finished || r.Manifest.Generator != "" || r.Metadata.Hardware.CPUModel != "Some CPU" {
		t.Errorf("%+v %v", r, err)
	}
}

// TestManifestIsASuperset checks that a reader of the original's manifest finds
// its keys, in its types.
func TestManifestIsASuperset(t *testing.T) {
	d := finished(t)
	read := func(path string) map[string]any {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	theirs, ours := read("testdata/mrm/run_fx/manifest.json"), read(d.Path(manifestName))
	same := func(where string, a, b map[string]any) {
		for k, v := range a {
			if typeName(v) != typeName(b[k]) {
				t.Errorf("%s %s: %T, the original has %T", where, k, b[k], v)
			}
		}
	}
	same("manifest", theirs, ours)
	if theirs["manifest_schema_version"] != ours["manifest_schema_version"] {
		t.Error("another version")
	}
	for _, f := range ours["files"].([]any) {
		f := f.(map[string]any)
		if f["path"] == "trace.parquet" {
			same("file", theirs["files"].([]any)[5].(map[string]any), f)
		}
	}
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case []any:
		return "list"
	}
	return "other"
}

func FuzzManifest(f *testing.F) {
	data, err := os.ReadFile("testdata/mrm/run_fx/manifest.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"manifest_schema_version":"1.0","files":[{"path":"a/../../b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		for _, e := range m.Files {
			if !filepath.IsLocal(e.Path) || strings.Contains(e.Path, "..") && strings.Contains("/"+e.Path+"/", "/../") {
				t.Errorf("path %q", e.Path)
			}
		}
	})
}

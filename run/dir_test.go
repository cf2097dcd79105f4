package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCreate(t *testing.T) *Dir {
	t.Helper()
	d, err := Create(t.TempDir(), "tiny", "r1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func names(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, p)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRunFromCreateToVerify(t *testing.T) {
	d := mustCreate(t)
	if r, err := Open(d.Root()); err != nil || r.State != Live {
		t.Fatalf("state of a run that is being written: %+v, %v", r, err)
	}
	for _, name := range []string{"trace.parquet", "raw/perf.data", "graph/templates.bin", "metrics.csv"} {
		if err := d.WriteFile(name, []byte("content of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	d.Notes.Add(Note{Code: "lost_samples", Severity: Warning, Text: "samples were lost", Figures: []string{"iai"}, Count: 3})
	m := NewMetadata()
	m.Model.ID = "tiny"
	m.Extra = map[string]any{"engine": map[string]any{"threads": 2}}
	if err := d.Finish(m); err != nil {
		t.Fatal(err)
	}
	want := []string{"graph/templates.bin", "manifest.json", "metadata.json", "metrics.csv", "raw/perf.data", "trace.parquet"}
	if diff := cmp.Diff(want, names(t, d.Root())); diff != "" {
		t.Error(diff)
	}
	r, err := Open(d.Root())
	if err != nil || r.State != Finished || r.Manifest.State != StateComplete {
		t.Fatalf("state of a finished run: %+v, %v", r, err)
	}
	var listed []string
	for _, e := range r.Manifest.Files {
		listed = append(listed, e.Path+" "+e.Schema)
	}
	if diff := cmp.Diff([]string{"graph/templates.bin ", "metadata.json 1.0", "metrics.csv 1.0", "raw/perf.data ", "trace.parquet 1.0"}, listed); diff != "" {
		t.Error(diff)
	}
	if n := r.Metadata.Validity.Notes; len(n) != 1 || n[0].Count != 3 || !r.Metadata.Validity.Valid {
		t.Errorf("validity %+v", r.Metadata.Validity)
	}
	if r.Metadata.RunID != "r1" || r.Metadata.State != StateComplete {
		t.Errorf("metadata %+v", r.Metadata)
	}
	if err := Verify(d.Root()); err != nil {
		t.Error(err)
	}
	if _, err := d.CreateFile("late"); err == nil {
		t.Error("a finished run took another file")
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	base := t.TempDir()
	d, err := Create(base, "m", "r")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := Create(base, "m", "r"); ExitCode(err) != 2 || !strings.Contains(err.Error(), "exists") {
		t.Errorf("second create: %v", err)
	}
	if err := d.WriteFile("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("a", []byte("2")); ExitCode(err) != 2 {
		t.Errorf("second write: %v", err)
	}
	// Also when the name is taken between begin and commit.
	a, err := d.CreateFile("b")
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(d.Path("b"), []byte("other"), 0o644)
	if err := a.Commit(); ExitCode(err) != 2 {
		t.Errorf("commit over another file: %v", err)
	}
	got, _ := os.ReadFile(d.Path("b"))
	if string(got) != "other" {
		t.Errorf("b is %q", got)
	}
	if got := names(t, d.Root()); !slices.Equal(got, []string{".lock", "a", "b"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestConcurrentCreatorsOneWins(t *testing.T) {
	base := t.TempDir()
	var wg sync.WaitGroup
	won := make(chan *Dir, 32)
	for range 32 {
		wg.Go(func() {
			d, err := Create(base, "m", "same")
			if err == nil {
				won <- d
			} else if ExitCode(err) != 2 {
				t.Errorf("loser: %v", err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d creators got the same directory", len(won))
	}
	if err := (<-won).Finish(NewMetadata()); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"tiny-q4", true}, {"run_2026-01-01T00-00-00Z_ctx512", true}, {"Modell ß", true}, {strings.Repeat("x", 200), true},
		{"", false}, {".", false}, {"..", false}, {"../x", false}, {"a/b", false}, {`a\b`, false}, {"a..b", false}, {".hidden", false},
		{"a\nb", false}, {"a\x00b", false}, {"a\x1b[31m", false}, {" a", false}, {"a ", false}, {"\xff", false}, {strings.Repeat("x", 201), false},
		{"a\u202eb", false},
	} {
		if err := CheckName("model", c.name); (err == nil) != c.ok || err != nil && ExitCode(err) != 2 {
			t.Errorf("%q: %v", c.name, err)
		}
		if _, err := Create(t.TempDir(), c.name, c.name); (err == nil) != c.ok {
			t.Errorf("create %q: %v", c.name, err)
		}
	}
}

func TestFileNames(t *testing.T) {
	d := mustCreate(t)
	for _, name := range []string{"", ".", "..", "../x", "/x", "a//b", "a/../b", "./a", "manifest.json", ".lock", "raw/.lock", ".x.tmp-00000000", "a\nb"} {
		if err := d.WriteFile(name, nil); ExitCode(err) != 2 {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFinishRefusesUnfinishedFiles(t *testing.T) {
	d := mustCreate(t)
	a, err := d.CreateFile("trace.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(NewMetadata()); err == nil {
		t.Fatal("a manifest over a file that is still being written")
	}
	a.Abort()
	if err := os.Symlink("/etc/passwd", d.Path("link")); err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(NewMetadata()); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Fatalf("a manifest over a link: %v", err)
	}
	os.Remove(d.Path("link"))
	if err := d.Finish(NewMetadata()); err != nil {
		t.Fatal(err)
	}
}

func TestSpaceBelowLimit(t *testing.T) {
	base := t.TempDir()
	d, err := Create(base, "m", "warns", MinFree(1<<62, false))
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Notes.List(); len(n) != 1 || n[0].Code != "low_disk_space" || n[0].Severity != Warning {
		t.Errorf("notes %+v", n)
	}
	d.Close()
	if _, err := Create(base, "m", "refuses", MinFree(1<<62, true)); ExitCode(err) != 5 {
		t.Errorf("refusal: %v", err)
	}
	if _, err := os.Stat(filepath.Join(base, "m", "refuses")); !os.IsNotExist(err) {
		t.Errorf("refused, yet the directory is there: %v", err)
	}
}

func TestBaseIsAFile(t *testing.T) {
	f := filepath.Join(t.TempDir(), "f")
	os.WriteFile(f, nil, 0o644)
	if _, err := Create(f, "m", "r"); ExitCode(err) != 5 || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
}

func TestPartialRunIsFoundAndFinished(t *testing.T) {
	d := mustCreate(t)
	if err := d.Checkpoint(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile("metrics.csv", []byte("x\n")); err != nil {
		t.Fatal(err)
	}
	a, err := d.CreateFile("graph/evals.bin")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(a, "half")
	if _, err := Reopen(d.Root()); ExitCode(err) != 2 {
		t.Fatalf("took over a live run: %v", err)
	}
	d.Close()

	r, err := Open(d.Root())
	if err != nil || r.State != Cut || r.Metadata.State != StatePartial {
		t.Fatalf("%+v %v", r, err)
	}
	e, err := Reopen(d.Root())
	if err != nil {
		t.Fatal(err)
	}
	left, err := e.Leftovers()
	if err != nil || len(left) != 1 || left[0].Name != "graph/evals.bin" || left[0].Size != 4 {
		t.Fatalf("leftovers %+v %v", left, err)
	}
	if err := e.Finish(nil); err == nil {
		t.Fatal("a manifest over an unfinished file")
	}
	if err := e.Drop(left[0]); err != nil {
		t.Fatal(err)
	}
	if err := e.Finish(nil); err != nil {
		t.Fatal(err)
	}
	r, err = Open(d.Root())
	if err != nil || r.State != Finished || r.Manifest.State != StatePartial {
		t.Fatalf("%+v %v", r, err)
	}
	if err := Verify(d.Root()); err != nil {
		t.Error(err)
	}
	if _, err := Reopen(d.Root()); ExitCode(err) != 2 {
		t.Errorf("took over a finished run: %v", err)
	}
}

func TestAmend(t *testing.T) {
	d := mustCreate(t)
	d.WriteFile("report.html", []byte("old"))
	if err := d.Finish(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	e, err := Amend(d.Root())
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.ReplaceFile("report.html")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(a, "new")
	if err := Verify(d.Root()); err != nil {
		t.Errorf("before the commit the run is whole: %v", err)
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path(manifestName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a manifest over a changed file: %v", err)
	}
	if err := e.Finish(nil); err != nil {
		t.Fatal(err)
	}
	if err := Verify(d.Root()); err != nil {
		t.Error(err)
	}
	if r, _ := Open(d.Root()); r.Manifest.State != StateComplete {
		t.Errorf("state %s", r.Manifest.State)
	}
}

func TestOpenForeign(t *testing.T) {
	dir := t.TempDir()
	if r, err := Open(dir); err != nil || r.State != Foreign {
		t.Errorf("empty directory: %+v %v", r, err)
	}
	if _, err := Open(filepath.Join(dir, "none")); ExitCode(err) != 2 {
		t.Errorf("no directory: %v", err)
	}
	os.WriteFile(filepath.Join(dir, manifestName), []byte("{"), 0o644)
	if _, err := Open(dir); ExitCode(err) != 3 {
		t.Errorf("damaged manifest: %v", err)
	}
}

func TestDiscard(t *testing.T) {
	d := mustCreate(t)
	if err := d.WriteFile("raw/a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := d.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Root()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", d.Root(), err)
	}
	// Neither what is finished nor what another process began goes.
	done := mustCreate(t)
	if err := done.Finish(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	cut := mustCreate(t)
	if err := cut.Checkpoint(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	if err := cut.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Reopen(cut.Root())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, d := range []*Dir{done, again} {
		if err := d.Discard(); ClassOf(err) != Invalid {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(d.Path(metadataName)); err != nil {
			t.Error(err)
		}
	}
}

package run

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/internal/vfs"
)

// content is what the scenario writes into the file with that name.
func content(name string) string { return strings.Repeat(name+"\n", 100) }

var scenarioFiles = []string{"trace.parquet", "raw/a", "metrics.csv"}

// scenario writes a whole run and returns the first error.
func scenario(fsys vfs.FS, base string) error {
	d, err := Create(base, "m", "r", Files(fsys))
	if err != nil {
		return err
	}
	defer d.Close()
	m := NewMetadata()
	if err := d.Checkpoint(m); err != nil {
		return err
	}
	for _, name := range scenarioFiles {
		if err := d.WriteFile(name, []byte(content(name))); err != nil {
			return err
		}
	}
	return d.Finish(m)
}

// whole fails the test if a file of the scenario is there and not whole, or a
// manifest over wrong files.
func whole(t *testing.T, root string) (sealed bool) {
	t.Helper()
	for _, name := range scenarioFiles {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && string(data) != content(name) {
			t.Errorf("%s holds %d of %d bytes", name, len(data), len(content(name)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, manifestName)); err != nil {
		return false
	}
	if err := Verify(root); err != nil {
		t.Errorf("a manifest over wrong files: %v", err)
	}
	return true
}

func TestEveryOperationFails(t *testing.T) {
	count := &vfs.Faulty{FS: vfs.OS, Fault: func(int, vfs.Op, string) (int, error) { return 0, nil }}
	if err := scenario(count, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if count.Ops() < 30 {
		t.Fatalf("%d operations", count.Ops())
	}
	for _, kind := range []struct {
		name string
		err  error
		from bool // all operations from the failing one on fail, as on a full disk
	}{{"once EIO", syscall.EIO, false}, {"full from then on", syscall.ENOSPC, true}} {
		for at := range count.Ops() {
			var failed vfs.Op
			fsys := &vfs.Faulty{FS: vfs.OS, Fault: func(n int, op vfs.Op, _ string) (int, error) {
				grows := op == vfs.OpOpen || op == vfs.OpWrite || op == vfs.OpSync || op == vfs.OpMkdir || op == vfs.OpRename
				if n == at || kind.from && n > at && grows {
					if n == at {
						failed = op
					}
					return 3, kind.err
				}
				return 0, nil
			}}
			base := t.TempDir()
			err := scenario(fsys, base)
			root := filepath.Join(base, "m", "r")
			sealed := whole(t, root)
			switch {
			case err == nil:
				t.Errorf("%s: operation %d (%s) failed unnoticed", kind.name, at, failed)
			case ExitCode(err) != 5 || !errors.Is(err, kind.err):
				t.Errorf("%s: operation %d (%s): exit code %d for %v", kind.name, at, failed, ExitCode(err), err)
			case kind.err == syscall.ENOSPC && !strings.Contains(err.Error(), "free some space"):
				t.Errorf("operation %d: no advice in %v", at, err)
			}
			if sealed {
				continue
			}
			// What is left can be finished once the disk is well again.
			d, err := Reopen(root)
			if err != nil {
				if r, e := Open(root); e != nil || r.State == Foreign {
					continue // it failed in Create, or before anything was in it
				}
				t.Errorf("%s: operation %d (%s): %v", kind.name, at, failed, err)
				continue
			}
			recoverRun(t, d)
		}
	}
}

func recoverRun(t *testing.T, d *Dir) {
	t.Helper()
	left, err := d.Leftovers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range left {
		if err := d.Drop(l); err != nil {
			t.Fatal(err)
		}
	}
	m := NewMetadata()
	m.State = StatePartial
	if err := d.Finish(m); err != nil {
		t.Fatal(err)
	}
	if !whole(t, d.Root()) {
		t.Error("recovered, yet no manifest")
	}
}

func TestFinishAfterAFault(t *testing.T) {
	full := false
	fsys := &vfs.Faulty{FS: vfs.OS, Fault: func(_ int, op vfs.Op, _ string) (int, error) {
		if full && op == vfs.OpDir {
			return 0, syscall.EIO
		}
		return 0, nil
	}}
	d, err := Create(t.TempDir(), "m", "r", Files(fsys))
	if err != nil {
		t.Fatal(err)
	}
	d.WriteFile("a", []byte("a"))
	full = true
	if err := d.Finish(NewMetadata()); ExitCode(err) != 5 {
		t.Fatalf("%v", err)
	}
	full = false
	if err := d.Finish(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	if err := Verify(d.Root()); err != nil {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	base := t.TempDir()
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(base, unix.MNT_DETACH) })
	d, err := Create(base, "m", "r")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if n := d.Notes.List(); len(n) != 1 || n[0].Code != "low_disk_space" {
		t.Errorf("notes %+v", n)
	}
	if err := d.WriteFile("small", make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	a, err := d.CreateFile("big")
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = a.Write(make([]byte, 10_000))
	}
	if ExitCode(err) != 5 || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("full disk: exit code %d, %v", ExitCode(err), err)
	}
	if err := d.Checkpoint(NewMetadata()); ExitCode(err) != 5 {
		t.Errorf("checkpoint on a full disk: %v", err)
	}
	if err := a.Commit(); ExitCode(err) != 5 {
		t.Errorf("commit after a failed write: %v", err)
	}
	// The torn file made room again.
	if err := d.Finish(NewMetadata()); err != nil {
		t.Fatal(err)
	}
	if err := Verify(d.Root()); err != nil {
		t.Error(err)
	}
}

// TestKill kills a writer at random moments. It is its own writer.
func TestKill(t *testing.T) {
	if base := os.Getenv("RUN_TEST_KILL"); base != "" {
		for i := 0; ; i++ {
			fmt.Println("begin", i)
			if err := scenario(vfs.OS, filepath.Join(base, fmt.Sprint(i))); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	const rounds = 15
	rng := rand.New(rand.NewPCG(1, 2))
	cut, finished := 0, 0
	for range rounds {
		base := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), "RUN_TEST_KILL="+base)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()

		roots, err := filepath.Glob(filepath.Join(base, "*", "m", "r"))
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots {
			sealed := whole(t, root)
			r, err := Open(root)
			switch {
			case err != nil:
				t.Error(err)
			case sealed != (r.State == Finished) || r.State == Live:
				t.Errorf("%s: state %s", root, r.State)
			case sealed:
				finished++
			case r.State == Cut:
				cut++
				d, err := Reopen(root)
				if err != nil {
					t.Fatal(err)
				}
				recoverRun(t, d)
			}
		}
	}
	t.Logf("%d runs cut off, %d finished", cut, finished)
	if cut == 0 {
		t.Error("no run was cut off")
	}
}

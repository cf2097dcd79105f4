package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

const faultTokens = 400

// whole is a run that nobody hurt.
func whole(t *testing.T, model string) (dir string, took time.Duration) {
	t.Helper()
	begin := time.Now()
	v := start(t, model, t.TempDir(), faultTokens, "--no-calibration")
	if code := v.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &v.stderr)
	}
	sealed(t, v.dir(), run.StateComplete)
	return v.dir(), time.Since(begin)
}

// The same seed and prompt give the same rows, another seed others: sampled tokens
// choose the rows of the embedding that are read.
func TestSeed(t *testing.T) {
	t.Parallel()
	model := synth(t)
	sampled := func(seed string) []fingerprint {
		v := start(t, model, t.TempDir(), 20, "--no-calibration", "--temperature", "2", "--seed", seed)
		if code := v.wait(); code != 0 {
			t.Fatalf("exit code %d\n%s", code, &v.stderr)
		}
		return rows(t, v.dir())
	}
	one, again, two := sampled("1"), sampled("1"), sampled("2")
	if !slices.Equal(one, again) {
		t.Error("the same seed gives other rows")
	}
	if slices.Equal(one, two) {
		t.Error("another seed gives the same rows")
	}
}

// The engine's process is killed at any moment: the run ends with what was seen, says
// so, and is whole as far as it goes.
func TestKillChild(t *testing.T) {
	t.Parallel()
	model := synth(t)
	dir, _ := whole(t, model)
	all := rows(t, dir)
	rng := rand.New(rand.NewPCG(1, 2))
	partial := 0
	for i := range 8 {
		v := start(t, model, t.TempDir(), faultTokens, "--no-calibration")
		v.until(func() bool { return v.child() != 0 })
		time.Sleep(time.Duration(rng.IntN(1+i*25)) * time.Millisecond)
		if pid := v.child(); pid != 0 {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		code := v.wait()
		switch r := v.results(); {
		case code == 0: // it had ended before
			sealed(t, v.dir(), run.StateComplete)
		case code != 6:
			t.Errorf("exit code %d\n%s", code, &v.stderr)
		default:
			partial++
			if x := r.Runs[0]; x.State != run.StatePartial || x.Valid || note(x.Notes, "engine_died") == nil || x.Error == "" {
				t.Errorf("%+v", x)
			}
			if !strings.HasPrefix(v.lastLine(), "tierscope: engine child was killed, by the kernel if memory ran out") {
				t.Error(v.lastLine())
			}
			m := sealed(t, v.dir(), run.StatePartial).Metadata
			if m.Validity.Valid {
				t.Error("the metadata call it valid")
			}
			prefix(t, rows(t, v.dir()), all)
			if _, err := os.Stat(filepath.Join(v.out, "manifest.csv")); err == nil {
				t.Error("it is in the table of complete runs")
			}
		}
	}
	if partial < 3 {
		t.Errorf("only %d of 8 were hit", partial)
	}
}

// recoverRun runs the command recover.
func recoverRun(t *testing.T, dir string) (code int, rec experiment.Recovery, stderr string) {
	t.Helper()
	cmd := exec.Command("tierscope", "recover", dir, "--json")
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		if err := json.Unmarshal(out.Bytes(), &rec); err != nil {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), rec, words.String()
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Tierscope itself is killed at any moment: the engine goes with it, there is no
// manifest, and what is there can be recovered, once.
func TestKillParent(t *testing.T) {
	t.Parallel()
	model := synth(t)
	dir, took := whole(t, model)
	all := rows(t, dir)
	rng := rand.New(rand.NewPCG(3, 4))
	var moments [6]float64
	for i := range moments {
		moments[i] = rng.Float64()
	}
	st, err := os.Stat(filepath.Join(dir, trace.GraphLogName))
	if err != nil {
		t.Fatal(err)
	}
	recovered, cut := 0, 0
	for i := range moments {
		v := start(t, model, t.TempDir(), faultTokens, "--no-calibration")
		begin, pid := time.Now(), 0
		over := func() bool { return time.Since(begin) >= time.Duration(float64(took)*moments[i]) }
		if i%2 == 0 { // while the engine runs, else at any time at all
			v.logged(int64(float64(st.Size()) * moments[i] / 2))
			over = func() bool { return true }
		}
		for {
			if n := v.child(); n != 0 {
				pid = n
			}
			if over() {
				break
			}
			time.Sleep(time.Millisecond)
		}
		v.cmd.Process.Kill()
		v.wait()
		if pid != 0 {
			v.until(func() bool { return gone(pid) })
		}
		d := v.dir()
		if d == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(d, "manifest.json")); err == nil {
			sealed(t, d, run.StateComplete) // it had ended before
			continue
		}
		code, rec, words := recoverRun(t, d)
		switch {
		case code == 3 && strings.Contains(words, "cut off before anything was observed; delete it and run again"):
			continue
		case code != 0:
			t.Fatalf("recover: exit code %d, %s", code, words)
		}
		recovered++
		r := sealed(t, d, rec.State)
		got := rows(t, d)
		if rec.State == run.StateComplete {
			if len(got) != len(all) || !rec.Valid {
				t.Errorf("%d of %d rows, %+v", len(got), len(all), rec)
			}
		} else if cut++; rec.Valid || r.Metadata.Validity.Valid || note(rec.Notes, "engine_died") == nil && note(rec.Notes, "log_torn") == nil {
			t.Errorf("%+v", rec)
		}
		prefix(t, got, all)
		if code, _, words := recoverRun(t, d); code != 2 || !strings.Contains(words, "is finished: there is nothing to recover") {
			t.Errorf("recovered twice: exit code %d, %s", code, words)
		}
	}
	t.Logf("%d of 6 recovered, %d of them had been cut while the engine ran", recovered, cut)
	if recovered < 2 || cut < 2 {
		t.Errorf("too few were hit in the middle")
	}
}

// A run that is being written is left alone, by recover and by a second run of the
// same id.
func TestLiveRunIsLeftAlone(t *testing.T) {
	t.Parallel()
	model := synth(t)
	v := start(t, model, t.TempDir(), 3000)
	v.logged(1)
	code, _, words := recoverRun(t, v.dir())
	if code != 2 || !strings.Contains(words, "is being written: wait until its run has ended") {
		t.Errorf("recover of a live run: exit code %d, %s", code, words)
	}
	v.cmd.Process.Signal(os.Interrupt)
	if code := v.wait(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	sealed(t, v.dir(), run.StatePartial)
}

// Ctrl-C and SIGTERM end the engine in order: what ran is there, analysed and marked.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	model := synth(t)
	for name, sig := range map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
		v := start(t, model, t.TempDir(), 3000)
		v.logged(2000)
		v.cmd.Process.Signal(sig)
		if code := v.wait(); code != 130 {
			t.Fatalf("%s: exit code %d\n%s", name, code, &v.stderr)
		}
		r := v.results().Runs[0]
		if r.State != run.StatePartial || note(r.Notes, "interrupted") == nil || !r.Valid {
			t.Errorf("%s: %+v", name, r)
		}
		m := sealed(t, v.dir(), run.StatePartial).Metadata
		if _, ok := m.Timing.Phases[observe.PhaseTeardown]; !ok {
			t.Errorf("%s: the engine was not ended in order: %v", name, m.Timing.Phases)
		}
		b, err := os.ReadFile(filepath.Join(v.dir(), "prompt_outputs.json"))
		if err != nil || !bytes.Contains(b, []byte(`"stopped": "interrupted"`)) {
			t.Errorf("%s: %v %s", name, err, b)
		}
		if want := "tierscope: interrupted"; v.lastLine() != want {
			t.Errorf("%s: %q", name, v.lastLine())
		}
	}
}

// Before the engine has begun, nothing is left; twice is at once; and while the run is
// analysed, its directory is left for recover.
func TestInterruptAtOtherTimes(t *testing.T) {
	t.Parallel()
	model := synth(t)
	t.Run("early", func(t *testing.T) {
		v := start(t, model, t.TempDir(), 3000)
		v.until(func() bool { return v.dir() != "" })
		v.cmd.Process.Signal(os.Interrupt)
		if code := v.wait(); code != 130 {
			t.Fatalf("exit code %d", code)
		}
		if d := v.dir(); d != "" {
			t.Errorf("%s is left", d)
		}
		if r := v.results().Runs[0]; r.State != experiment.StateNone || r.Dir != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("twice", func(t *testing.T) {
		v := start(t, model, t.TempDir(), 3000)
		v.logged(2000)
		pid := v.child()
		syscall.Kill(pid, syscall.SIGSTOP) // an engine that does not listen
		v.cmd.Process.Signal(os.Interrupt)
		time.Sleep(100 * time.Millisecond)
		v.cmd.Process.Signal(os.Interrupt)
		begin := time.Now()
		if code := v.wait(); code != 130 {
			t.Fatalf("exit code %d\n%s", code, &v.stderr)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("it took %v to end", d)
		}
		v.until(func() bool { return gone(pid) })
		recoverable(t, v)
	})
	t.Run("analysis", func(t *testing.T) {
		v := start(t, model, t.TempDir(), 2000, "--no-calibration")
		v.analysing()
		v.cmd.Process.Signal(os.Interrupt)
		if code := v.wait(); code != 130 {
			t.Fatalf("exit code %d\n%s", code, &v.stderr)
		}
		if r := v.results().Runs[0]; r.State != experiment.StateUnfinished || r.Dir != v.dir() {
			t.Errorf("%+v", r)
		}
		if want := "tierscope: interrupted before all was analysed; 'tierscope recover " + v.dir() + "' finishes it"; v.lastLine() != want {
			t.Errorf("%s", v.lastLine())
		}
		if rec := recoverable(t, v); rec.State != run.StateComplete || !rec.Valid {
			t.Errorf("%+v", rec)
		}
		b, err := os.ReadFile(filepath.Join(v.out, "manifest.csv"))
		if err != nil || !bytes.Contains(b, []byte(filepath.Base(v.dir()))) {
			t.Errorf("the run is not in the table: %v %s", err, b)
		}
	})
}

// recoverable fails the test unless the run's directory has no manifest and can be
// recovered.
func recoverable(t *testing.T, v *victim) experiment.Recovery {
	t.Helper()
	if _, err := os.Stat(filepath.Join(v.dir(), "manifest.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a manifest: %v", err)
	}
	code, rec, words := recoverRun(t, v.dir())
	if code != 0 {
		t.Fatalf("recover: exit code %d, %s", code, words)
	}
	sealed(t, v.dir(), rec.State)
	return rec
}

// The disk is full at any point, from the first file to the manifest: one line says
// so, there is never a manifest over wrong files, and with some room made what is
// there can be recovered.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	model := synth(t)
	mount := t.TempDir()
	if err := unix.Mount("tierscope-test", mount, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("a small file system cannot be mounted (%v); run as root", err)
	}
	t.Cleanup(func() { unix.Unmount(mount, unix.MNT_DETACH) })
	dir, _ := whole(t, model)
	var total int64
	filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if st, err := e.Info(); err == nil && !e.IsDir() {
			total += (st.Size() + 4095) &^ 4095
		}
		return nil
	})
	failed := map[string]bool{}
	rooms := []int64{4 << 10, 24 << 10}
	for i := range int64(4) {
		rooms = append(rooms, total*(2*i+1)/8, total-i*12<<10)
	}
	for _, room := range rooms {
		if err := unix.Mount("", mount, "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", room)); err != nil {
			t.Fatal(err)
		}
		v := start(t, model, filepath.Join(mount, "out"), faultTokens, "--no-calibration")
		code := v.wait()
		if err := unix.Mount("", mount, "", unix.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
		if code == 0 {
			sealed(t, v.dir(), run.StateComplete)
		} else {
			full(t, v, code, failed)
		}
		if err := os.RemoveAll(v.out); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%v", failed)
	if len(failed) < 3 {
		t.Errorf("it failed in few places only: %v", failed)
	}
}

// full looks at a run that found the disk full.
func full(t *testing.T, v *victim, code int, failed map[string]bool) {
	t.Helper()
	line := v.lastLine()
	if code != 5 || !strings.Contains(line, "no space left on device: free some space or write the results elsewhere") {
		t.Errorf("exit code %d: %s", code, line)
	}
	before, _, _ := strings.Cut(line, ": no space left")
	name := filepath.Base(before)
	if i := strings.Index(name, ".tmp-"); i > 0 {
		name = name[1:i]
	}
	failed[name] = true
	r := v.results()
	d := v.dir()
	switch {
	case len(r.Runs) == 0 || r.Runs[0].State == experiment.StateNone:
		if d != "" {
			t.Errorf("%s is left: %s", d, line)
		}
	case r.Runs[0].State == run.StateComplete: // only the table of runs found no room
		sealed(t, d, run.StateComplete)
	case !strings.HasSuffix(line, "then 'tierscope recover "+d+"' finishes what is there"):
		t.Errorf("no advice in %s", line)
	default:
		rec := recoverable(t, v)
		if (rec.State == run.StateComplete) != rec.Valid {
			t.Errorf("%s, valid %v", rec.State, rec.Valid)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/experiment"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// victim is a run of the program in a process of its own, to be hurt.
type victim struct {
	t      *testing.T
	out    string // results directory
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// synth writes the model that victims run: small, so that many moments can be tried.
func synth(t *testing.T) string {
	t.Helper()
	if _, err := fetch.Libs(t.Context(), func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := gguf.Synth(path, gguf.Spec{Layers: 2, Heads: 2, Width: 64, FFN: 64, Vocab: 64}); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a run of tokens tokens.
func start(t *testing.T, model, out string, tokens int, more ...string) *victim {
	t.Helper()
	v := &victim{t: t, out: out}
	args := []string{"run", "--model", model, "--out", out, "--context", "4096", "--tokens", fmt.Sprint(tokens), "--threads", "1",
		"--prompt", "one two three four", "--json"}
	v.cmd = exec.Command("tierscope", append(args, more...)...)
	v.cmd.Stdout, v.cmd.Stderr = &v.stdout, &v.stderr
	v.cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.cmd.Process.Kill()
		v.cmd.Wait()
	})
	return v
}

// wait waits for the end and returns the exit code, -1 for a signal.
func (v *victim) wait() int {
	v.t.Helper()
	done := make(chan struct{})
	go func() {
		v.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		v.t.Fatalf("the run does not end:\n%s", &v.stderr)
	}
	return v.cmd.ProcessState.ExitCode()
}

// child returns the process id of the engine child, 0 if there is none.
func (v *victim) child() int {
	pid := v.cmd.Process.Pid
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(b)) {
			cmd, _ := os.ReadFile("/proc/" + word + "/cmdline")
			if bytes.Contains(cmd, []byte("engine-child")) {
				n := 0
				fmt.Sscan(word, &n)
				return n
			}
		}
	}
	return 0
}

// until waits until f says so or the run has ended.
func (v *victim) until(f func() bool) {
	v.t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("nothing comes:\n%s", &v.stderr)
		}
	}
}

// dir returns the run directory, "" if there is none.
func (v *victim) dir() string {
	list, err := filepath.Glob(filepath.Join(v.out, "m", "*"))
	if err != nil || len(list) > 1 {
		v.t.Fatal(list, err)
	}
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// logged waits until the graph log has n bytes.
func (v *victim) logged(n int64) {
	v.t.Helper()
	v.until(func() bool {
		d := v.dir()
		if d == "" {
			return false
		}
		st, err := os.Stat(filepath.Join(d, trace.GraphLogName))
		return err == nil && st.Size() >= n
	})
}

// analysing waits until the run is being analysed.
func (v *victim) analysing() {
	v.t.Helper()
	v.until(func() bool {
		d := v.dir()
		if d == "" {
			return false
		}
		tmp, _ := filepath.Glob(filepath.Join(d, ".trace.parquet.tmp-*"))
		return len(tmp) > 0
	})
}

// results is the document on stdout.
func (v *victim) results() (r experiment.Results) {
	v.t.Helper()
	d := json.NewDecoder(&v.stdout)
	if err := d.Decode(&r); err != nil {
		v.t.Fatalf("stdout is no document: %v\n%s", err, &v.stderr)
	}
	if _, err := d.Token(); err == nil {
		v.t.Fatal("there is more than one document on stdout")
	}
	return r
}

// lastLine is the error as the user sees it.
func (v *victim) lastLine() string {
	lines := strings.Split(strings.TrimSpace(v.stderr.String()), "\n")
	return lines[len(lines)-1]
}

func note(notes []run.Note, code string) *run.Note {
	for i := range notes {
		if notes[i].Code == code {
			return &notes[i]
		}
	}
	return nil
}

// sealed fails the test unless the directory is a finished run in the state, every
// file of it as the manifest says, and a report among them.
func sealed(t *testing.T, dir, state string) *run.Run {
	t.Helper()
	if err := run.Verify(dir); err != nil {
		t.Error(err)
	}
	r, err := run.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != run.Finished || r.Manifest.State != state || r.Metadata.State != state {
		t.Errorf("%s is %s, manifest %v, metadata %s; want %s", dir, r.State, r.Manifest, r.Metadata.State, state)
	}
	listed := map[string]bool{}
	for _, f := range r.Manifest.Files {
		listed[f.Path] = true
	}
	for _, name := range []string{"report.html", "metadata.json", "metrics.csv", "trace.parquet", "objects.parquet", "marks.parquet",
		"region_map.parquet", "kv_block_lifecycle.parquet", "prompt_outputs.json", "graph/graph.log", "raw/engine.log"} {
		if !listed[name] {
			t.Errorf("%s has no %s", dir, name)
		}
	}
	return r
}

// fingerprint is a row of a trace without what differs from run to run: times,
// addresses, process.
type fingerprint struct {
	object, token, step, count, block uint32
	offset, size, stride              uint64
	op, phase, kind, region           string
	layer, seq                        int32
}

func rows(t *testing.T, dir string) []fingerprint {
	t.Helper()
	r, err := trace.Open(filepath.Join(dir, "trace.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []fingerprint
	err = r.Read(observe.ColsAll, func(b *observe.Batch) error {
		for i := range b.Len {
			out = append(out, fingerprint{
				b.Object.At(i), b.TokenIndex.At(i), b.Step.At(i), b.Count.At(i), b.KVBlock.At(i),
				b.Offset.At(i), b.Size.At(i), b.Stride.At(i),
				b.Op.Text(i), b.Phase.Text(i), b.OpType.Text(i), b.RegionType.Text(i),
				b.Layer.At(i), b.SeqID.At(i),
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// prefix fails the test unless got is the beginning of whole.
func prefix(t *testing.T, got, whole []fingerprint) {
	t.Helper()
	if len(got) > len(whole) {
		t.Fatalf("%d rows of %d", len(got), len(whole))
	}
	for i := range got {
		if got[i] != whole[i] {
			t.Fatalf("row %d of %d is %+v, want %+v", i, len(got), got[i], whole[i])
		}
	}
}

package experiment

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// The engine runs in a child: this binary, started again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == llamacpp.ChildCommand {
		os.Exit(llamacpp.Child(os.Stdin))
	}
	os.Exit(m.Run())
}

// quick is a small run of a synthetic model.
func quick(t *testing.T, out string, with func(*Quick)) *Execution {
	t.Helper()
	if _, err := fetch.Libs(t.Context(), func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(t.TempDir(), "m.gguf")
	if err := gguf.Synth(model, gguf.Spec{Layers: 1, Heads: 2, Width: 64, FFN: 64, Vocab: 64}); err != nil {
		t.Fatal(err)
	}
	q := Quick{Model: model, Context: 64, Tokens: 4, Batch: 1, Prompts: []string{"one two three"}, Set: Default(Strict).Settings()}
	q.Set.Threads, q.Set.Calibration = 1, false
	if with != nil {
		with(&q)
	}
	cfg, err := q.Config()
	if err != nil {
		t.Fatal(err)
	}
	return &Execution{Plan: NewPlan(cfg, Strict), Out: out, Stamp: Stamp(time.Now())}
}

// frames are the offsets of the records of a graph log, with its end.
func frames(log []byte) []int {
	var at []int
	for i := int(trace.EmptyGraphLog); i < len(log); i += 9 + int(binary.LittleEndian.Uint32(log[i:])) {
		at = append(at, i)
	}
	return append(at, len(log))
}

// counter is a sink that counts rows.
type counter struct{ rows int }

func (c *counter) Object(observe.Object) error { return nil }
func (c *counter) Mark(observe.Mark) error     { return nil }
func (c *counter) Accesses(b *observe.Batch) error {
	c.rows += b.Len
	return nil
}

// A log that is torn at any byte is read up to its last whole record, and says where it
// was torn; the run around it is recovered, once.
func TestTornLog(t *testing.T) {
	x := quick(t, t.TempDir(), nil)
	res, err := x.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := res.Runs[0].Dir
	log, err := os.ReadFile(filepath.Join(root, trace.GraphLogName))
	if err != nil {
		t.Fatal(err)
	}
	at := frames(log)
	if len(at) < 20 {
		t.Fatalf("%d records", len(at)-1)
	}
	meta, err := os.ReadFile(filepath.Join(root, "metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "graph.log")
	rows := 0
	for i, begin := range at[:len(at)-1] {
		end := at[i+1]
		for _, cut := range []int{begin, begin + 1, begin + 8, begin + 9, (begin + 9 + end) / 2, end - 1} {
			if cut >= end {
				continue
			}
			if err := os.WriteFile(path, log[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			var c counter
			r, err := tensorgraph.Replay(path, tensorgraph.Options{}, &c)
			if err != nil {
				t.Fatalf("cut at byte %d, in record %d: %v", cut, i, err)
			}
			if r.LogBytes != int64(begin) || (r.Torn != nil) != (cut > begin) || r.End != nil {
				t.Errorf("cut at byte %d: %d bytes read, torn: %v, want %d", cut, r.LogBytes, r.Torn, begin)
			}
			if c.rows < rows {
				t.Errorf("cut at byte %d: %d rows, %d before", cut, c.rows, rows)
			}
			rows = c.rows
		}
	}
	if all := int(res.Runs[0].rowsOf(t)); rows != all {
		t.Errorf("%d rows of %d", rows, all)
	}

	last := len(at) - 2
	for name, c := range map[string]struct {
		log   []byte
		state string
		torn  string
		code  run.Class
	}{
		"nothing":       {nil, "", "", run.Corrupt},
		"magic cut":     {log[:5], "", "", run.Corrupt},
		"magic only":    {log[:8], "", "", run.Corrupt},
		"first record":  {log[:12], run.StatePartial, "cut off", 0},
		"middle":        {log[:at[len(at)/2]], run.StatePartial, "", 0},
		"in a record":   {log[:at[len(at)/2]+11], run.StatePartial, "cut off", 0},
		"last record":   {log[:at[last]], run.StatePartial, "", 0},
		"last byte":     {log[:len(log)-1], run.StatePartial, "cut off", 0},
		"changed":       {changed(log, at[len(at)/2]+10), run.StatePartial, "checksum", 0},
		"length":        {changed(log, at[len(at)/2]+2), run.StatePartial, "cut off", 0},
		"zeros":         {append(bytes.Clone(log[:at[last]]), make([]byte, 4096)...), run.StatePartial, "checksum", 0},
		"all of it":     {log, run.StateComplete, "", 0},
		"other's magic": {append([]byte("TSGRAPH9"), log[8:]...), "", "", run.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "m", "r")
			for f, data := range map[string][]byte{"metadata.json": meta, trace.GraphLogName: c.log, "raw/engine.log": nil, ".trace.parquet.tmp-0badcafe": []byte("PAR1")} {
				p := filepath.Join(dir, f)
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			rec, err := Recover(t.Context(), dir)
			if run.ClassOf(err) != c.code {
				t.Fatalf("%v", err)
			}
			if err != nil {
				return
			}
			if err := run.Verify(dir); err != nil {
				t.Error(err)
			}
			if rec.State != c.state || rec.Valid != (c.state == run.StateComplete) || !strings.Contains(rec.Torn, c.torn) || c.torn == "" && rec.Torn != "" {
				t.Errorf("%+v", rec)
			}
			if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || len(page) < 10000 {
				t.Errorf("report of %d bytes, %v", len(page), err)
			}
			if _, err := Recover(t.Context(), dir); run.ClassOf(err) != run.Misuse {
				t.Errorf("recovered twice: %v", err)
			}
		})
	}
}

func changed(log []byte, at int) []byte {
	log = bytes.Clone(log)
	log[at] ^= 0x40
	return log
}

func (r *RunResult) rowsOf(t *testing.T) int64 {
	t.Helper()
	f, err := trace.Open(filepath.Join(r.Dir, "trace.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Rows()
}

// A sweep that is interrupted goes on where it was, and only there.
func TestResume(t *testing.T) {
	x := quick(t, t.TempDir(), nil)
	x.Plan.Config.Sweep.OutputTokens = []int{2, 3, 4}
	x.Plan = NewPlan(x.Plan.Config, Strict)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := 0
	x.Progress = func(format string, _ ...any) {
		if strings.HasPrefix(format, "run %d of") {
			if begun++; begun == 2 {
				cancel()
			}
		}
	}
	res, err := x.Execute(ctx)
	if run.ClassOf(err) != run.Interrupted || len(res.Runs) != 2 || res.Runs[0].State != run.StateComplete || res.Runs[1].State != StateNone || res.Error == "" {
		t.Fatalf("%v %+v", err, res)
	}
	first := res.Runs[0]
	seal, err := os.Stat(filepath.Join(first.Dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}

	// Without resume nothing is used again: the run id is taken.
	x.Progress = nil
	if res, err = x.Execute(t.Context()); run.ClassOf(err) != run.Misuse || res.Runs[0].State != StateNone || !strings.Contains(err.Error(), "a run is never overwritten") {
		t.Errorf("%v %+v", err, res)
	}
	x.Resume, x.Stamp = true, x.Stamp+"b"
	if res, err = x.Execute(t.Context()); err != nil || len(res.Runs) != 3 || res.Summary != "3 of 3 runs valid, 0 warm-ups apart" {
		t.Fatalf("%v %+v", err, res)
	}
	for i, r := range res.Runs {
		if r.Resumed != (i < 3 && !strings.HasSuffix(r.RunID, "b")) || r.State != run.StateComplete {
			t.Errorf("run %d: %+v", i, r)
		}
	}
	if r := res.Runs[0]; r.Dir != first.Dir || !r.Resumed || len(r.Notes) != len(first.Notes) {
		t.Errorf("%+v", r)
	}
	if again, err := os.Stat(filepath.Join(first.Dir, "manifest.json")); err != nil || !again.ModTime().Equal(seal.ModTime()) {
		t.Errorf("the first run was touched: %v", err)
	}
	// Another plan shares nothing with this one.
	x.Plan.Config.Tierscope.KVBlockTokens = 8
	x.Stamp += "c"
	if res, err = x.Execute(t.Context()); err != nil || res.Runs[0].Resumed {
		t.Errorf("%v %+v", err, res)
	}
}

// Two executions at once in one results directory share its table of runs.
func TestTwoAtOnce(t *testing.T) {
	out := t.TempDir()
	x := quick(t, out, nil)
	y := *x
	y.Stamp += "b"
	errs := make(chan error, 2)
	for _, x := range []*Execution{x, &y} {
		go func() {
			_, err := x.Execute(t.Context())
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(out, "manifest.csv"))
	if err != nil || bytes.Count(b, []byte("\n")) != 3 {
		t.Errorf("%v\n%s", err, b)
	}
}

// A batch of two is decoded together, and what is left over alone.
func TestBatch(t *testing.T) {
	x := quick(t, t.TempDir(), func(q *Quick) { q.Batch, q.Prompts = 2, []string{"one two", "three four", "five"} })
	res, err := x.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := trace.OpenGraphLog(filepath.Join(res.Runs[0].Dir, trace.GraphLogName))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	together := map[uint32]int{} // decode steps by the sequences in them
	for {
		kind, p, err := log.Next()
		if err != nil {
			break
		}
		if kind != trace.KindStep {
			continue
		}
		s, err := trace.DecodeStep(p)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Prefill {
			together[s.Tokens]++
		}
	}
	// Four tokens each; the first comes of the prefill.
	if together[2] != 3 || together[1] != 3 || len(together) != 2 {
		t.Errorf("decode steps by sequences: %v", together)
	}
}

func TestMemoryNote(t *testing.T) {
	f := &gguf.File{Size: 8 << 30}
	for total, want := range map[uint64]bool{0: false, 16 << 30: false, 8 << 30: true, 4 << 30: true} {
		note, ok := memoryNote(f, total)
		if ok != want || ok && (note.Severity != run.Warning || !strings.Contains(note.Text, "8 GiB")) {
			t.Errorf("memory of %d: %v %+v", total, ok, note)
		}
	}
}

func TestCacheFits(t *testing.T) {
	f := &gguf.File{Path: "m.gguf"}
	f.Shape.KVHeads, f.Shape.KeyLength, f.Shape.ValueLength = []int{2, 2, 2}, 64, 64
	f.Shape.SlidingLayers = []bool{false, true, false}
	set := defaultSettings()
	const cell = 2 * 2 * (64 + 64) * 2 // two layers keep all of it
	if err := cacheFits(f, &set, 1000, 2, 1000*2*cell); err != nil {
		t.Error(err)
	}
	err := cacheFits(f, &set, 1001, 2, 1000*2*cell)
	if run.ClassOf(err) != run.Capability || !strings.Contains(err.Error(), "1001 tokens for 2 sequences") {
		t.Error(err)
	}
	set.KVTypeK, set.KVTypeV = "q8_0", "q8_0" // 34 bytes for 32 elements
	if err := cacheFits(f, &set, 1882, 2, 1000*2*cell); err != nil {
		t.Error(err)
	}
	if err := cacheFits(f, &set, 1883, 2, 1000*2*cell); err == nil {
		t.Error("more than there is fits")
	}
}

// What a killed process left is removed; what a live one uses is not.
func TestScratch(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	used, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	left, young := filepath.Join(temp, scratchPrefix+"left"), filepath.Join(temp, scratchPrefix+"young")
	other := filepath.Join(temp, "other")
	for _, d := range []string{left, young, other} {
		if err := os.MkdirAll(filepath.Join(d, "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, d := range []string{used.dir, left, other} {
		if err := os.Chtimes(d, old, old); err != nil {
			t.Fatal(err)
		}
	}
	next, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	next.remove()
	for d, want := range map[string]bool{left: false, young: true, other: true, used.dir: true, next.dir: false} {
		if _, err := os.Stat(d); (err == nil) != want {
			t.Errorf("%s: %v", d, err)
		}
	}
	used.remove()
}

package analyze_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// sum is an analysis that adds a column up and keeps note of what it was given.
type sum struct {
	cols  observe.Cols
	rows  int
	total uint64
	given observe.Cols
}

func (s *sum) Columns() observe.Cols { return s.cols }

func (s *sum) Observe(b *observe.Batch) error {
	s.rows += b.Len
	if b.Time.Form != observe.Absent {
		s.given |= observe.ColTime
	}
	if b.Address.Form != observe.Absent {
		s.given |= observe.ColAddress
	}
	if b.CPU.Form != observe.Absent {
		s.given |= observe.ColCPU
	}
	for i := range b.Len {
		s.total += b.Time.At(i)
	}
	return nil
}

func (s *sum) Tables() ([]analyze.Table, error) { return nil, nil }

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.parquet")
	w, err := trace.Create(path, trace.Options{RowGroupRows: 300})
	if err != nil {
		t.Fatal(err)
	}
	b := observe.Batch{Len: 1000, Time: observe.RunOf[uint64](0, 1), Address: observe.RunOf[uint64](1<<20, 64), CPU: observe.ConstOf[uint16](1)}
	if err := w.Accesses(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{path, dir} {
		in, runDir, err := analyze.OpenTrace(from)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if (runDir != "") != (from == dir) {
			t.Errorf("%s: run directory is %q", from, runDir)
		}
		one, two := &sum{cols: observe.ColTime}, &sum{cols: observe.ColAddress}
		last := int64(0)
		err = analyze.Read(t.Context(), in, func(done, total int64) {
			if done <= last || total != 1000 {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		}, one, two)
		if err != nil || one.rows != 1000 || two.rows != 1000 || one.total != 999*500 || last != 1000 {
			t.Errorf("%s: %d and %d rows, sum %d, progress to %d: %v", from, one.rows, two.rows, one.total, last, err)
		}
		if one.given != observe.ColTime|observe.ColAddress {
			t.Errorf("columns given are %b", one.given)
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if err := analyze.Read(stopped, in, nil, &sum{}); run.ExitCode(err) != 130 {
			t.Errorf("reading after Ctrl-C: %v", err)
		}
	}
}

func TestOpenTraceRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no parquet"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]run.Class{dir: run.Invalid, text: run.Corrupt, filepath.Join(dir, "nothing"): run.IO} {
		if in, _, err := analyze.OpenTrace(path); run.ClassOf(err) != want {
			t.Errorf("%s: %v, %v; want class %d", path, in, err, want)
		}
	}
}

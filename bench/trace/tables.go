package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// tenTables is all that `analyze --compat mrm` does with a file.
func tenTables(path string) error {
	in, err := trace.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	s := mrm.New(mrm.Options{})
	defer s.Close()
	if err := in.Read(s.Columns(), s.Observe); err != nil {
		return err
	}
	r, err := s.Result()
	if err != nil {
		return err
	}
	return r.WriteJSON(io.Discard)
}

func (b *bed) tables() error {
	in := points(pick(b, 12, 160))
	n, rounds := len(in)*batchRows, pick(b, 2, 7)
	path := filepath.Join(b.dir, "tables.parquet")
	if _, err := writeTrace(path, in); err != nil {
		return err
	}
	ours, err := b.rate(n, rounds, func() error { return tenTables(path) })
	if err != nil {
		return err
	}
	scan, err := b.rate(n, rounds, func() error {
		r, err := trace.Open(path)
		if err != nil {
			return err
		}
		defer r.Close()
		s := mrm.New(mrm.Options{})
		defer s.Close()
		seen := 0
		err = r.Read(s.Columns(), func(batch *observe.Batch) error { seen += batch.Len; return nil })
		if err == nil && seen != n {
			err = fmt.Errorf("%d rows of %d were read", seen, n)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.add(
		sampled(figure{ID: "tables", What: "ten tables from a file of points", Unit: "rows/s a core", Goal: atLeast(3e6), Of: "passes",
			How: fmt.Sprintf("trace.parquet of %d points, from opening it to the ten tables as JSON; rows over processor time.", n)}, ours),
		sampled(figure{ID: "tables_scan", What: "beside: the same columns read and left", Unit: "rows/s a core", Of: "passes", How: "The columns that the tables need, decoded from the same file."}, scan))
	return b.original(in)
}

// original has mrm-trace do its tables on the first of the same rows, if it is
// installed.
func (b *bed) original(in []*observe.Batch) error {
	cache, err := fetch.Cache()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cache, "venv-mrm", "pins.txt")); err != nil {
		b.say("  mrm-trace is not installed (scripts/venv-mrm.sh): no figure of the original")
		return nil
	}
	few := in[:3]
	if b.quick {
		first := make([]int32, batchRows/4)
		for i := range first {
			first[i] = int32(i)
		}
		cut := in[0].Keep(first)
		few = []*observe.Batch{&cut}
	}
	n := 0
	for _, batch := range few {
		n += batch.Len
	}
	path := filepath.Join(b.dir, "original.parquet")
	if _, err := writeTrace(path, few); err != nil {
		return err
	}
	python, err := exec.CommandContext(b.ctx, filepath.Join(b.root, "scripts", "venv-mrm.sh")).Output()
	if err != nil {
		return fmt.Errorf("scripts/venv-mrm.sh: %w", err)
	}
	paths := []string{filepath.Join(b.root, "analyze", "mrm", "testdata", "original.py")}
	for range pick(b, 1, 3) {
		paths = append(paths, path)
	}
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(b.ctx, strings.TrimSpace(string(python)), paths...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("mrm-trace: %w\n%s", err, stderr.Bytes())
	}
	var theirs []float64
	for d := json.NewDecoder(&stdout); d.More(); {
		var took struct{ Seconds float64 }
		if err := d.Decode(&took); err != nil {
			return err
		}
		theirs = append(theirs, float64(n)/took.Seconds)
	}
	ours, err := b.rate(n, pick(b, 2, 7), func() error { return tenTables(path) })
	if err != nil {
		return err
	}
	mean := func(v []float64) float64 { return sampled(figure{}, v).Value }
	b.add(
		sampled(figure{ID: "tables_original", What: "beside: mrm-trace 0.1.23 on some of the same rows", Unit: "rows/s a core", Of: "passes",
			How: fmt.Sprintf("compute_all on the first %d rows, which it holds in memory already, by wall clock.", n)}, theirs),
		figure{ID: "tables_faster", What: "ten tables, times the original's rate", Unit: "times", Value: mean(ours) / mean(theirs), N: len(ours), Of: "passes",
			How: fmt.Sprintf("Ours on the same %d rows, from the file, over the original's rate.", n)})
	return nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/system/machine"
)

// bed is where figures are measured.
type bed struct {
	ctx   context.Context
	root  string // of the module
	dir   string // scratch
	quick bool
	model string
	lib   string
	say   func(string, ...any)
	res   *result
}

// pick is one of two sizes of the work.
func pick[T any](b *bed, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

func (b *bed) add(f ...figure) {
	for _, x := range f {
		x = x.judged()
		b.res.Figures = append(b.res.Figures, x)
		b.say("  %s: %s", x.What, x.measured())
	}
}

// measure takes every figure, one after the other: nothing runs beside it.
func measure(ctx context.Context, root string, quick bool, say func(string, ...any)) (*result, error) {
	begun := time.Now()
	b := &bed{ctx: ctx, root: root, quick: quick, say: say, res: &result{Mode: "full", Command: "make bench-trace"}}
	if quick {
		b.res.Mode, b.res.Command = "quick", "go run ./bench/trace --quick"
	}
	b.describe(begun)
	var err error
	if b.model, err = fetch.Model(ctx, func(s string) { say("%s", s) }); err != nil {
		return nil, err
	}
	if b.lib, err = fetch.Libs(ctx, func(s string) { say("%s", s) }); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "tierscope-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"decode speed kept", b.speed},
		{"memory of the parent process, and the graph log", b.memory},
		{"rows written", b.rows},
		{"ten tables", b.tables},
	} {
		say("%s", step.what)
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, run.Errorf(run.Interrupted, "interrupted: %w", err)
		}
	}
	b.res.Seconds = time.Since(begun).Seconds()
	return b.res, nil
}

func (b *bed) describe(now time.Time) {
	r := b.res
	r.Started, r.Cores, r.Go = now.UTC().Format(time.RFC3339), runtime.NumCPU(), runtime.Version()
	host := machine.New("")
	m := run.NewMetadata()
	host.Describe(m)
	r.CPU, r.Memory, r.OS = m.Hardware.CPUModel, m.Hardware.MemoryTotal, m.Software.OS
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if _, err := fmt.Sscan(string(text), &r.Load); err != nil {
			r.Load = 0
		}
	}
}

// cpu is the processor time that f takes in this process, garbage collection
// included: rates a core rest on it, so that what else runs on the machine matters
// little.
func cpu(f func() error) (time.Duration, error) {
	runtime.GC()
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	err := f()
	return used() - before, err
}

// rate is how many of n a core gets done in a second, over several rounds.
func (b *bed) rate(n, rounds int, f func() error) ([]float64, error) {
	var out []float64
	for range rounds {
		if err := b.ctx.Err(); err != nil {
			return nil, err
		}
		d, err := cpu(f)
		if err != nil {
			return nil, err
		}
		out = append(out, float64(n)/d.Seconds())
	}
	return out, nil
}

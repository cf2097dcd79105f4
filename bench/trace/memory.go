package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/internal/stats"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// finishing is what the program says when the engine is done and files are written.
const finishing = "expanding and analysing the trace"

// memory runs the real program on a long generation and watches its memory.
func (b *bed) memory() error {
	program, model := filepath.Join(b.dir, "tierscope"), filepath.Join(b.dir, "long.gguf")
	build := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-o", program, "./cmd/tierscope")
	build.Dir, build.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	spec, err := gguf.PresetSpec("smollm2-135m", pick(b, 4, 30))
	if err != nil {
		return err
	}
	spec.Type, spec.Vocab = "q4_0", 4096
	if err := gguf.Synth(model, spec); err != nil {
		return err
	}
	tokens := pick(b, 200, 1000)
	args := []string{"run", "--model", model, "--context", "2048", "--tokens", strconv.Itoa(tokens), "--prompt", "a long answer, please",
		"--no-calibration", "--out", filepath.Join(b.dir, "results")}
	var following, finish []float64
	for range pick(b, 1, stats.MinSamples) {
		p, err := b.peak(program, args)
		if err != nil {
			return err
		}
		following, finish = append(following, p.following), append(finish, p.finishing)
	}
	how := fmt.Sprintf("VmHWM of the process of `tierscope run`, its engine child apart, on a synthetic model of SmolLM2's shape (%d layers) that generates %d tokens; ", spec.Layers, tokens)
	b.add(
		sampled(figure{ID: "memory_following", What: "peak RSS of the parent while the engine runs", Unit: "MiB", Goal: atMost(64), Of: "runs", How: how + "up to the end of the engine."}, following),
		sampled(figure{ID: "memory_finishing", What: "peak RSS of the parent while it writes and analyses", Unit: "MiB", Goal: atMost(64), Of: "runs", How: how + "reset at the end of the engine, read until the process ends."}, finish))
	return b.graphLog()
}

// peaks are in MiB.
type peaks struct{ following, finishing float64 }

// peak runs the program and reads the high-water mark of its memory in its two
// phases.
func (b *bed) peak(program string, args []string) (peaks, error) {
	var p peaks
	c := exec.CommandContext(b.ctx, program, args...)
	says, err := c.StderrPipe()
	if err != nil {
		return p, err
	}
	if err := c.Start(); err != nil {
		return p, err
	}
	status := fmt.Sprintf("/proc/%d/status", c.Process.Pid)
	var last atomic.Uint64
	stop := make(chan struct{})
	var tail []string
	switched := false
	for sc := bufio.NewScanner(says); sc.Scan(); {
		tail = append(tail, sc.Text())
		if !strings.Contains(sc.Text(), finishing) || switched {
			continue
		}
		switched = true
		kib, err := highWater(status)
		if err != nil {
			return p, err
		}
		p.following = float64(kib) / 1024
		// 5 resets the mark to what is resident now.
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.Process.Pid), []byte("5"), 0); err != nil {
			return p, fmt.Errorf("reset of the peak: %w", err)
		}
		go func() {
			for t := time.NewTicker(2 * time.Millisecond); ; {
				if kib, err := highWater(status); err == nil {
					last.Store(kib)
				}
				select {
				case <-t.C:
				case <-stop:
					t.Stop()
					return
				}
			}
		}()
	}
	close(stop)
	if _, err := io.Copy(io.Discard, says); err != nil {
		return p, err
	}
	if err := c.Wait(); err != nil {
		return p, fmt.Errorf("tierscope: %w: %s", err, strings.Join(tail[max(0, len(tail)-3):], "; "))
	}
	if p.finishing = float64(last.Load()) / 1024; p.finishing == 0 || p.following == 0 {
		return p, run.Errorf(run.Partial, "memory of tierscope was not seen in both phases")
	}
	return p, nil
}

// highWater is VmHWM in KiB.
func highWater(status string) (uint64, error) {
	text, err := os.ReadFile(status)
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(after, " kB")
	if !ok {
		return 0, fmt.Errorf("%s: no VmHWM", status)
	}
	return strconv.ParseUint(strings.TrimSpace(line), 10, 64)
}

// counter is a sink that only counts rows.
type counter struct{ rows int }

func (c *counter) Object(observe.Object) error         { return nil }
func (c *counter) Mark(observe.Mark) error             { return nil }
func (c *counter) Accesses(batch *observe.Batch) error { c.rows += batch.Len; return nil }

// graphLog measures the log that the last run left.
func (b *bed) graphLog() error {
	logs, err := filepath.Glob(filepath.Join(b.dir, "results", "*", "*", trace.GraphLogName))
	if err != nil || len(logs) == 0 {
		return fmt.Errorf("no graph log was left (%w)", err)
	}
	path := logs[len(logs)-1]
	var res *tensorgraph.Result
	var samples []float64
	for range pick(b, 2, 8) {
		c := &counter{}
		d, err := cpu(func() (err error) {
			res, err = tensorgraph.Replay(path, tensorgraph.Options{RunID: "bench"}, c)
			return err
		})
		if err != nil {
			return err
		}
		samples = append(samples, float64(c.rows)/d.Seconds())
	}
	if res.Decoded == 0 {
		return run.Errorf(run.Partial, "%s holds no decode step", path)
	}
	b.add(
		figure{ID: "log_bytes", What: "graph log on disk", Unit: "B a decode token", Goal: atMost(512), Value: float64(res.DecodeLogBytes) / float64(res.Decoded), N: int(res.Decoded), Of: "tokens",
			How: "Bytes of the records of decode steps in graph.log, templates included, over the number of decode steps of that run; exact."},
		sampled(figure{ID: "log_expand", What: "graph log expanded to rows", Unit: "rows/s a core", Of: "passes", How: fmt.Sprintf("tensorgraph.Replay of that log, %d rows, into a sink that counts; rows over processor time.", res.Rows)}, samples))
	return nil
}

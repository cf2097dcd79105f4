//go:build linux

package llamacpp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/tierscope/tierscope/internal/ring"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// ChildCommand is the argument with which the program starts itself as the
// engine's child process; main hands it to [Child].
const ChildCommand = "engine-child"

const (
	// ringBytes holds a few of the largest templates and seconds of decode.
	ringBytes = 8 << 20
	// pollEvery is how often the parent looks into the ring: rare enough to
	// leave the engine its cores.
	pollEvery = 20 * time.Millisecond
	// grace is how long a child may take to end in order.
	grace = 10 * time.Second
)

// Records takes the records of a child, in order. It is called from one
// goroutine; payload is valid for the time of the call.
type Records interface {
	Append(kind uint8, payload []byte) error
	Flush() error
}

// Run runs the job in a child process and passes its records on. The engine's
// own log goes to log. When ctx is done the child is asked to end in order, and
// killed after a grace time or when job.Kill is closed. When records takes no
// more, it is killed at once. The error says how the job ended: of the child's
// own making, or that it died.
func Run(ctx context.Context, job *Job, records Records, log *os.File) (trace.End, error) {
	j := *job
	j.Resolve()
	if err := j.validate(); err != nil {
		return trace.End{}, err
	}
	doc, err := json.Marshal(&j)
	if err != nil {
		return trace.End{}, err
	}
	if err := tellModel(j.Model, records); err != nil {
		return trace.End{}, err
	}
	file, err := ring.Create(ringBytes)
	if err != nil {
		return trace.End{}, err
	}
	defer file.Close()
	consumer, err := ring.NewConsumer(file)
	if err != nil {
		return trace.End{}, err
	}
	defer consumer.Close()
	self, err := os.Executable()
	if err != nil {
		return trace.End{}, err
	}
	cmd := exec.Command(self, ChildCommand)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(doc), log
	cmd.ExtraFiles = []*os.File{file}
	// The terminal's Ctrl-C is the parent's to act on; and no child outlives it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	exited, err := start(cmd)
	if err != nil {
		return trace.End{}, run.Errorf(run.Engine, "engine child: %w", err)
	}
	p := &process{cmd: cmd, ring: consumer, records: records}
	err = p.follow(ctx, job.Kill, exited)
	p.end.Lost, p.end.Stalled = consumer.Lost(), uint64(consumer.Stalled())
	return p.end, err
}

// start starts the command on a thread that lives as long as the child does:
// Pdeathsig fires when the *thread* that forked it ends.
func start(cmd *exec.Cmd) (<-chan error, error) {
	started, exited := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
			close(exited)
		}
	}()
	return exited, <-started
}

type process struct {
	cmd     *exec.Cmd
	ring    *ring.Consumer
	records Records
	end     trace.End
	ended   bool
	killed  bool // by this process
}

func (p *process) follow(ctx context.Context, now <-chan struct{}, exited <-chan error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	done := ctx.Done()
	var kill <-chan struct{}
	for {
		if err := p.drain(); err != nil {
			p.cmd.Process.Kill()
			for range exited { // killed: how it ended says nothing
			}
			return err
		}
		select {
		case <-tick.C:
		case <-done:
			done = nil
			p.cmd.Process.Signal(syscall.SIGTERM)
			var stop func()
			kill, stop = either(now, grace)
			defer stop()
		case <-kill:
			kill, p.killed = nil, true
			p.cmd.Process.Kill()
		case err := <-exited:
			if e := p.drain(); e != nil {
				return e
			}
			return p.verdict(ctx, err)
		}
	}
}

// either returns a channel that is closed when now is or when d has passed.
func either(now <-chan struct{}, d time.Duration) (<-chan struct{}, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	if now != nil {
		go func() {
			select {
			case <-now:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx.Done(), cancel
}

// drain passes on everything that is in the ring now.
func (p *process) drain() error {
	for n := 0; ; n++ {
		rec, ok, err := p.ring.Read()
		if err != nil {
			return run.Errorf(run.Partial, "engine child: %w", err)
		}
		if !ok {
			if n == 0 {
				return nil
			}
			return p.records.Flush()
		}
		kind := uint8(rec.Kind)
		switch kind {
		case trace.KindEnd:
			if err := json.Unmarshal(rec.Payload, &p.end); err != nil {
				return run.Errorf(run.Partial, "engine child: last record: %w", err)
			}
			p.ended = true
			p.end.Lost, p.end.Stalled = p.ring.Lost(), uint64(p.ring.Stalled())
			b, err := json.Marshal(&p.end)
			if err != nil {
				return err
			}
			if err := p.records.Append(kind, b); err != nil {
				return err
			}
			continue
		}
		if err := p.records.Append(kind, rec.Payload); err != nil {
			return err
		}
	}
}

// verdict says how the job ended.
func (p *process) verdict(ctx context.Context, exit error) error {
	if p.ended {
		if p.end.Error == "" {
			return nil
		}
		class := run.Class(p.end.Class)
		if class == run.Invalid {
			class = run.Engine // of no class of its own: something in the engine's process failed
		}
		return run.Errorf(class, "%s", p.end.Error)
	}
	if ctx.Err() != nil {
		if p.killed {
			return run.Errorf(run.Interrupted, "interrupted; the engine did not end in order and was killed")
		}
		return run.Errorf(run.Interrupted, "interrupted before the engine was ready")
	}
	var status *exec.ExitError
	if errors.As(exit, &status) {
		if ws, ok := status.Sys().(syscall.WaitStatus); ok && ws.Signal() == syscall.SIGKILL {
			return run.Errorf(run.Engine, "engine child was killed, by the kernel if memory ran out (dmesg says so); its last words are in raw/engine.log")
		}
		return run.Errorf(run.Engine, "engine child died: %s; its last words are in raw/engine.log", status.ProcessState)
	}
	return run.Errorf(run.Engine, "engine child ended without a last record (%v); its last words are in raw/engine.log", exit)
}

// Complaint is what the engine's log says went wrong: the last line that speaks of an
// error, else the last line; "" if there is none.
func Complaint(path string) string {
	lines := strings.Split(LastWords(path, 20), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(lines[i]), "error") {
			return lines[i]
		}
	}
	return lines[len(lines)-1]
}

// LastWords returns the last lines of an engine log.
func LastWords(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > 4096 {
		if _, err := f.Seek(-4096, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

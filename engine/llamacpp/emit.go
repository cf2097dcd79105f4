//go:build linux

package llamacpp

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/internal/ring"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// patience is how long the engine waits for the parent to make room before a
// record counts as lost. It is far above anything but a dead or stopped parent.
const patience = 20 * time.Second

// emitter writes records into the ring. It implements ggml.Emit.
type emitter struct {
	ring *ring.Producer
	buf  []byte
	idle bool // calibrating: evaluations cost the same and are not kept
}

func (e *emitter) write(kind uint32, payload []byte) error {
	if err := e.ring.Write(kind, payload, patience); err != nil {
		return fmt.Errorf("record for the trace: %w", err)
	}
	return nil
}

func (e *emitter) json(kind uint32, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.write(kind, b)
}

func (e *emitter) Tables(b []byte) error   { return e.write(trace.KindTables, b) }
func (e *emitter) Buffer(b []byte) error   { return e.write(trace.KindBuffer, b) }
func (e *emitter) Template(b []byte) error { return e.write(trace.KindTemplate, b) }

func (e *emitter) Eval(b []byte) error {
	if e.idle {
		return e.write(trace.KindIdle, b)
	}
	return e.write(trace.KindEval, b)
}

func (e *emitter) mark(m observe.Mark) error {
	e.buf = trace.AppendMark(e.buf[:0], m)
	return e.write(trace.KindMark, e.buf)
}

func (e *emitter) step(s trace.Step) error {
	e.buf = s.Append(e.buf[:0])
	return e.write(trace.KindStep, e.buf)
}

func now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return uint64(ts.Nano())
}

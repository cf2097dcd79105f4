//go:build linux

package ggml

import (
	"errors"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

const (
	// graphCall is the one call through which libllama starts a graph.
	graphCall = "ggml_backend_sched_graph_compute_async"
	// placeCall is the one through which it gives a graph that it has built its
	// memory. A graph that it starts again without is the one it started before.
	placeCall = "ggml_backend_sched_alloc_graph"
	// recheck is how often such a graph is looked at all the same.
	recheck = 64
)

// Hook records every graph that libllama starts in this process. Its methods
// are called on the thread that drives the engine.
type Hook struct {
	lib  *Lib
	rec  *recorder
	slot *Slot
	orig uintptr
	into uintptr // what the slot leads to while on

	place     *Slot // nil: every graph is looked at
	placeOrig uintptr
	placeInto uintptr
	placing   bool    // it leads here, from the first On to the end
	same      *known  // graph started last, nil when it may have changed
	graph     uintptr // its address
	reused    uint    // times it was taken for the same since it was looked at
	fast      fast

	verified bool
	sched    uintptr
	on       bool
	thread   uint32
	cur      *known
	err      error
	cost     Cost

	cb        uintptr
	wantTimes bool
	wantIDs   bool
	walk      walk
}

// HookOptions choose what a hook sees beside the graphs.
type HookOptions struct {
	// NodeTimes asks the evaluation callback for the end of every layer.
	NodeTimes bool
	// Chosen asks it for index tensors that arise inside a graph.
	Chosen bool
	// CallbackOnly leaves the jump slot alone.
	CallbackOnly bool
}

// NewHook prepares to record the graphs that the libllama loaded from llama
// starts. If libllama has no jump slot for them, the evaluation callback sees the
// nodes instead; see [Hook.Via].
func NewHook(lib *Lib, llama string, emit Emit, opt HookOptions) (*Hook, error) {
	h := &Hook{lib: lib, rec: newRecorder(lib, emit), orig: lib.fn[graphCall], wantTimes: opt.NodeTimes, wantIDs: opt.Chosen, walk: newWalk()}
	if !opt.CallbackOnly {
		s, err := FindSlot(llama, graphCall, h.orig)
		switch {
		case err == nil:
			h.slot = s
			h.into = purego.NewCallback(h.compute)
			h.placeOrig = lib.fn[placeCall]
			if h.place, err = FindSlot(llama, placeCall, h.placeOrig); err == nil {
				h.placeInto = purego.NewCallback(h.placed)
			}
		case !errors.Is(err, ErrNoSlot):
			return nil, err
		}
	}
	if h.slot == nil || opt.NodeTimes || opt.Chosen {
		eval := h.eval
		if h.slot == nil {
			eval = h.evalWalk
		}
		h.cb = purego.NewCallback(eval)
	}
	if h.place != nil && h.cb == 0 {
		if h.fast = newFast(h.into, h.orig); h.fast.route != nil {
			h.into = shortcutEntry()
		}
	}
	return h, nil
}

// Via says how graphs are seen: "slot", "slot+callback" or "callback".
func (h *Hook) Via() string {
	switch {
	case h.slot == nil:
		return "callback"
	case h.cb != 0:
		return "slot+callback"
	}
	return "slot"
}

// Callback is the evaluation callback to give to the engine's context, 0 for
// none.
func (h *Hook) Callback() uintptr { return h.cb }

// On starts recording, Off stops it and leaves the engine as if never hooked, but that
// it still tells when it builds a graph anew.
func (h *Hook) On() error {
	h.on = true
	h.thread = uint32(unix.Gettid())
	if h.cb != 0 && h.sched != 0 {
		h.setCallback(h.cb)
	}
	if h.slot == nil {
		return nil
	}
	if h.place != nil && !h.placing {
		if err := h.place.Set(h.placeInto); err != nil {
			return err
		}
		h.placing = true
	}
	return h.slot.Set(h.into)
}

// Off stops recording.
func (h *Hook) Off() {
	h.drain()
	h.on = false
	if h.slot != nil {
		h.slot.Restore()
	}
	if h.cb != 0 && h.sched != 0 {
		h.setCallback(0)
	}
}

func (h *Hook) setCallback(cb uintptr) {
	purego.SyscallN(h.lib.fn["ggml_backend_sched_set_eval_callback"], h.sched, cb, 0)
}

// Cost is what the hook itself took, the engine's part left out. Where the slot is
// not used it stays zero, and the callback's part is not in it.
type Cost struct {
	Evals uint64 // graph evaluations
	NS    uint64
}

// Cost returns what all evaluations so far took.
func (h *Hook) Cost() Cost { return h.cost }

// Err is the first thing that went wrong while recording.
func (h *Hook) Err() error { return h.err }

func now() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return uint64(ts.Nano())
}

// compute stands in for graphCall. It is called by the engine's thread.
func (h *Hook) compute(sched, graph uintptr) uintptr {
	h.sched = sched
	if h.err == nil && !h.verified {
		h.err = h.lib.Verify(graph)
		h.verified = true
	}
	if h.err != nil {
		return h.pass(sched, graph)
	}
	h.drain()
	begin := now()
	k, err := h.recognise(graph)
	if err != nil {
		h.err = err
		return h.pass(sched, graph)
	}
	h.rec.start(k)
	h.cur = k
	start := now()
	r := h.pass(sched, graph)
	end := now()
	h.cur = nil
	h.rec.ev.Start, h.rec.ev.End, h.rec.ev.Thread = start, end, h.thread
	h.err = h.rec.finish()
	h.cost.Evals++
	h.cost.NS += start - begin + now() - end
	return r
}

// recognise returns the template of the graph. Looking at all of its tensors takes as
// long as fetching them from memory, 0.1 ms for a thousand. It is needed only where
// libllama has built the graph anew; that this is so is checked the first time, and
// then now and again.
func (h *Hook) recognise(graph uintptr) (*known, error) {
	last := h.same
	reuse := last != nil && graph == h.graph
	if reuse && last.reusable && h.reused < recheck {
		h.reused++
	} else {
		k, err := h.rec.begin(graphLists(ptr(graph)))
		switch {
		case err != nil:
			return nil, err
		case reuse && k != last:
			return nil, &LayoutError{"a graph changed although it was not built anew"}
		case h.place == nil:
			return k, nil
		}
		k.reusable = k.reusable || reuse
		h.same, h.graph, h.reused = k, graph, 0
	}
	if h.same.reusable {
		h.fast.arm(graph, h.same, recheck-h.reused)
	}
	return h.same, nil
}

// placed stands in for placeCall.
func (h *Hook) placed(sched, graph uintptr) uintptr {
	h.drain()
	h.forget()
	r, _, _ := purego.SyscallN(h.placeOrig, sched, graph)
	return r
}

// forget takes no graph for the one before any more.
func (h *Hook) forget() {
	h.same = nil
	h.fast.disarm()
}

func (h *Hook) pass(sched, graph uintptr) uintptr {
	r, _, _ := purego.SyscallN(h.orig, sched, graph)
	return r
}

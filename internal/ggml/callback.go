//go:build linux

package ggml

import "strings"

// eval is the evaluation callback beside the slot: asked before a node whether
// its result is wanted, and called again when it is there.
func (h *Hook) eval(t, ask, _ uintptr) uintptr {
	asked := ask&0xff != 0
	if !h.on || h.err != nil || h.cur == nil {
		return b2u(!asked)
	}
	p := ptr(t)
	i, ids := h.cur.wanted[p]
	ids = ids && h.wantIDs
	times := h.wantTimes && endsLayer(p)
	if asked {
		return b2u(ids || times)
	}
	if ids {
		h.rec.ev.Chosen[i] = h.cur.chosen[i].read(nil)
	}
	if times {
		h.rec.ev.Times = append(h.rec.ev.Times, NodeTime{h.cur.layers[p], now()})
	}
	return 1
}

// endsLayer knows the name that every architecture of llama.cpp gives to the
// output of a layer.
func endsLayer(p ptr) bool { return strings.HasPrefix(p.name(), "l_out-") }

func b2u(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// evalWalk is the evaluation callback where there is no slot. What is wanted of
// a node must be told from the node alone, so experts are known by the name that
// llama.cpp gives to a router's choice.
func (h *Hook) evalWalk(t, ask, _ uintptr) uintptr {
	asked := ask&0xff != 0
	if !h.on || h.err != nil {
		return b2u(!asked)
	}
	p, w := ptr(t), &h.walk
	ids := h.wantIDs && strings.HasPrefix(p.name(), "ffn_moe_topk")
	times := h.wantTimes && endsLayer(p)
	if !asked {
		if ids {
			h.look(p)
		}
		if times {
			w.times = append(w.times, NodeTime{uint32(len(w.nodes) - 1), now()})
		}
		return 1
	}
	if w.over(p) {
		h.Flush()
	}
	if !h.verified {
		if h.err = h.lib.verifyTensor(p, true); h.err != nil {
			return 0
		}
	}
	if len(w.nodes) == 0 {
		w.start = now()
	}
	w.add(p)
	h.rec.lib.learn(p)
	if s := indexSource(h.lib.Tables.OpName(p.op())); s >= 0 {
		idx := p.src()[s]
		if _, done := w.values[idx]; idx != 0 && !done && root(idx, here).op() == 0 {
			h.look(idx)
		}
	}
	return b2u(ids || times)
}

// look reads the values of a tensor.
func (h *Hook) look(p ptr) {
	v, err := h.rec.valuesOf(p)
	if err != nil {
		h.err = err
		return
	}
	h.walk.values[p] = v.read(nil)
}

// Flush records what has not been yet: to be called when a decode has returned.
func (h *Hook) Flush() {
	h.drain()
	w := &h.walk
	if h.slot != nil || len(w.nodes) == 0 || h.err != nil {
		return
	}
	end := now()
	h.verified = true
	k, err := h.rec.beginAt(w.nodes, w.leafs, w.at)
	if err != nil {
		h.err = err
		return
	}
	e := &h.rec.ev
	e.Template, e.Start, e.End, e.Thread = k.id, w.start, end, h.thread
	e.Index, e.Chosen, e.Times = nil, make([][]int64, len(k.chosen)), w.times
	for _, p := range k.indexAt {
		e.Index = append(e.Index, w.values[p])
	}
	for p, i := range k.wanted {
		e.Chosen[i] = w.values[p]
	}
	h.err = h.rec.finish()
	w.reset()
}

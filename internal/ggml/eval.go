package ggml

import (
	"encoding/binary"
	"errors"
	"math"
)

// Eval is one evaluation of a graph: which template, when, and the contents of
// its index tensors. Times are CLOCK_MONOTONIC ns.
type Eval struct {
	Template uint32
	Start    uint64
	End      uint64
	Thread   uint32 // thread that started it
	// Index holds the values of Template.Index; nil where they could not be
	// read (device memory).
	Index [][]int64
	// Chosen holds the values of Template.Chosen; nil where not asked for.
	Chosen [][]int64
	// Times says when nodes were done, by position in Template.Nodes, rising.
	Times []NodeTime
}

// NodeTime is the exact time at which a node was done.
type NodeTime struct {
	Node uint32
	At   uint64
}

// Append encodes the evaluation behind b: varints of template, start, duration,
// thread; the two lists of value lists, each with its length in front and each value
// list as arithmetic runs (length 0 = not read, else 1 + number of values; then
// run length, first value less the last one before, step); the times as
// differences.
func (e *Eval) Append(b []byte) []byte {
	u := func(v uint64) { b = binary.AppendUvarint(b, v) }
	u(uint64(e.Template))
	u(e.Start)
	u(e.End - e.Start)
	u(uint64(e.Thread))
	for _, lists := range [][][]int64{e.Index, e.Chosen} {
		u(uint64(len(lists)))
		for _, v := range lists {
			b = appendRuns(b, v)
		}
	}
	u(uint64(len(e.Times)))
	node, at := uint32(0), e.Start
	for _, t := range e.Times {
		u(uint64(t.Node - node))
		u(t.At - at)
		node, at = t.Node, t.At
	}
	return b
}

func appendRuns(b []byte, v []int64) []byte {
	if v == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(v))+1)
	last := int64(0)
	for len(v) > 0 {
		n, step := 1, int64(0)
		if len(v) > 1 {
			step = v[1] - v[0]
			for n < len(v) && v[n]-v[n-1] == step {
				n++
			}
		}
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.AppendVarint(b, v[0]-last)
		b = binary.AppendVarint(b, step)
		last = v[n-1]
		v = v[n:]
	}
	return b
}

// maxValues bounds the values of one evaluation, against damaged input: far above any
// batch (tokens of a batch times the width of a transposed cache row).
const maxValues = 1 << 26

var errEval = errors.New("graph evaluation is damaged")

// DecodeEval reads what Append wrote.
func DecodeEval(b []byte) (*Eval, error) { return DecodeEvalUpTo(b, maxValues) }

// EvalTemplate returns which template an encoded evaluation is of.
func EvalTemplate(b []byte) uint32 {
	v, _ := binary.Uvarint(b)
	return uint32(v)
}

// Values is the most values that an evaluation of the template holds.
func (t *Template) Values() int {
	n := int64(0)
	for _, list := range [][]int32{t.Index, t.Chosen} {
		for _, i := range list {
			n = min(n+t.Tensors[i].Elements(), maxValues)
		}
	}
	return int(n)
}

// DecodeEvalUpTo refuses an evaluation that holds more than limit values: a few
// bytes may stand for very many.
func DecodeEvalUpTo(b []byte, limit int) (*Eval, error) {
	d := decoder{b: b}
	e := &Eval{Template: d.u32(), Start: d.uint()}
	e.End = e.Start + d.uint()
	e.Thread = d.u32()
	budget := min(limit, maxValues)
	for _, lists := range []*[][]int64{&e.Index, &e.Chosen} {
		*lists = make([][]int64, d.count(1))
		for i := range *lists {
			(*lists)[i] = d.runs(&budget)
		}
	}
	e.Times = make([]NodeTime, d.count(2))
	node, at := uint64(0), e.Start
	for i := range e.Times {
		step, took := d.uint(), d.uint()
		node += step
		if at += took; at < took || step > math.MaxUint32 || node > math.MaxUint32 {
			d.bad = true
		}
		e.Times[i] = NodeTime{uint32(node), at}
	}
	if d.bad || len(d.b) != 0 || e.End < e.Start {
		return nil, errEval
	}
	return e, nil
}

func (d *decoder) runs(budget *int) []int64 {
	n := d.uint()
	if n == 0 {
		return nil
	}
	n--
	if n > uint64(*budget) {
		d.bad, d.b = true, nil
		return nil
	}
	*budget -= int(n)
	v := make([]int64, 0, min(n, 4096))
	last := int64(0)
	for uint64(len(v)) < n && !d.bad {
		run, first, step := d.uint(), last+d.int(), d.int()
		if run == 0 || run > n-uint64(len(v)) {
			d.bad, d.b = true, nil
			return nil
		}
		for range run {
			v = append(v, first)
			last = first
			first += step
		}
	}
	return v
}

package analyze

import (
	"maps"
	"slices"

	"github.com/tierscope/tierscope/observe"
)

// Growth is the KV cache over evaluations: how full it is, and what reading it
// costs.
type Growth struct {
	cells, bytes map[uint64]uint64
	time         map[uint64]uint64
}

// NewGrowth returns an empty state.
func NewGrowth() *Growth {
	return &Growth{map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]uint64{}}
}

// Cells tells how many cells were in use after an evaluation that ended at
// ns.
func (g *Growth) Cells(step, n, ns uint64) { g.cells[step], g.time[step] = n, ns }

// Bytes tells how many bytes the cells in use held over all layers.
func (g *Growth) Bytes(step, n uint64) { g.bytes[step] = n }

// Table joins the growth with what each evaluation read of the cache: kv_growth.
func (g *Growth) Table(t *Traffic) Table {
	out := Table{Name: "kv_growth", Columns: columns("step", "", "time_s", "s", "phase", "", "cells_in_use", "", "bytes_in_use", "B", "bytes_read", "B", "padding_bytes_read", "B", "bytes_written", "B")}
	for _, step := range slices.Sorted(maps.Keys(g.cells)) {
		row := []any{step, nil, nil, g.cells[step], g.bytes[step], uint64(0), uint64(0), uint64(0)}
		if s := t.steps[uint32(step)]; s != nil {
			row[1], row[2] = float64(g.time[step]-min(t.first, g.time[step]))/1e9, s.phase
			if f := s.class[observe.ClassKVCache]; f != nil {
				row[5], row[6], row[7] = f.read, f.padding, f.written
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

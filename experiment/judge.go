package experiment

import (
	"fmt"

	"github.com/tierscope/tierscope/internal/stats"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Figures that notes weaken, by table.
var (
	trafficFigures  = []string{"traffic_by_token", "traffic_by_layer", "traffic_by_region"}
	lifetimeFigures = []string{"lifetime_by_region", "lifetime_distribution"}
	everyFigure     = append(append([]string{"kv_growth", "metrics"}, trafficFigures...), lifetimeFigures...)
)

// judge turns what the log says about itself into notes.
func (f *finishing) judge() {
	r := f.result
	add := func(code, severity string, figures []string, count uint64, format string, args ...any) {
		f.notes.Add(run.Note{Code: code, Severity: severity, Text: fmt.Sprintf(format, args...), Figures: figures, Count: count})
	}
	switch {
	case r.Torn != nil:
		add("log_torn", "invalid", everyFigure, 0, "the graph log ends in a damaged record, figures cover what lies before it: %v", r.Torn)
	case r.End == nil:
		add("engine_died", "invalid", everyFigure, 0, "the engine or tierscope was killed before the run ended; figures cover what was seen until then")
	case run.Class(r.End.Class) == run.Interrupted:
		add("interrupted", "warning", everyFigure, 0, "the run was interrupted; figures cover what ran until then")
	case r.End.Class != 0:
		add("engine_failed", "invalid", everyFigure, 0, "the engine ended with an error: %s", r.End.Error)
	}
	if r.End != nil && r.End.Lost > 0 {
		add("records_lost", "invalid", everyFigure, r.End.Lost, "graph evaluations found no room in the ring and are missing from every figure")
	}
	if r.UnknownCells > 0 {
		add("kv_cells_unknown", "invalid", append([]string{"kv_growth", "kv_blocks"}, append(trafficFigures, lifetimeFigures...)...), r.UnknownCells,
			"the cells that KV-cache stores wrote could not be read (index tensors in device memory): their bytes and everything about cells in use is missing")
	}
	if r.UpperBound > 0 {
		add("rows_not_read", "warning", append(trafficFigures, lifetimeFigures...), r.UpperBound,
			"operations whose rows or experts were not read are counted with all rows: these figures are upper bounds")
	}
	if f.figures.lifetime.Hulls() > 0 {
		add("ranges_rounded", "warning", lifetimeFigures, f.figures.lifetime.Hulls(), "accesses to parts of rows were rounded to the rows' columns")
	}
	if r.OutOfOrder > 0 {
		add("no_step", "info", []string{"traffic_by_token"}, r.OutOfOrder, "graph evaluations outside any decode call (cache shifts) count with the step before them")
	}
	if f.figures.unknown > 0 {
		severity := "info"
		if 1000*f.figures.unknown > f.figures.bytes {
			severity = "warning"
		}
		add("unknown_region", severity, trafficFigures, f.figures.unknown, "bytes of traffic lie in no region that the engine names")
	}
	add("interpolated", "info", lifetimeFigures, 0, "start and end of every graph evaluation are exact; times inside one are placed in proportion to bytes touched")
	add("operand_bytes", "info", trafficFigures, 0, "these are operand bytes: what operations read and write; caches absorb part of it before it reaches memory")
	add("points", "info", []string{"metrics"}, 0, "mrm-trace's metrics take each access as one point, the first byte it touches: working sets count one page and write-once one address for an access of any size; our own tables count bytes")
	if s := f.model.slice(); s != "" {
		add("slice", "info", everyFigure, 0, "%s", s)
	}
	f.effect(add)
}

// Effect is what observing cost, measured within the run.
type Effect struct {
	// SpeedKept is decode speed with the probe on over that with it off.
	SpeedKept *stats.Interval `json:"decode_speed_kept"`
	Pairs     int             `json:"pairs"`
	Tokens    uint32          `json:"tokens_a_block"`
	Via       string          `json:"via"`
	Stalled   uint64          `json:"stalled_ns"`
	Need      string          `json:"need,omitempty"` // why there is no interval
}

func (f *finishing) effect(add func(string, string, []string, uint64, string, ...any)) {
	e := Effect{Via: f.result.Engine.Via}
	if f.result.End != nil {
		e.Stalled = f.result.End.Stalled
	}
	ratios := pairRatios(f.result.Trials)
	e.Pairs = len(ratios)
	for _, t := range f.result.Trials {
		e.Tokens = max(e.Tokens, t.Tokens)
	}
	if iv, ok := stats.PairedRatio(ratios); ok {
		e.SpeedKept = &iv
	} else {
		e.Need = fmt.Sprintf("%d pairs of blocks were measured, an interval needs %d", len(ratios), stats.MinSamples)
		for _, t := range f.result.Trials {
			if t.Error != "" {
				e.Need += ": " + t.Error
			}
		}
		add("effect_unknown", "info", nil, 0, "what observing cost was not measured: %s", e.Need)
	}
	f.meta.Observer = e
}

// pairRatios are time with the probe off over time with it on, a pair each.
func pairRatios(trials []trace.Trial) []float64 {
	on, off := map[uint32]uint64{}, map[uint32]uint64{}
	var order []uint32
	for _, t := range trials {
		m := off
		if t.On {
			m = on
		}
		if on[t.Pair] == 0 && off[t.Pair] == 0 {
			order = append(order, t.Pair)
		}
		m[t.Pair] = t.NS
	}
	var out []float64
	for _, p := range order {
		if on[p] > 0 && off[p] > 0 {
			out = append(out, float64(off[p])/float64(on[p]))
		}
	}
	return out
}

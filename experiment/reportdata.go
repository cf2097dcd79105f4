package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
)

// plain prints a cell for a CSV file: numbers in full, missing as nothing.
func plain(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// reportData gathers what the report shows.
func (f *finishing) reportData() *report.Data {
	d := &report.Data{Tables: f.shown(), Notes: f.notes.List(), Machine: f.machineFacts(), Withheld: f.withheld}
	if !f.imported {
		d.Title = fmt.Sprintf("%s: %d prompts, %d tokens", f.meta.Model.ID, len(f.result.Outputs), f.tokens())
		d.Facts, d.Summary, d.Method = f.facts(), f.summary(), f.methods()
		return d
	}
	d.Title = f.id
	if m := f.meta.Model.ID; m != "" && m != f.id {
		d.Title = m + ": " + f.id
	}
	d.Facts, d.Summary, d.Method = f.importFacts(), f.importSummary(), importMethods
	return d
}

// shown are the tables of the page; the long list by object is a file of its own.
func (f *finishing) shown() []analyze.Table {
	var out []analyze.Table
	for _, t := range f.tables {
		if t.Name != "traffic_by_object" {
			out = append(out, t)
		}
	}
	if !f.imported {
		return out
	}
	// An import has little else to show than mrm-trace's tables.
	for _, t := range f.compat.Tables() {
		if slices.Contains([]string{"working_set_summary", "locality_summary", "iai"}, t.Name) && f.withheld[t.Name] == "" && len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// methods say how the figures came about.
func (f *finishing) methods() []string {
	probe := "A hook on the one call through which libllama starts a graph"
	switch f.result.Engine.Via {
	case "callback":
		probe = "The engine's evaluation callback"
	case "slot+callback":
		probe = "A hook on the one call through which libllama starts a graph, with the engine's evaluation callback for what is known only within a graph,"
	}
	return append([]string{"llama.cpp ran in a child process. " + probe +
		" read each tensor graph: names, shapes, addresses and index tensors, never tensor data."}, method...)
}

var method = []string{
	"Bytes are operand bytes: what operations read and write by the shapes of their tensors. CPU caches absorb part of them, and scratch memory inside an operation is not seen, so they are not DRAM traffic.",
	"A step is one evaluation of the model's graph: a prefill step takes many tokens of a prompt, a decode step takes one token of each sequence.",
	"Operations on the KV cache name whole blocks of cells, those in use and padding. Padding holds nothing: it is shown apart and never counted as read.",
	"The lifetime of a value runs from the write of its bytes to their last read before the next write or free, and counts by bytes. Loading the model is the write of its weights.",
	"Start and end of each step are read from CLOCK_MONOTONIC. Times inside a step are placed in proportion to the bytes touched.",
	"What observing costs is measured in pairs: blocks of 16 tokens with the probe on and off, in changing order, in a generation of its own after the prompts.",
}

// machineFacts say where and how the run was made; what is not known is left out.
func (f *finishing) machineFacts() []report.Fact {
	m, g, e := f.meta, f.meta.Generation, &f.result.Engine
	var facts []report.Fact
	add := func(name string, v any, unit string) {
		switch x := v.(type) {
		case string:
			if x == "" {
				return
			}
		case *int64:
			if x == nil {
				return
			}
			v = *x
		case uint64:
			if x == 0 {
				return
			}
		}
		facts = append(facts, report.Fact{Name: name, Value: v, Unit: unit})
	}
	add("run", f.id, "")
	add("started", m.StartedAt, "")
	add("machine", m.MachineID, "")
	add("CPU", m.Hardware.CPUModel, "")
	add("logical CPUs", uint64(m.Hardware.LogicalCPUs), "")
	add("memory", m.Hardware.MemoryTotal, "B")
	for _, c := range m.Hardware.Caches {
		add(c.Name+" cache", c.Bytes, "B")
	}
	add("OS", m.Software.OS, "")
	add("noise class", strings.Join(append([]string{m.Validity.RunValidity}, m.Validity.FailureReasons...), "; "), "")
	add("collector", m.Collector.Type, "")
	add("clock", m.Clocks.Clock, "")
	add("engine", g.Engine, "")
	add("engine library", e.Library, "")
	add("engine backend", e.Backend, "")
	add("engine threads", g.Threads, "")
	add("context length", g.ContextLength, "tokens")
	add("sequences together", g.BatchSize, "")
	add("seed", g.Seed, "")
	add("flash attention", e.FlashAttn, "")
	if e.TypeK != "" {
		add("KV types", e.TypeK+" keys, "+e.TypeV+" values", "")
	}
	add("tierscope", m.Tool, "")
	add("plan hash", short(m.PlanHash), "")
	return facts
}

// short is the beginning of a hash; metadata.json has the whole.
func short(hash string) string { return hash[:min(len(hash), 12)] }

// lookup returns a cell of one of the tables: the column of the row whose first
// column is key.
func (f *finishing) lookup(table, key, column string) (float64, bool) {
	for i := range f.tables {
		t := &f.tables[i]
		c := t.Index(column)
		if t.Name != table || c < 0 {
			continue
		}
		for _, r := range t.Rows {
			if r[0] == key {
				return number(r[c])
			}
		}
	}
	return 0, false
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case uint64:
		return float64(x), true
	case int64:
		return float64(x), true
	}
	return math.NaN(), false
}

func (f *finishing) facts() []report.Fact {
	var facts []report.Fact
	if f.result.Evals == 0 {
		return nil
	}
	add := func(name string, v any, unit string) {
		facts = append(facts, report.Fact{Name: name, Value: v, Unit: unit})
	}
	add("tokens generated", uint64(f.tokens()), "")
	if v := f.meta.Generation.TokensPerSecond; v != nil {
		add("speed, prompts included", *v, "tokens/s")
	}
	if n := f.model.WeightBytes; n > 0 {
		add("weights of the model", uint64(n), "B")
	}
	for _, x := range []struct{ name, class, column string }{
		{"weights read per token", observe.ClassWeight, "decode_bytes_read_per_token"},
		{"KV cache read per token", observe.ClassKVCache, "decode_bytes_read_per_token"},
		{"KV cache written per token", observe.ClassKVCache, "decode_bytes_written_per_token"},
	} {
		if v, ok := f.lookup("traffic_by_region", x.class, x.column); ok {
			add(x.name, v, "B")
		}
	}
	if peak := f.peakKV(); peak > 0 {
		add("KV cache at its fullest", peak, "B")
	}
	if e, ok := f.meta.Observer.(Effect); ok && e.SpeedKept != nil {
		add("decode speed kept", 100*e.SpeedKept.Mean, "%")
	}
	return facts
}

func (f *finishing) peakKV() uint64 {
	peak := uint64(0)
	for i := range f.tables {
		if t := &f.tables[i]; t.Name == "kv_growth" {
			c := t.Index("bytes_in_use")
			for _, r := range t.Rows {
				if n, ok := r[c].(uint64); ok {
					peak = max(peak, n)
				}
			}
		}
	}
	return peak
}

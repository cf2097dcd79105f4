package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/internal/units"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
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
	d := &report.Data{
		Title: f.meta.Model.ID + " · " + f.id, Tables: f.shown(), Notes: f.notes.List(), Facts: f.facts(), Summary: f.summary(),
		Machine: machineFacts(f.meta), Method: methods,
	}
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
	return out
}

var methods = []string{
	"llama.cpp ran in a child process; a hook on the one call through which libllama starts a graph read every tensor graph before it was computed.",
	"Bytes are operand bytes: what each operation reads and writes by its tensors' shapes, addresses and index tensors. Caches absorb part of them; scratch memory inside an operation is not seen.",
	"A KV-cache read is split into cells in use and padding; padding is shown apart and never counted as read.",
	"The lifetime of a value runs from the write of its bytes to their last read before the next write or free, weighted by bytes. The load of the model counts as the write of the weights.",
	"Start and end of each graph evaluation are exact (CLOCK_MONOTONIC); times inside one are placed in proportion to bytes touched.",
	"Observer cost is measured paired: blocks of 16 tokens with the probe on and off, in changing order, within one generation of its own.",
}

func machineFacts(m *run.Metadata) []report.Fact {
	facts := []report.Fact{
		{Name: "CPU", Value: m.Hardware.CPUModel}, {Name: "logical CPUs", Value: int64(m.Hardware.LogicalCPUs)},
		{Name: "memory", Value: m.Hardware.MemoryTotal, Unit: "B"}, {Name: "OS", Value: m.Software.OS},
		{Name: "engine", Value: m.Generation.Engine}, {Name: "tierscope", Value: m.Tool}, {Name: "plan hash", Value: m.PlanHash},
	}
	for _, c := range m.Hardware.Caches {
		facts = append(facts, report.Fact{Name: c.Name, Value: c.Bytes, Unit: "B"})
	}
	if n := m.Generation.Threads; n != nil {
		facts = append(facts, report.Fact{Name: "engine threads", Value: *n})
	}
	return facts
}

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
	g := f.meta.Generation
	facts := []report.Fact{
		{Name: "model bytes", Value: uint64(f.model.WeightBytes), Unit: "B"},
		{Name: "decode steps", Value: f.result.Decoded},
	}
	if g.TokensPerSecond != nil {
		facts = append(facts, report.Fact{Name: "tokens a second", Value: *g.TokensPerSecond, Unit: "1/s"})
	}
	for _, x := range []struct{ name, table, column string }{
		{"weights read a token", "traffic_by_region", "decode_bytes_read_per_token"},
	} {
		if v, ok := f.lookup(x.table, observe.ClassWeight, x.column); ok {
			facts = append(facts, report.Fact{Name: x.name, Value: v, Unit: "B"})
		}
	}
	if v, ok := f.lookup("traffic_by_region", observe.ClassKVCache, "decode_bytes_written_per_token"); ok {
		facts = append(facts, report.Fact{Name: "KV written a token", Value: v, Unit: "B"})
	}
	if peak := f.peakKV(); peak > 0 {
		facts = append(facts, report.Fact{Name: "KV at its fullest", Value: peak, Unit: "B"})
	}
	if e, ok := f.meta.Observer.(Effect); ok && e.SpeedKept != nil {
		facts = append(facts, report.Fact{Name: "decode speed kept", Value: 100 * e.SpeedKept.Mean, Unit: "%"})
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

func size(v float64) string { return units.Bytes(v) }

// summary is what a newcomer reads first.
func (f *finishing) summary() []string {
	var s []string
	say := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	m, r := f.model, f.result
	say("%s (%s, %d layers, %s of weights) answered %d prompts and generated %d tokens on %d engine thread(s).",
		f.meta.Model.ID, m.Architecture, m.Layers, size(float64(m.WeightBytes)), len(r.Outputs), f.tokens(), r.Engine.Threads)
	weights, ok := f.lookup("traffic_by_region", observe.ClassWeight, "decode_bytes_read_per_token")
	if ok {
		say("Each generated token read %s of weights, %.3f times the model's size; the tensor table asks for %s.",
			size(weights), weights/float64(m.WeightBytes), size(float64(m.DecodeBytes)))
	}
	kvRead, ok1 := f.lookup("traffic_by_region", observe.ClassKVCache, "decode_bytes_read_per_token")
	kvWrite, ok2 := f.lookup("traffic_by_region", observe.ClassKVCache, "decode_bytes_written_per_token")
	if ok1 && ok2 {
		say("It added %s to the KV cache and read %s of it on average; the cache grew to %s.", size(kvWrite), size(kvRead), size(float64(f.peakKV())))
	}
	if pad, ok := f.lookup("traffic_by_region", observe.ClassKVCache, "padding_bytes_read"); ok {
		used, _ := f.lookup("traffic_by_region", observe.ClassKVCache, "bytes_read")
		if pad+used > 0 {
			say("Of the KV bytes that operations named, %.3g %% were padding: cells that held nothing.", 100*pad/(pad+used))
		}
	}
	if act, ok := f.lookup("traffic_by_region", observe.ClassActivation, "decode_bytes_read_per_token"); ok {
		say("Activations were read for %s a token, most of it in pieces that fit a cache.", size(act))
	}
	var lives []string
	for _, c := range []string{observe.ClassActivation, observe.ClassKVCache, observe.ClassWeight} {
		if v, ok := f.lookup("lifetime_by_region", c, "p50_s"); ok {
			lives = append(lives, fmt.Sprintf("%s %s", c, units.Seconds(v)))
		}
	}
	if len(lives) > 0 {
		say("Half of the bytes written had to be kept longer than: %s (write to last read).", strings.Join(lives, ", "))
	}
	if n := f.reused(); n > 0 {
		say("Follow-ups found %d tokens of their prompts in the KV cache already.", n)
	}
	s = append(s, f.effectSentence(), f.validitySentence())
	if x := m.slice(); x != "" {
		s = append(s, strings.ToUpper(x[:1])+x[1:]+".")
	}
	return s
}

func (f *finishing) tokens() int {
	n := 0
	for _, o := range f.result.Outputs {
		n += o.OutputTokens
	}
	return n
}

func (f *finishing) reused() int {
	n := 0
	for _, o := range f.result.Outputs {
		n += o.ReusedTokens
	}
	return n
}

func (f *finishing) effectSentence() string {
	e, ok := f.meta.Observer.(Effect)
	if !ok || e.SpeedKept == nil {
		return "What observing cost was not measured in this run."
	}
	return fmt.Sprintf("Observed through the %s, decode ran at %.1f %% of its own speed (95 %% interval %.1f to %.1f %%, %d pairs).",
		e.Via, 100*e.SpeedKept.Mean, 100*e.SpeedKept.Low, 100*e.SpeedKept.High, e.Pairs)
}

func (f *finishing) validitySentence() string {
	if f.notes.Valid() {
		return fmt.Sprintf("The run is valid: %d graph evaluations were seen whole, none was lost.", f.result.Evals)
	}
	return "The run is not valid: figures are incomplete; the notes say why."
}

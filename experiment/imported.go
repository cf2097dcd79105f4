package experiment

import (
	"fmt"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
)

var importMethods = []string{
	"There is no graph log of this run: its accesses were read from trace.parquet.",
	"Figures that need what the source does not record (sizes, steps, time) are withheld and say why; none is filled in with zeros.",
	"The metrics are mrm-trace's, by its definitions, worked out again from the trace.",
}

func (f *finishing) importFacts() []report.Fact {
	facts := []report.Fact{{Name: "accesses", Value: f.result.Rows}}
	if v := f.meta.Generation.TotalTokens; v != nil {
		facts = append(facts, report.Fact{Name: "tokens generated", Value: *v})
	}
	if v := f.meta.Generation.TokensPerSecond; v != nil {
		facts = append(facts, report.Fact{Name: "speed", Value: *v, Unit: "tokens/s"})
	}
	if v := f.meta.Timing.Total; v != nil {
		facts = append(facts, report.Fact{Name: "time", Value: *v, Unit: "s"})
	}
	return facts
}

// importSummary says what an imported run holds and what mrm-trace's metrics make
// of it.
func (f *finishing) importSummary() []string {
	var s []string
	say := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	what := f.meta.Model.ID
	if what == "" {
		what = "a model without name"
	}
	if f.meta.Collector.Type == tensorgraph.Name {
		say("%s of %s, read from trace.parquet: the graph log, which says more, is missing.", accesses(f.result.Rows), what)
	} else {
		say("%s of %s, imported: the trace was made by another program (%s).", accesses(f.result.Rows), what, collectorOf(f.meta))
	}
	if f.has&observe.ColSize == 0 {
		say("Each is a point at one address, without size: traffic in bytes, growth of the KV cache and lifetimes by bytes cannot be known and are withheld.")
	}
	for _, t := range f.tables {
		if t.Name != "metrics" {
			continue
		}
		for _, row := range t.Rows {
			at := func(column string) any { return row[t.Index(column)] }
			line := fmt.Sprintf("%v: %s", at("region_type"), counted(at("n_regions"), "region"))
			if p99, ok := number(at("retention_p99_s")); ok {
				p50, _ := number(at("retention_p50_s"))
				line += fmt.Sprintf("; from first write to last read %s in the median, %s at the 99th percentile", report.Format(p50, "s"), report.Format(p99, "s"))
			}
			if v, ok := at("suitability").(string); ok {
				line += "; mrm-trace calls it " + v
			}
			s = append(s, line+".")
		}
	}
	if f.notes.Valid() {
		return append(s, "No note says that a figure is wrong.")
	}
	return append(s, "The run is not valid: figures are wrong or incomplete, and the notes say why.")
}

func accesses(n uint64) string { return counted(n, "access") }

func counted(n any, what string) string {
	if x, _ := number(n); x != 1 {
		if what == "access" {
			what += "e"
		}
		what += "s"
	}
	return report.Format(n, "") + " " + what
}

func collectorOf(m *run.Metadata) string {
	if m.Collector.Type == "" || m.Collector.Type == "mrm" {
		return "mrm-trace"
	}
	return "mrm-trace, collector " + m.Collector.Type
}

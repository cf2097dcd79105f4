package experiment

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Figures are the figures of a run directory, worked out again.
type Figures struct {
	Own      []analyze.Table   // tierscope's tables, those of the report and traffic_by_object
	Withheld map[string]string // tables that cannot be known, and why
	Compat   *mrm.Result       // mrm-trace's
	Notes    []run.Note
}

// Analyze works the figures of a run directory out: from its graph log, which
// holds every access, or from the trace of an imported run. The options are those
// of mrm-trace's tables. The directory is not changed.
func Analyze(ctx context.Context, root string, o mrm.Options) (*Figures, error) {
	f, err := reopen(ctx, root, o)
	if err != nil {
		return nil, err
	}
	return &Figures{Own: f.tables, Withheld: f.withheld, Compat: f.compat, Notes: f.notes.List()}, nil
}

// Report works out what the report of a run directory shows, as [Analyze] does.
func Report(ctx context.Context, root string) (*report.Data, error) {
	f, err := reopen(ctx, root, mrm.Options{Memory: analysisMemory, Check: func() error { return analyze.Interrupted(ctx) }})
	if err != nil {
		return nil, err
	}
	return f.reportData(), nil
}

// reopen reads a run directory whole and works its tables out.
func reopen(ctx context.Context, root string, o mrm.Options) (*finishing, error) {
	r, err := run.Open(root)
	if err != nil {
		return nil, err
	}
	logged := r.State == run.Finished
	if _, err := os.Stat(filepath.Join(root, trace.GraphLogName)); err == nil {
		switch {
		case r.State == run.Live:
			return nil, run.Errorf(run.Misuse, "%s is being written: wait until its run has ended", root)
		case !logged:
			return nil, run.Errorf(run.Misuse, "%s is not finished: 'tierscope recover %s' first", root, root)
		}
	}
	if r.Metadata == nil {
		r.Metadata = &run.Metadata{RunID: filepath.Base(root)}
	}
	f := &finishing{meta: r.Metadata, model: &modelFacts{}, notes: &run.Notes{}, id: r.Metadata.RunID}
	if err := f.settings(); err != nil {
		return nil, err
	}
	for _, n := range r.Metadata.Validity.Notes {
		f.notes.Add(n)
	}
	f.figures = newFigures(ctx, "")
	f.figures.compat = mrm.New(o)
	defer f.figures.compat.Close()
	if err := f.source(root); err != nil {
		return nil, err
	}
	if f.compat, err = f.figures.compat.Result(); err != nil {
		return nil, err
	}
	if f.tables, err = f.figures.tables(f.compat, f.result); err != nil {
		return nil, err
	}
	if f.imported {
		f.withhold()
	}
	f.effect(func(string, string, []string, uint64, string, ...any) {})
	return f, nil
}

// source delivers what a run directory holds, from its graph log if it has one, else
// from its trace, to the analyses.
func (f *finishing) source(root string) error {
	log := filepath.Join(root, trace.GraphLogName)
	if _, err := os.Stat(log); err == nil {
		f.result, err = tensorgraph.Replay(log, f.opt, f.figures)
		return err
	}
	r, err := trace.Open(filepath.Join(root, "trace.parquet"))
	if errors.Is(err, fs.ErrNotExist) {
		return run.Errorf(run.Invalid, "%s holds no trace.parquet; name a run directory or a trace", root)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	f.imported = true
	f.result = &tensorgraph.Result{End: &trace.End{}, Rows: uint64(r.Rows())}
	if f.has, err = filled(r); err != nil {
		return err
	}
	if f.has&observe.ColSize == 0 {
		return r.Read(f.figures.compat.Columns(), f.figures.points)
	}
	if err := f.besideTrace(root); err != nil {
		return err
	}
	return r.Read(observe.ColsAll, f.figures.Accesses)
}

// filled returns which of the columns size and step hold anything: an importer
// writes all columns, also those that its source does not know.
func filled(r *trace.Reader) (has observe.Cols, err error) {
	const cols = observe.ColSize | observe.ColStep
	enough := errors.New("enough")
	err = r.Read(cols, func(b *observe.Batch) error {
		for i := 0; i < b.Len && has != cols; i++ {
			if !b.Size.Null(i) {
				has |= observe.ColSize
			}
			if !b.Step.Null(i) {
				has |= observe.ColStep
			}
		}
		if has == cols {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return has, err
}

// besideTrace reads objects and marks. Frees are left out: their place between
// the accesses is in the graph log only.
func (f *finishing) besideTrace(root string) error {
	err := trace.ReadObjects(filepath.Join(root, "objects.parquet"), func(o *observe.Object) error { return f.figures.Object(*o) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = trace.ReadMarks(filepath.Join(root, "marks.parquet"), func(m *observe.Mark) error {
		if m.Name == tensorgraph.MarkClear {
			return nil
		}
		return f.figures.Mark(*m)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withheldWhy are the reasons for which a trace without graph log cannot tell.
const (
	whyPoints = "the rows of this trace are points without sizes, so no bytes can be counted"
	whySteps  = "the rows of this trace name no evaluation of a graph"
	whyCells  = "nothing in this run says which cells of the KV cache are in use"
	whyFrees  = "when memory was freed is in graph/graph.log, which this run lacks"
	whyTime   = "the rows of this trace have no time"
)

// withhold takes away what a run without graph log cannot know, and says why.
func (f *finishing) withhold() {
	f.withheld = map[string]string{"kv_blocks": whyFrees, "lifetime_by_region": whyFrees, "lifetime_distribution": whyFrees}
	hide := func(why string, names ...string) {
		for _, n := range names {
			f.withheld[n] = why
		}
	}
	if len(f.figures.growth.Table(f.figures.traffic).Rows) == 0 {
		hide(whyCells, "kv_growth")
	}
	if f.has&observe.ColStep == 0 {
		hide(whySteps, "traffic_by_token", "kv_growth")
	}
	if f.has&observe.ColSize == 0 {
		hide(whyPoints, "traffic_by_token", "traffic_by_layer", "traffic_by_region", "traffic_by_object", "objects",
			"lifetime_by_region", "lifetime_distribution", "kv_growth")
	}
	kept := f.tables[:0]
	for _, t := range f.tables {
		if f.withheld[t.Name] == "" {
			kept = append(kept, t)
		}
	}
	f.tables = kept
	if f.meta.Clocks.Clock == run.ClockNone {
		f.withholdTimes()
	}
}

// withholdTimes makes the figures of metrics.csv that rest on time missing: zeros
// would be read as lifetimes.
func (f *finishing) withholdTimes() {
	f.withheld["iai"] = whyTime
	for _, t := range f.tables {
		for c := range t.Columns {
			if n := t.Columns[c].Name; t.Name == "metrics" && (n == "suitability" || strings.HasPrefix(n, "retention")) {
				for _, row := range t.Rows {
					row[c] = nil
				}
			}
		}
	}
	f.notes.Add(run.Note{Code: "times_withheld", Severity: run.Warning, Figures: []string{"metrics"},
		Text: whyTime + ": retention, and the verdict that rests on it, are withheld here; metrics.csv has what mrm-trace made of them"})
}

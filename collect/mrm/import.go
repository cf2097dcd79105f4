package mrm

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Result says what an import did.
type Result struct {
	RunDir  string     `json:"run_dir"`
	Rows    uint64     `json:"rows"`    // of trace.parquet
	Skipped uint64     `json:"skipped"` // numbers out of their column's range, now null
	Lost    uint64     `json:"lost"`    // samples that the source says it lost; mrm-trace never says
	Notes   []run.Note `json:"notes"`
}

// Import copies a run directory of mrm-trace, or a trace of its by itself, into
// a new run below out, with all of our files, also those that it left out as
// empty. A trace without labels is labelled as mrm-trace does. Damage is an
// error of class [run.Corrupt], and then no run is left behind.
func Import(ctx context.Context, path, out string) (*Result, error) {
	s, err := Open(path)
	if err != nil {
		return nil, err
	}
	if s.Metadata.Tool != "" {
		return nil, run.Errorf(run.Misuse, "%s is a run of tierscope already: it needs no import", path)
	}
	d, err := s.create(out)
	if err != nil {
		return nil, err
	}
	res := &Result{RunDir: d.Root()}
	if err := s.fill(ctx, d, res); err != nil {
		d.Close()
		os.RemoveAll(d.Root()) // made by create; nothing else is in it
		return nil, err
	}
	return res, nil
}

// create makes the run directory, named as the source says where that is a name.
func (s *Source) create(out string) (*run.Dir, error) {
	model := s.Metadata.Model.ID
	if model == "" {
		model = s.Metadata.Model.HFRepo
	}
	base := filepath.Base(filepath.Clean(s.Trace))
	if s.Dir != "" {
		abs, err := filepath.Abs(s.Dir)
		if err != nil {
			return nil, err
		}
		base = filepath.Base(abs)
	}
	id := s.RunID()
	if id == "" {
		id = strings.TrimSuffix(base, ".parquet")
	}
	return run.Create(out, s.name("model", model, "imported"), s.name("run id", id, "imported"))
}

// name makes a text from a file a directory name.
func (s *Source) name(what, text, instead string) string {
	if text == "" {
		return instead
	}
	if run.CheckName(what, text) == nil {
		return text
	}
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return '-'
	}, text)
	clean = strings.Trim(clean[:min(len(clean), 100)], "-")
	if clean == "" {
		clean = instead
	}
	s.Notes.Add(run.Note{Code: "renamed", Severity: run.Info, Text: "the source's " + what + " is no directory name; it became " + clean})
	return clean
}

// fill writes the files of the run.
func (s *Source) fill(ctx context.Context, d *run.Dir, res *Result) error {
	meta := *s.Metadata
	m := &meta
	fresh := run.NewMetadata()
	m.Version, m.Tool, m.State = fresh.Version, fresh.Tool, ""
	if err := s.copyTrace(ctx, d, m, res); err != nil {
		return err
	}
	prompts, err := s.Prompts()
	if err == nil && prompts != nil {
		err = d.WriteFile(PromptsFile, prompts)
	}
	if err != nil {
		return err
	}
	if err := s.copyMetrics(d); err != nil {
		return err
	}
	for _, f := range FigureFiles {
		if err := s.copyFile(d, f, "figures/"+f); err != nil {
			return err
		}
	}
	for _, f := range rawFiles {
		if err := s.copyFile(d, f, f); err != nil {
			return err
		}
	}
	for _, n := range s.Notes.List() {
		d.Notes.Add(n)
	}
	if err := d.Finish(m); err != nil {
		return err
	}
	if res.Notes = d.Notes.List(); res.Notes == nil {
		res.Notes = []run.Note{}
	}
	return nil
}

// copyTrace copies trace, region map and life cycle, and says in m what the
// times are.
func (s *Source) copyTrace(ctx context.Context, d *run.Dir, m *run.Metadata, res *Result) error {
	r, err := trace.Open(s.Trace)
	if err != nil {
		return err
	}
	defer r.Close()
	out, err := d.CreateFile(TraceFile)
	if err != nil {
		return err
	}
	w, err := trace.NewWriter(out, trace.Options{})
	if err != nil {
		out.Abort()
		return err
	}
	defer w.Abort()
	timed := false
	labels, err := region.ReadLabelled(r, region.NewLabeller(region.Keep, nil), observe.ColsAll, func(b *observe.Batch) error {
		if ctx.Err() != nil {
			return run.Errorf(run.Interrupted, "import of %s: interrupted", s.Trace)
		}
		for i := 0; i < b.Len && !timed; i++ {
			timed = b.Time.At(i) != 0
		}
		return w.Accesses(b)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	res.Rows, res.Skipped = uint64(w.Rows()), r.Skipped()
	if res.Skipped > 0 {
		s.Notes.Add(run.Note{Code: "out_of_range", Severity: run.Warning, Count: res.Skipped, Text: "numbers of the source do not fit their column and are null now"})
	}
	s.clock(m, timed)
	if err := s.copyRegions(d, labels); err != nil {
		return err
	}
	return s.copyBlocks(d, labels)
}

// clock says what the times of the trace are, if the source does not. The
// original keeps perf's own clock, and 0 where there is no time.
func (s *Source) clock(m *run.Metadata, timed bool) {
	if m.Clocks.Clock == "" {
		m.Clocks.Clock, m.Clocks.Unit = run.ClockPerf, "ns"
		if !timed {
			m.Clocks.Clock = run.ClockNone
		}
	}
	if !timed {
		s.Notes.Add(run.Note{Code: "no_time", Severity: run.Warning, Figures: []string{"metrics", "retention_summary", "iai"},
			Text: "no row of the source has a time (mrm-trace's memray traces never do): retention and intervals say nothing"})
	}
	if m.Collector.Type == "" {
		m.Collector.Type = "mrm"
	}
}

func (s *Source) copyRegions(d *run.Dir, labels *region.Labels) error {
	rows := labels.Map
	if !labels.Here && s.Has(RegionFile) {
		err := trace.ReadRegionMap(s.Path(RegionFile), func(r *trace.RegionRow) error { rows = append(rows, *r); return nil })
		if err != nil {
			return err
		}
	}
	if labels.Here {
		s.Notes.Add(run.Note{Code: "labelled_here", Severity: run.Info, Count: labels.Unknown, Text: "the source's trace has no labels; mrm-trace's rules gave them, and so many rows stayed unknown"})
	} else if !s.Has(RegionFile) {
		s.Notes.Add(run.Note{Code: "no_region_map", Severity: run.Info, Text: "the source has no region map; the one written is empty"})
	}
	out, err := d.CreateFile(RegionFile)
	if err != nil {
		return err
	}
	t, err := trace.NewRegionMap(out, trace.Options{})
	if err != nil {
		out.Abort()
		return err
	}
	defer t.Abort()
	if err := t.Write(rows...); err != nil {
		return err
	}
	return t.Close()
}

func (s *Source) copyBlocks(d *run.Dir, labels *region.Labels) error {
	rows := labels.Blocks
	if !labels.Here && s.Has(LifecycleFile) {
		err := trace.ReadKVBlocks(s.Path(LifecycleFile), func(r *trace.KVBlockRow) error { rows = append(rows, *r); return nil })
		if err != nil {
			return err
		}
	}
	out, err := d.CreateFile(LifecycleFile)
	if err != nil {
		return err
	}
	t, err := trace.NewKVBlocks(out, trace.Options{})
	if err != nil {
		out.Abort()
		return err
	}
	defer t.Abort()
	if err := t.Write(rows...); err != nil {
		return err
	}
	return t.Close()
}

// copyMetrics copies metrics.csv if it is one.
func (s *Source) copyMetrics(d *run.Dir) error {
	if !s.Has(MetricsFile) {
		s.Notes.Add(run.Note{Code: "no_metrics", Severity: run.Info, Text: "the source has no metrics.csv; tierscope analyze gives the tables"})
		return nil
	}
	data, err := s.Text(MetricsFile)
	if err != nil {
		return err
	}
	head, err := csv.NewReader(bytes.NewReader(data)).Read()
	for _, name := range trace.RequiredColumns(trace.SchemaMetrics) {
		if err != nil || !slices.Contains(head, name) {
			return run.Errorf(run.Corrupt, "%s is no metrics.csv: it has no column %s", s.Path(MetricsFile), name)
		}
	}
	return d.WriteFile(MetricsFile, data)
}

func (s *Source) copyFile(d *run.Dir, from, to string) error {
	if !s.Has(from) {
		return nil
	}
	out, err := d.CreateFile(to)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := s.copyTo(out, from); err != nil {
		return err
	}
	return out.Commit()
}

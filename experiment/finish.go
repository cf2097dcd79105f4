package experiment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/report/compat"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// finishing turns the graph log of a run directory into all its other files.
// The same code ends a live run, recovers one that was cut off, and draws a
// report again.
type finishing struct {
	dir      *run.Dir // nil when only a report is drawn
	notes    *run.Notes
	id       string // run id
	meta     *run.Metadata
	opt      tensorgraph.Options
	rowLimit uint64
	files    trace.Options
	model    *modelFacts
	result   *tensorgraph.Result
	figures  *figures
	compat   *mrm.Result
	tables   []analyze.Table
	imported bool              // read from a trace, because there is no graph log
	has      observe.Cols      // columns of that trace
	withheld map[string]string // tables that cannot be known, and why
}

// write writes everything that follows from the graph log, but not the
// manifest.
func (f *finishing) write(ctx context.Context) error {
	sink, done, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer f.figures.compat.Close()
	f.figures.lean = newLean()
	defer f.figures.lean.end()
	f.result, err = tensorgraph.Replay(f.dir.Path(trace.GraphLogName), f.opt, sink)
	if err := done(err); err != nil {
		return err
	}
	if f.compat, err = f.figures.compat.Result(); err != nil {
		return err
	}
	if f.tables, err = f.figures.tables(f.compat, f.result); err != nil {
		return err
	}
	f.judge()
	f.describe()
	for _, step := range []func() error{f.regionFiles, f.outputs, f.metrics, f.report} {
		if err := analyze.Interrupted(ctx); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// open makes the files that rows flow into. done ends them, or removes them if
// the stream ended with an error.
func (f *finishing) open(ctx context.Context) (observe.Sink, func(error) error, error) {
	f.figures = newFigures(ctx, f.dir.Root())
	out, err := f.dir.ReplaceFile("trace.parquet")
	if err != nil {
		return nil, nil, err
	}
	rows, err := trace.NewWriter(out, f.files)
	if err != nil {
		out.Abort()
		return nil, nil, err
	}
	files := &fileSink{rows: rows, limit: f.rowLimit}
	if out, err = f.dir.ReplaceFile("marks.parquet"); err != nil {
		rows.Abort()
		return nil, nil, err
	}
	if files.marks, err = trace.NewMarks(out, f.files); err != nil {
		rows.Abort()
		out.Abort()
		return nil, nil, err
	}
	done := func(err error) error {
		if err != nil {
			rows.Abort()
			files.marks.Abort()
			return err
		}
		if files.left > 0 {
			f.notes.Add(run.Note{Code: compat.RowLimit, Severity: "info", Count: files.left,
				Text: "trace.parquet holds the first rows up to the limit; every figure counts all of them, and 'tierscope export' writes all"})
		}
		if err := rows.Close(); err != nil {
			files.marks.Abort()
			return err
		}
		return files.marks.Close()
	}
	return observe.Tee{f.figures, files}, done, nil
}

// fileSink writes accesses, up to a limit, and marks.
type fileSink struct {
	rows  *trace.Writer
	marks *trace.Table[observe.Mark]
	limit uint64
	n     uint64
	left  uint64
}

func (s *fileSink) Object(observe.Object) error { return nil }

func (s *fileSink) Mark(m observe.Mark) error { return s.marks.Write(m) }

func (s *fileSink) Accesses(b *observe.Batch) error {
	n := uint64(b.Len)
	if s.limit > 0 && s.n+n > s.limit {
		keep := s.limit - s.n
		s.left += n - keep
		if keep == 0 {
			return nil
		}
		first := make([]int32, keep)
		for i := range first {
			first[i] = int32(i)
		}
		cut := b.Keep(first)
		b = &cut
	}
	s.n += uint64(b.Len)
	return s.rows.Accesses(b)
}

// writeTable writes a small Parquet file of rows.
func writeTable[T any](d *run.Dir, name string, make func(*run.Atomic, trace.Options) (*trace.Table[T], error), opt trace.Options, rows []T) error {
	out, err := d.ReplaceFile(name)
	if err != nil {
		return err
	}
	t, err := make(out, opt)
	if err != nil {
		out.Abort()
		return err
	}
	if err := t.Write(rows...); err != nil {
		t.Abort()
		return err
	}
	return t.Close()
}

func (f *finishing) regionFiles() error {
	if err := writeTable(f.dir, "objects.parquet", trace.NewObjects, f.files, f.figures.objects); err != nil {
		return err
	}
	if err := writeTable(f.dir, "region_map.parquet", trace.NewRegionMap, f.files, f.figures.regions.Rows()); err != nil {
		return err
	}
	return writeTable(f.dir, "kv_block_lifecycle.parquet", trace.NewKVBlocks, f.files, f.result.Blocks)
}

// promptOutput is an entry of prompt_outputs.json, under mrm-trace's names with
// ours behind them.
type promptOutput struct {
	Index        uint32  `json:"index"`
	Prompt       string  `json:"prompt"`
	Output       string  `json:"output"`
	PromptTokens int     `json:"prompt_tokens"`
	Generated    int     `json:"tokens_generated"`
	Duration     float64 `json:"duration_s"`
	Reused       int     `json:"reused_tokens"`
	Sequence     int32   `json:"sequence"`
	FirstToken   float64 `json:"first_token_s"`
	Stopped      string  `json:"stopped"`
	Category     string  `json:"category,omitempty"`
}

func (f *finishing) outputs() error {
	list := make([]promptOutput, 0, len(f.result.Outputs))
	for _, o := range f.result.Outputs {
		first := 0.0
		if o.FirstToken > o.Start {
			first = float64(o.FirstToken-o.Start) / 1e9
		}
		list = append(list, promptOutput{o.Request, o.Prompt, o.Text, o.PromptTokens, o.OutputTokens, float64(o.End-o.Start) / 1e9,
			o.ReusedTokens, o.Seq, first, o.Stopped, o.Category})
	}
	slices.SortStableFunc(list, func(a, b promptOutput) int { return cmp.Compare(a.Index, b.Index) })
	b, err := run.EncodeJSON(map[string]any{"prompts": list})
	if err != nil {
		return err
	}
	return replace(f.dir, "prompt_outputs.json", b)
}

func replace(d *run.Dir, name string, data []byte) error {
	out, err := d.ReplaceFile(name)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		out.Abort()
		return err
	}
	return out.Commit()
}

// metrics writes metrics.csv and every table of our own as CSV and JSON.
func (f *finishing) metrics() error {
	if err := replace(f.dir, "metrics.csv", []byte(f.compat.CSV())); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := f.compat.WriteJSON(&b); err != nil {
		return err
	}
	if err := replace(f.dir, "tables/mrm.json", b.Bytes()); err != nil {
		return err
	}
	for i := range f.tables {
		if f.tables[i].Name == "metrics" {
			continue // metrics.csv itself
		}
		b.Reset()
		if err := writeCSV(&b, &f.tables[i]); err != nil {
			return err
		}
		if err := replace(f.dir, "tables/"+f.tables[i].Name+".csv", b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(b *bytes.Buffer, t *analyze.Table) error {
	w := csv.NewWriter(b)
	row := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		row[i] = c.Name
	}
	if err := w.Write(row); err != nil {
		return err
	}
	for _, r := range t.Rows {
		for i, v := range r {
			row[i] = plain(v)
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (f *finishing) report() error {
	d := f.reportData()
	out, err := f.dir.ReplaceFile("report.html")
	if err != nil {
		return err
	}
	if err := report.Render(out, d); err != nil {
		out.Abort()
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if f.result.Evals == 0 {
		return nil // nothing to draw, and the report says so
	}
	figures, err := f.dir.Mkdir("figures")
	if err != nil {
		return err
	}
	if err := clearDir(figures); err != nil {
		return err
	}
	if _, err := report.Figures(figures, d); err != nil {
		return err
	}
	return compatFigures(figures, f.compat)
}

// compatFigures draws mrm-trace's figures under its names, those that have data.
func compatFigures(dir string, r *mrm.Result) error {
	pictures, err := compat.Pictures(r)
	if err != nil {
		return err
	}
	for _, p := range pictures {
		if p.PNG == nil {
			continue
		}
		if err := run.WriteFile(filepath.Join(dir, p.Name), p.PNG); err != nil {
			return err
		}
	}
	return nil
}

// clearDir removes the files of a directory that is drawn again.
func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(dir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// busyNS is the time during which at least one request ran. Requests come in
// order of their end.
func busyNS(outputs []trace.Output) uint64 {
	byStart := slices.SortedFunc(slices.Values(outputs), func(a, b trace.Output) int { return cmp.Compare(a.Start, b.Start) })
	busy, until := uint64(0), uint64(0)
	for _, o := range byStart {
		if o.End > until {
			busy += o.End - max(o.Start, until)
			until = o.End
		}
	}
	return busy
}

// describe fills in what the log says about the run.
func (f *finishing) describe() {
	m, r := f.meta, f.result
	m.Collector = run.Collector{Type: tensorgraph.Name, Also: []string{"process"}}
	m.Phases = f.figures.phases
	m.Generation.Engine = r.Engine.Name + " " + r.Engine.Version
	m.Generation.Threads = run.Known(int64(r.Engine.Threads))
	prompt, output, busy := int64(0), int64(0), busyNS(r.Outputs)
	for _, o := range r.Outputs {
		prompt += int64(o.PromptTokens - o.ReusedTokens)
		output += int64(o.OutputTokens)
	}
	m.Generation.PromptTokens, m.Generation.TotalTokens = run.Known(prompt), run.Known(output)
	if busy > 0 {
		m.Generation.TokensPerSecond = run.Known(float64(output) / (float64(busy) / 1e9))
	}
	if m.Software.Libraries == nil {
		m.Software.Libraries = map[string]string{}
	}
	if r.Engine.Library != "" {
		m.Software.Libraries[r.Engine.Library] = r.Engine.Version
	}
	if r.Engine.Backend != "" {
		m.Software.Libraries[r.Engine.Backend] = ""
	}
	m.Timing.Total = run.Known(float64(r.Stop-r.Start) / 1e9)
	m.Timing.Phases = map[string]float64{}
	for _, p := range f.figures.phases {
		m.Timing.Phases[p.Name] += float64(p.End-p.Start) / 1e9
	}
	m.FinishedAt = time.Now().UTC().Format(time.RFC3339)
	if m.Extra == nil {
		m.Extra = map[string]any{}
	}
	m.Extra["engine"] = r.Engine
	m.Extra["graph"] = map[string]any{
		"templates": r.Templates, "evaluations": r.Evals, "log_bytes": r.LogBytes, "decode_steps": r.Decoded,
		"decode_log_bytes_per_token": ratio(uint64(r.DecodeLogBytes), r.Decoded), "rows": r.Rows,
	}
}

func ratio(a, b uint64) *float64 {
	if b == 0 {
		return nil
	}
	return run.Known(float64(a) / float64(b))
}

// Package compat writes run directories as mrm-trace writes them, from a run or
// from a trace by itself.
//
//	trace.parquet               mrm-trace's 18 columns; prefill and decode are generation
//	region_map.parquet          also without regions
//	kv_block_lifecycle.parquet  also without blocks
//	metrics.csv                 one row for each region type
//	metadata.json               the source's, else the run id alone
//	prompt_outputs.json         if the source has it
//	retention_histogram.png, working_set.png, write_once.png   if there is something to draw
//	manifest.json               written last
//	../manifest.csv             one row for each run id, unless another place is given
//
// mrm-trace knows neither sizes nor address spaces: every row becomes a point
// at its first byte, and rows of other spaces than the host's are left out and
// counted.
package compat

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	tables "github.com/tierscope/tierscope/analyze/mrm"
	source "github.com/tierscope/tierscope/collect/mrm"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/run"
)

// Options say what is exported and where to.
type Options struct {
	// Input is a run directory, of ours or of mrm-trace, or a trace file.
	Input string
	// Output is the directory to write, which must be new or empty.
	Output string
	// RunID is the id of the exported run; "" = the source's, else the name
	// of Output.
	RunID string
	// Index is the manifest.csv that gets the run's row; "" = beside Output.
	Index string
	// Trace is a trace of the same run that is read in place of the input's
	// own, because that one was cut by a row limit; "" = the input's.
	Trace string
	// Policy and Ranges are for a trace without labels. Ranges for one that
	// has them are an error of class [run.Misuse].
	Policy region.Policy
	Ranges []region.Range
	// Memory is how many bytes the analysis may hold; 0 = its default.
	Memory int64
}

// RowLimit is the code of the note of runs whose trace.parquet does not hold all
// rows.
const RowLimit = "row_limit"

// Result says what an export wrote.
type Result struct {
	RunDir   string     `json:"run_dir"`
	RunID    string     `json:"run_id"`
	Index    string     `json:"manifest_csv"`
	Rows     uint64     `json:"rows"`
	Regions  int        `json:"regions"`
	KVBlocks int        `json:"kv_blocks"`
	Skipped  uint64     `json:"skipped"` // rows of the source that were left out
	Files    []string   `json:"files"`   // names in RunDir, in the order they were written
	Notes    []run.Note `json:"notes"`
}

// job is an export under way.
type job struct {
	Options
	src   *source.Source
	notes run.Notes
	res   Result
}

// Export writes a compatible run directory. If it fails before the manifest,
// nothing that it wrote is left.
func Export(ctx context.Context, o Options) (*Result, error) {
	src, err := source.Open(o.Input)
	if err != nil {
		return nil, err
	}
	if o.Trace != "" {
		src.Trace = o.Trace
	}
	j := &job{Options: o, src: src}
	made, err := claim(o.Output)
	if err != nil {
		return nil, err
	}
	if err := j.write(ctx); err != nil {
		for _, name := range j.res.Files {
			os.Remove(j.path(name))
		}
		if made {
			os.Remove(o.Output)
		}
		return nil, err
	}
	return &j.res, nil
}

// claim makes the target directory or sees that it is empty.
func claim(dir string) (made bool, err error) {
	if dir == "" {
		return false, run.Errorf(run.Misuse, "--output: missing; name the directory to write")
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return false, run.Errorf(run.IO, "%w", err)
		}
		return true, nil
	case err != nil:
		return false, run.Errorf(run.Misuse, "output %w: want a directory", err)
	case len(entries) > 0:
		return false, run.Errorf(run.Misuse, "output %s is not empty (%s is there): nothing is overwritten; choose another", dir, entries[0].Name())
	}
	return false, nil
}

func (j *job) path(name string) string { return filepath.Join(j.Output, name) }

// write writes all files.
func (j *job) write(ctx context.Context) error {
	abs, err := filepath.Abs(j.Output)
	if err != nil {
		return err
	}
	if j.RunID == "" {
		j.RunID = j.src.RunID()
	}
	if j.RunID == "" {
		j.RunID = filepath.Base(abs)
	}
	if j.Index == "" {
		j.Index = filepath.Join(filepath.Dir(abs), "manifest.csv")
	}
	figures, err := j.writeTrace(ctx)
	if err != nil {
		return err
	}
	if err := j.file(source.MetricsFile, []byte(figures.CSV())); err != nil {
		return err
	}
	meta, text, err := j.metadata()
	if err != nil {
		return err
	}
	if err := j.file(source.MetadataFile, text); err != nil {
		return err
	}
	prompts, err := j.src.Prompts()
	if err == nil && prompts != nil {
		err = j.file(source.PromptsFile, prompts)
	}
	if err != nil {
		return err
	}
	index, err := j.draw(figures)
	if err != nil {
		return err
	}
	if _, err := run.WriteManifest(j.Output, run.ManifestInfo{RunID: j.RunID}); err != nil {
		return err
	}
	index.HasPromptOutputs = prompts != nil
	j.res.Files = append(j.res.Files, "manifest.json")
	if err := run.AppendIndex(j.Index, run.IndexRow(meta, index)); err != nil {
		return err
	}
	j.finish(figures)
	return nil
}

// file writes a whole file and remembers it.
func (j *job) file(name string, data []byte) error {
	if err := run.WriteFile(j.path(name), data); err != nil {
		return err
	}
	j.res.Files = append(j.res.Files, name)
	return nil
}

// metadata returns the source's metadata under the export's run id, and its
// text: as it is where that will do.
func (j *job) metadata() (*run.Metadata, []byte, error) {
	m := *j.src.Metadata
	same := m.RunID == "" || m.RunID == j.RunID
	m.RunID = j.RunID
	if j.Trace != "" {
		m.Validity.Notes = slices.DeleteFunc(slices.Clone(m.Validity.Notes), func(n run.Note) bool { return n.Code == RowLimit })
		same = false // this trace is whole
	}
	if j.src.Has(source.MetadataFile) {
		text, err := j.src.Text(source.MetadataFile)
		if err != nil {
			return nil, nil, err
		}
		if same && json.Valid(text) {
			return &m, text, nil
		}
		text, err = run.EncodeJSON(&m)
		return &m, text, err
	}
	text, err := run.EncodeJSON(map[string]any{"run_id": j.RunID})
	return &m, text, err
}

// finish fills in the result.
func (j *job) finish(figures *tables.Result) {
	for _, text := range figures.Notes() {
		j.notes.Add(run.Note{Code: "rows_apart", Severity: run.Info, Text: text})
	}
	j.res.RunDir, j.res.RunID, j.res.Index = j.Output, j.RunID, j.Index
	j.res.Notes = append(j.src.Notes.List(), j.notes.List()...)
	if j.res.Notes == nil {
		j.res.Notes = []run.Note{}
	}
}

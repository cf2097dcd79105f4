package experiment

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Recovery says what recover made of a run that was cut off.
type Recovery struct {
	Dir   string     `json:"run_dir"`
	Rows  uint64     `json:"rows"`
	Bytes int64      `json:"log_bytes"` // of whole records
	Torn  string     `json:"torn,omitempty"`
	Notes []run.Note `json:"notes"`
	Valid bool       `json:"valid"`
}

// Recover finishes a run that a crash left: everything that its graph log still
// says is expanded, analysed and sealed, marked as partial.
func Recover(ctx context.Context, root string) (*Recovery, error) {
	r, err := run.Open(root)
	if err != nil {
		return nil, err
	}
	if r.State == run.Finished {
		return nil, run.Errorf(run.Misuse, "%s is finished: there is nothing to recover", root)
	}
	if _, err := os.Stat(filepath.Join(root, trace.GraphLogName)); err != nil && r.State == run.Cut {
		return nil, run.Errorf(run.Corrupt, "%s has no %s: it was cut off before anything was observed; delete it and run again", root, trace.GraphLogName)
	}
	dir, err := run.Reopen(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	left, err := dir.Leftovers()
	if err != nil {
		return nil, err
	}
	for _, l := range left {
		if err := dir.Drop(l); err != nil {
			return nil, err
		}
	}
	f, err := reopened(dir, r.Metadata)
	if err != nil {
		return nil, err
	}
	if err := f.write(ctx); err != nil {
		return nil, err
	}
	f.meta.State = "partial"
	if err := dir.Finish(f.meta); err != nil {
		return nil, err
	}
	rec := &Recovery{Dir: root, Rows: f.result.Rows, Bytes: f.result.LogBytes, Notes: f.notes.List(), Valid: f.notes.Valid()}
	if f.result.Torn != nil {
		rec.Torn = f.result.Torn.Error()
	}
	return rec, nil
}

// reopened makes a finishing of a directory whose metadata are known.
func reopened(dir *run.Dir, m *run.Metadata) (*finishing, error) {
	if m == nil {
		return nil, run.Errorf(run.Corrupt, "%s has no metadata.json: nothing says what ran", dir.Root())
	}
	f := &finishing{dir: dir, notes: &dir.Notes, id: dir.ID(), meta: m, model: &modelFacts{}}
	if err := f.settings(); err != nil {
		return nil, err
	}
	for _, n := range m.Validity.Notes {
		if kept[n.Code] {
			dir.Notes.Add(n)
		}
	}
	return f, nil
}

// settings takes what the run was made with from its metadata.
func (f *finishing) settings() error {
	var set Settings
	var out Output
	for name, to := range map[string]any{"model_facts": f.model, "settings": &set, "output": &out} {
		raw, ok := f.meta.Extra[name].(json.RawMessage)
		if !ok {
			continue // an import: it has none, and what needs it is left out
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return run.Errorf(run.Corrupt, "metadata.json: %s: %w", name, err)
		}
	}
	f.rowLimit, f.files = uint64(set.RowLimit), trace.Options{Compression: string(out.Compression)}
	f.opt = tensorgraph.Options{RunID: f.id, BlockCells: set.KVBlockTokens}
	return nil
}

// kept are the notes that do not follow from the graph log, so that they are
// taken over when it is read again.
var kept = map[string]bool{"model_exceeds_memory": true, "low_disk": true}

// Report computes what the report of a run directory shows, from its graph log.
// The directory is not changed but for temporary files.
func Report(ctx context.Context, root string) (*report.Data, error) {
	r, err := run.Open(root)
	if err != nil {
		return nil, err
	}
	if r.Metadata == nil {
		return nil, run.Errorf(run.Misuse, "%s is no run directory: it has no metadata.json", root)
	}
	return reportOf(ctx, r)
}

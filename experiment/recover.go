package experiment

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Recovery says what recover made of a run that was cut off.
type Recovery struct {
	Dir   string     `json:"run_dir"`
	State string     `json:"state"` // partial; complete if it was only cut off while it was analysed
	Rows  uint64     `json:"rows"`
	Bytes int64      `json:"log_bytes"` // of whole records
	Torn  string     `json:"torn,omitempty"`
	Notes []run.Note `json:"notes"`
	Valid bool       `json:"valid"`
}

// Recover finishes a run that a crash left: everything that its graph log still
// says is expanded, analysed and sealed, marked as partial unless nothing is
// missing. A run that is live, finished or none is an error of class
// [run.Misuse], one of which nothing was observed of class [run.Corrupt].
func Recover(ctx context.Context, root string) (*Recovery, error) {
	r, err := run.Open(root)
	if err != nil {
		return nil, err
	}
	switch r.State {
	case run.Finished:
		return nil, run.Errorf(run.Misuse, "%s is finished: there is nothing to recover", root)
	case run.Live:
		return nil, run.Errorf(run.Misuse, "%s is being written: wait until its run has ended", root)
	case run.Foreign:
		return nil, run.Errorf(run.Misuse, "%s is no run directory: give one that a killed run left", root)
	}
	if st, err := os.Stat(filepath.Join(root, trace.GraphLogName)); err != nil || st.Size() <= trace.EmptyGraphLog {
		return nil, run.Errorf(run.Corrupt, "%s has no records in %s: it was cut off before anything was observed; delete it and run again", root, trace.GraphLogName)
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
	f.meta.State = run.StatePartial
	if f.whole() {
		f.meta.State = run.StateComplete
	}
	if err := dir.Finish(f.meta); err != nil {
		return nil, err
	}
	if err := f.indexAgain(); err != nil {
		return nil, err
	}
	rec := &Recovery{Dir: root, State: f.meta.State, Rows: f.result.Rows, Bytes: f.result.LogBytes, Notes: listed(f.notes.List()), Valid: f.notes.Valid()}
	if f.result.Torn != nil {
		rec.Torn = f.result.Torn.Error()
	}
	return rec, nil
}

// whole reports whether the engine ended in order and everything that it said is
// there: the run was cut off while it was analysed.
func (f *finishing) whole() bool {
	return f.result.Torn == nil && f.result.End != nil && f.result.End.Class == 0
}

// indexAgain gives a run that is complete now its row in the results directory's
// table, if the run lies where it was made.
func (f *finishing) indexAgain() error {
	parent := filepath.Dir(f.dir.Root())
	if f.meta.State != run.StateComplete || f.meta.Generation.Warmup || filepath.Base(f.dir.Root()) != f.id || filepath.Base(parent) != f.meta.Model.ID {
		return nil
	}
	return f.index(filepath.Join(filepath.Dir(parent), indexName))
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
	m.Validity.Notes = nil // all others are made again
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
var kept = map[string]bool{"model_exceeds_memory": true, "low_disk_space": true}

package experiment

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report/compat"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// Export writes the run directory that mrm-trace would have written, with every
// access of the run: where a row limit cut its trace.parquet, the graph log is
// expanded, which takes room for a second trace beside the output meanwhile.
func Export(ctx context.Context, o compat.Options) (*compat.Result, error) {
	cut, err := cutRun(o.Input)
	if err != nil {
		return nil, err
	}
	if cut == nil || o.Output == "" {
		return compat.Export(ctx, o)
	}
	parent := filepath.Dir(filepath.Clean(o.Output))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, run.IOError(err)
	}
	temp, err := os.MkdirTemp(parent, ".tierscope-export-")
	if err != nil {
		return nil, run.IOError(err)
	}
	defer os.RemoveAll(temp)
	if _, err := expand(ctx, cut, temp); err != nil {
		return nil, err
	}
	o.Trace = filepath.Join(temp, "trace.parquet")
	return compat.Export(ctx, o)
}

// cutRun opens a run whose trace was cut by its row limit; nil if the input is
// another, or no run.
func cutRun(input string) (*run.Run, error) {
	if _, err := os.Stat(filepath.Join(input, trace.GraphLogName)); err != nil {
		return nil, nil
	}
	r, err := run.Open(input)
	if err != nil || r.Metadata == nil {
		return nil, err
	}
	if !slices.ContainsFunc(r.Metadata.Validity.Notes, func(n run.Note) bool { return n.Code == compat.RowLimit }) {
		return nil, nil
	}
	return r, nil
}

// Exported says what an export as Parquet wrote.
type Exported struct {
	Dir     string   `json:"dir"`
	Files   []string `json:"files"`
	Rows    uint64   `json:"rows"`
	Objects int      `json:"objects"`
	Marks   uint64   `json:"marks"`
}

// ExportParquet writes trace.parquet, objects.parquet and marks.parquet of a run
// into dir, which must be new or empty, with every access of its graph log,
// whatever the row limit of the run was. If it fails, nothing is left.
func ExportParquet(ctx context.Context, input, dir string) (*Exported, error) {
	r, err := run.Open(input)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(input, trace.GraphLogName)); err != nil || r.Metadata == nil {
		return nil, run.Errorf(run.Invalid, "%s has no %s: its trace.parquet, if there is one, is all that it holds", input, trace.GraphLogName)
	}
	if r.State == run.Live {
		return nil, run.Errorf(run.Misuse, "%s is being written: wait until its run has ended", input)
	}
	if dir == "" {
		return nil, run.Errorf(run.Misuse, "--output: missing; name the directory to write")
	}
	entries, err := os.ReadDir(dir)
	made := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !made:
		return nil, run.Errorf(run.Misuse, "output %w: want a directory", err)
	case len(entries) > 0:
		return nil, run.Errorf(run.Misuse, "output %s is not empty (%s is there): nothing is overwritten; choose another", dir, entries[0].Name())
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, run.IOError(err)
	}
	x, err := expand(ctx, r, dir)
	if err != nil && made {
		os.Remove(dir)
	}
	return x, err
}

// expand writes what the graph log of a run says into dir.
func expand(ctx context.Context, r *run.Run, dir string) (x *Exported, err error) {
	f := &finishing{meta: r.Metadata, model: &modelFacts{}, id: r.Metadata.RunID}
	if err := f.settings(); err != nil {
		return nil, err
	}
	s := &exportSink{ctx: ctx, x: Exported{Dir: dir, Files: []string{"trace.parquet", "objects.parquet", "marks.parquet"}}}
	defer func() {
		if err != nil {
			for _, name := range s.x.Files {
				os.Remove(filepath.Join(dir, name))
			}
		}
	}()
	at := func(i int) string { return filepath.Join(dir, s.x.Files[i]) }
	if s.rows, err = trace.Create(at(0), f.files); err != nil {
		return nil, err
	}
	defer s.rows.Abort()
	objects, err := trace.CreateObjects(at(1), f.files)
	if err != nil {
		return nil, err
	}
	defer objects.Abort()
	if s.marks, err = trace.CreateMarks(at(2), f.files); err != nil {
		return nil, err
	}
	defer s.marks.Abort()
	if _, err := tensorgraph.Replay(filepath.Join(r.Root, trace.GraphLogName), f.opt, s); err != nil {
		return nil, err
	}
	if err := objects.Write(s.objects...); err != nil {
		return nil, err
	}
	for _, end := range []func() error{s.rows.Close, objects.Close, s.marks.Close} {
		if err := end(); err != nil {
			return nil, err
		}
	}
	s.x.Rows, s.x.Objects = uint64(s.rows.Rows()), len(s.objects)
	return &s.x, nil
}

// exportSink writes a stream to files.
type exportSink struct {
	ctx     context.Context
	rows    *trace.Writer
	marks   *trace.Table[observe.Mark]
	objects []observe.Object // by id - 1
	x       Exported
}

// Object implements [observe.Sink]. An object told again says when it died.
func (s *exportSink) Object(o observe.Object) error {
	if int(o.ID) <= len(s.objects) {
		s.objects[o.ID-1] = o
	} else {
		s.objects = append(s.objects, o)
	}
	return nil
}

// Mark implements [observe.Sink].
func (s *exportSink) Mark(m observe.Mark) error {
	s.x.Marks++
	return s.marks.Write(m)
}

// Accesses implements [observe.Sink].
func (s *exportSink) Accesses(b *observe.Batch) error {
	if err := analyze.Interrupted(s.ctx); err != nil {
		return err
	}
	return s.rows.Accesses(b)
}

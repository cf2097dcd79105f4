package experiment

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/report"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// source delivers what a run directory holds, from its graph log if it has one, else
// from its trace, to the same analyses.
func (f *finishing) source(ctx context.Context, root, temp string) error {
	f.figures = newFigures(ctx, temp)
	log := filepath.Join(root, trace.GraphLogName)
	if _, err := os.Stat(log); err == nil {
		f.result, err = tensorgraph.Replay(log, f.opt, f.figures)
		return err
	}
	r, err := trace.Open(filepath.Join(root, "trace.parquet"))
	if err != nil {
		return err
	}
	defer r.Close()
	f.result = &tensorgraph.Result{End: &trace.End{}, Rows: uint64(r.Rows())}
	objects := filepath.Join(root, "objects.parquet")
	if _, err := os.Stat(objects); err == nil {
		if err := trace.ReadObjects(objects, func(o *observe.Object) error { return f.figures.Object(*o) }); err != nil {
			return err
		}
	}
	return r.Read(observe.ColsAll, f.figures.Accesses)
}

func reportOf(ctx context.Context, r *run.Run) (*report.Data, error) {
	temp, err := os.MkdirTemp("", "tierscope-report-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	f := &finishing{meta: r.Metadata, model: &modelFacts{Layers: 0}, notes: &run.Notes{}, id: r.Metadata.RunID}
	if err := f.settings(); err != nil {
		return nil, err
	}
	for _, n := range r.Metadata.Validity.Notes {
		f.notes.Add(n)
	}
	if err := f.source(ctx, r.Root, temp); err != nil {
		return nil, err
	}
	if f.compat, err = f.figures.compat.Result(); err != nil {
		return nil, err
	}
	if f.tables, err = f.figures.tables(f.compat, f.result); err != nil {
		return nil, err
	}
	f.effect(func(string, string, []string, uint64, string, ...any) {})
	return f.reportData(), nil
}

// WriteReport writes the page of a run directory to out.
func WriteReport(ctx context.Context, root string, out io.Writer) error {
	d, err := Report(ctx, root)
	if err != nil {
		return err
	}
	return report.Render(out, d)
}

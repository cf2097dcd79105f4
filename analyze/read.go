package analyze

import (
	"context"
	"os"
	"path/filepath"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// OpenTrace opens path as a trace: the file itself, or that of a run directory,
// which is returned too ("" if path is a file).
func OpenTrace(path string) (in *trace.Reader, dir string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	if !info.IsDir() {
		in, err = trace.Open(path)
		return in, "", err
	}
	file := filepath.Join(path, "trace.parquet")
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return nil, "", run.Errorf(run.Invalid, "%s holds no trace.parquet; name a run directory or a trace", path)
	}
	in, err = trace.Open(file)
	return in, path, err
}

// Read passes the rows of a trace to analyses, with only the columns that one of
// them looks at. progress, if there, is told how many rows of how many have been
// read. When ctx ends, reading does with [run.Interrupted].
func Read(ctx context.Context, in *trace.Reader, progress func(done, total int64), list ...Analysis) error {
	var cols observe.Cols
	for _, a := range list {
		cols |= a.Columns()
	}
	done := int64(0)
	return in.Read(cols, func(b *observe.Batch) error {
		if err := Interrupted(ctx); err != nil {
			return err
		}
		for _, a := range list {
			if err := a.Observe(b); err != nil {
				return err
			}
		}
		done += int64(b.Len)
		if progress != nil {
			progress(done, in.Rows())
		}
		return nil
	})
}

// Interrupted returns the error with which an analysis ends once ctx has ended,
// else nil.
func Interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return run.Errorf(run.Interrupted, "analysis interrupted; nothing was written")
	}
	return nil
}

package gguf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tierscope/tierscope/internal/vfs"
	"github.com/tierscope/tierscope/run"
)

// Options of Write.
type Options struct {
	Force    bool                    // replace a file that is there
	Progress func(done, total int64) // bytes; called about every 4 MiB from one goroutine; may be nil
}

// Synth writes a model with random weights at path, as Write without options.
func Synth(path string, s Spec) error {
	return Write(context.Background(), path, s, Options{})
}

// chunk is the bytes filled and written at a time.
const chunk = 4 << 20

// Write writes a model of the given shape with random weights, loadable by
// llama.cpp: no tokenizer ("no_vocab"), so it takes token numbers. Equal specs
// give equal bytes. It appears at path when it is whole and on the disk, and
// nothing is left of it when ctx ends before (run.Interrupted) or the disk
// fails (run.IO). A file at path is refused (run.Misuse) unless Force. Memory:
// 8 MiB.
func Write(ctx context.Context, path string, s Spec, o Options) error {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return err
	}
	f, head, err := s.encode()
	if err != nil {
		return err
	}
	if err := vacant(path, o.Force); err != nil {
		return err
	}
	if err := room(filepath.Dir(path), f.Size); err != nil {
		return err
	}
	begin := run.NewAtomic
	if o.Force {
		begin = run.ReplaceAtomic
	}
	out, err := begin(path)
	if err != nil {
		return fmt.Errorf("synthetic model: %w", err)
	}
	defer out.Abort()
	if err := writeModel(ctx, out, f, head, s.Seed, o.Progress); err != nil {
		if ctx.Err() != nil {
			return run.Errorf(run.Interrupted, "synthetic model %s: interrupted, nothing is left of it", path)
		}
		return fmt.Errorf("synthetic model: %w", err)
	}
	if err := out.Commit(); err != nil {
		return fmt.Errorf("synthetic model: %w", err)
	}
	return nil
}

// vacant refuses a path that is taken.
func vacant(path string, force bool) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return run.Errorf(run.IO, "synthetic model: %w", err)
	case st.IsDir():
		return misuse("%s is a directory; name a file in it", path)
	case !force:
		return misuse("%s exists: nothing is overwritten; choose another name, or --force to replace it", path)
	}
	return nil
}

// room refuses to start what cannot fit.
func room(dir string, size int64) error {
	free, err := vfs.OS.Free(dir)
	if err != nil {
		return run.Errorf(run.IO, "synthetic model: %w", err)
	}
	if free < uint64(size) {
		return run.Errorf(run.IO, "synthetic model: %d bytes are needed and %s has %d free; take fewer --layers or another directory", size, dir, free)
	}
	return nil
}

// writeModel writes header and data: one goroutine fills chunks, this one
// writes them.
func writeModel(ctx context.Context, w io.Writer, f *File, head []byte, seed uint64, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	empty, full := make(chan []byte, 2), make(chan []byte, 2)
	empty <- make([]byte, chunk+dataAlignment)
	empty <- make([]byte, chunk+dataAlignment)
	go func() {
		defer close(full)
		for i := range f.Tensors {
			if !fillTensor(ctx, &f.Tensors[i], i, seed, empty, full) {
				return
			}
		}
	}()
	if _, err := w.Write(head); err != nil {
		return err
	}
	done := int64(len(head))
	for b := range full {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := w.Write(b)
		if err != nil {
			return err
		}
		done += int64(n)
		if progress != nil {
			progress(done, f.Size)
		}
		empty <- b[:cap(b)]
	}
	return ctx.Err()
}

// fillTensor sends the chunks of one tensor, the last one padded to the
// alignment; false when ctx ended.
func fillTensor(ctx context.Context, t *Tensor, index int, seed uint64, empty <-chan []byte, full chan<- []byte) bool {
	fill := newFiller(t)
	step := chunk / fill.block * fill.block
	for k, left := 0, t.Bytes; left > 0; k++ {
		var b []byte
		select {
		case b = <-empty:
		case <-ctx.Done():
			return false
		}
		n := min(left, step)
		fill.fill(b[:n], at(seed, index, k))
		left -= n
		end := n
		if left == 0 {
			end = n + align(t.Bytes, dataAlignment) - t.Bytes
			clear(b[n:end])
		}
		full <- b[:end]
	}
	return true
}

// Command trace measures speed and memory of the memory trace against its targets:
// what observing costs the engine, what the parent process holds, how fast rows are
// written and analysed. `make bench-trace` runs it. Every figure comes with its
// number of samples and its interval, and beside what it is to be compared with,
// measured in the same run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/run"
)

// options are the flags.
type options struct {
	json, quick, docs bool
	out, from         string
}

func main() {
	// The engine's child is this program again.
	if len(os.Args) > 1 && os.Args[1] == llamacpp.ChildCommand {
		os.Exit(llamacpp.Child(os.Stdin))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/trace:", err)
	}
	os.Exit(run.ExitCode(err))
}

func bench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	f := flag.NewFlagSet("bench/trace", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.json, "json", false, "print the result as one JSON document on stdout instead of the table")
	f.BoolVar(&o.quick, "quick", false, "half a minute: every figure, wide intervals")
	f.StringVar(&o.out, "out", "", "also write the JSON document to this file")
	f.BoolVar(&o.docs, "docs", false, "write docs/bench/trace.md from the result")
	f.StringVar(&o.from, "from", "", "measure nothing: take the result from this JSON document")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return run.Errorf(run.Misuse, "%w", err)
	}
	if f.NArg() > 0 {
		return run.Errorf(run.Misuse, "%q: takes flags only", f.Arg(0))
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	var r *result
	if o.from != "" {
		r, err = readResult(o.from)
	} else {
		r, err = measure(ctx, root, o.quick, func(format string, a ...any) { fmt.Fprintf(stderr, format+"\n", a...) })
	}
	if err != nil {
		return err
	}
	doc, err := run.EncodeJSON(r)
	if err != nil {
		return err
	}
	if o.out != "" {
		if err := write(o.out, doc); err != nil {
			return err
		}
	}
	if o.docs {
		if err := write(filepath.Join(root, pagePath), []byte(r.page())); err != nil {
			return err
		}
	}
	if o.json {
		_, err = stdout.Write(doc)
	} else {
		_, err = io.WriteString(stdout, r.text())
	}
	return err
}

// write replaces a file in one step.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := run.ReplaceAtomic(path)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		out.Abort()
		return err
	}
	return out.Commit()
}

// moduleRoot is the directory of go.mod, here or above.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", run.Errorf(run.Misuse, "%s is not inside tierscope's source: run it there", dir)
		}
	}
}

// Command summary follows `go test -json` on its standard input: it keeps every
// event in a file, prints one line a package as it ends, and at the very end says
// what failed, what was skipped and why, and how many tests there were.
//
//	go test -json ./... | summary -events FILE            first part: keeps and shows
//	go test -json ./x   | summary -events FILE -closing   last part: adds, then sums up all of FILE
//
// It exits 1 when anything failed or nothing ran.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	events := flag.String("events", "", "file that the events are added to")
	closing := flag.Bool("closing", false, "print failures, skips and the closing line of all events in the file")
	flag.Parse()
	if err := follow(*events, *closing, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

// follow copies events from in to the file at path and reports on out.
func follow(path string, closing bool, in io.Reader, out io.Writer) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	t := newTally()
	err = t.read(in, func(line []byte, e event) error {
		if e.Action == "" { // not an event: what the go command itself says
			_, err := fmt.Fprintf(out, "%s\n", line)
			return err
		}
		if e.packageEnd() {
			fmt.Fprintln(out, t.packageLine(e))
		}
		_, err := fmt.Fprintf(w, "%s\n", line)
		return err
	})
	if err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if closing {
		all, err := os.Open(path)
		if err != nil {
			return err
		}
		defer all.Close()
		t = newTally()
		if err := t.read(all, nil); err != nil {
			return err
		}
		t.close(out)
	}
	switch {
	case t.failed() > 0:
		return fmt.Errorf("%d failed", t.failed())
	case len(t.result) == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"
)

const module = "github.com/tierscope/tierscope"

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a package that does not build
	Test        string
	Output      string
	Elapsed     float64 // s
	FailedBuild string
}

func (e event) packageEnd() bool {
	return e.Test == "" && e.Package != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip")
}

// id names a test, or with an empty test a whole package.
type id struct{ pkg, test string }

func (i id) String() string {
	pkg := strings.TrimPrefix(strings.TrimPrefix(i.pkg, module), "/")
	if i.test == "" {
		return pkg
	}
	return pkg + "." + i.test
}

// tally is what has been seen of a test run.
type tally struct {
	result  map[id]string   // last word on each test; a failure stays
	output  map[id][]string // what it printed
	cached  map[string]bool // packages whose result is from an earlier run
	running map[string]int  // tests ended, by package
	order   []id            // in order of their end
}

func newTally() *tally {
	return &tally{map[id]string{}, map[id][]string{}, map[string]bool{}, map[string]int{}, nil}
}

// read takes lines of r until its end and passes each to seen, if not nil, after
// having counted it. A line that is no event has an event without an action.
func (t *tally) read(r io.Reader, seen func([]byte, event) error) error {
	s := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := s.ReadBytes('\n')
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{}
			}
			t.add(e)
			if seen != nil {
				if err := seen(line, e); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) add(e event) {
	key := id{e.Package, e.Test}
	switch e.Action {
	case "output":
		t.output[key] = append(t.output[key], e.Output)
		if e.Test == "" && strings.HasSuffix(strings.TrimSpace(e.Output), "(cached)") {
			t.cached[e.Package] = true
		}
	case "build-output":
		key = id{pkg: e.ImportPath}
		t.output[key] = append(t.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
			return
		}
		t.running[e.Package]++
		t.end(key, e.Action)
	}
}

func (t *tally) end(key id, action string) {
	old, known := t.result[key]
	if !known {
		t.order = append(t.order, key)
	}
	if old != "fail" {
		t.result[key] = action
	}
	if action == "pass" {
		delete(t.output, key)
	}
}

// endPackage enters a package as failed when no test of it is to blame: it did
// not build, or it died.
func (t *tally) endPackage(e event) {
	if e.Action != "fail" {
		return
	}
	for key, r := range t.result {
		if key.pkg == e.Package && r == "fail" {
			return
		}
	}
	key := id{pkg: e.Package}
	if e.FailedBuild != "" {
		t.output[key] = append(t.output[key], t.output[id{pkg: e.FailedBuild}]...)
	}
	t.end(key, "fail")
}

func (t *tally) packageLine(e event) string {
	word := map[string]string{"pass": "ok  ", "fail": "FAIL", "skip": "-   "}[e.Action]
	s := fmt.Sprintf("%s %-36s %6.1fs %5d tests", word, id{pkg: e.Package}, e.Elapsed, t.running[e.Package])
	if t.cached[e.Package] {
		s += " (cached)"
	}
	return s
}

func (t *tally) count(action string) int {
	n := 0
	for _, r := range t.result {
		if r == action {
			n++
		}
	}
	return n
}

func (t *tally) failed() int { return t.count("fail") }

// close prints the failures with their output, the skips with their reasons, and
// the closing line.
func (t *tally) close(out io.Writer) {
	reasons := map[string][]string{}
	for _, key := range t.order {
		switch t.result[key] {
		case "fail":
			fmt.Fprintf(out, "\n--- FAIL: %v\n", key)
			for _, line := range t.output[key] {
				if !chatter(line) {
					fmt.Fprint(out, "    ", line)
				}
			}
		case "skip":
			why := strings.TrimSpace(strings.Join(drop(t.output[key], chatter), ""))
			if _, rest, ok := strings.Cut(why, ".go:"); ok {
				if _, rest, ok = strings.Cut(rest, ": "); ok {
					why = rest
				}
			}
			reasons[why] = append(reasons[why], key.String())
		}
	}
	whys := make([]string, 0, len(reasons))
	for why := range reasons {
		whys = append(whys, why)
	}
	sort.Strings(whys)
	for _, why := range whys {
		fmt.Fprintf(out, "\nskipped: %s\n", why)
		for _, name := range reasons[why] {
			fmt.Fprintln(out, "   ", name)
		}
	}
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", t.count("pass"), t.failed(), t.count("skip"))
}

// chatter reports whether a line only says that a test starts, pauses or ends.
func chatter(line string) bool {
	s := strings.TrimLeft(line, " ")
	return strings.HasPrefix(s, "=== ") || strings.HasPrefix(s, "--- ")
}

func drop(lines []string, f func(string) bool) []string {
	var keep []string
	for _, l := range lines {
		if !f(l) {
			keep = append(keep, l)
		}
	}
	return keep
}

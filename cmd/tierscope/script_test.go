package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tierscope/tierscope/engine/fetch"
)

// scriptCommands are what scripts can say beside testscript's own words.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits,
	"json":  jsonIs,
}

// exits runs a command that must end with the given exit code:
//
//	exits 2 tierscope label
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// jsonIs reads a file as exactly one JSON document and compares what lies at a path
// in it with a regular expression over its compact form; a path ending in .count is
// the number of elements of a list, in .keys the sorted keys of an object.
//
//	json stdout runs.0.state '"complete"'
//	json stdout runs.count 3
func jsonIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: json file path regexp")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var v any
	ts.Check(d.Decode(&v))
	if _, err := d.Token(); err != io.EOF {
		ts.Fatalf("%s holds more than one document", args[0])
	}
	for _, key := range strings.FieldsFunc(args[1], func(r rune) bool { return r == '.' }) {
		ok := false
		switch x := v.(type) {
		case map[string]any:
			if v, ok = x[key]; !ok && key == "keys" {
				v, ok = strings.Join(slices.Sorted(maps.Keys(x)), " "), true
			}
		case []any:
			if i, err := strconv.Atoi(key); err == nil && i < len(x) {
				v, ok = x[i], true
			} else if key == "count" {
				v, ok = len(x), true
			}
		}
		if !ok {
			ts.Fatalf("%s has no %s of %s", args[0], key, args[1])
		}
	}
	got, err := json.Marshal(v)
	ts.Check(err)
	re, err := regexp.Compile("^(?:" + args[2] + ")$")
	ts.Check(err)
	if !re.Match(got) {
		ts.Fatalf("%s of %s is %s, want %s", args[1], args[0], got, args[2])
	}
}

// scriptSetup gives scripts $MRM, a data set that mrm-trace wrote, and the cache
// with the engine libraries.
func scriptSetup(e *testscript.Env) error {
	data, err := filepath.Abs("../../report/compat/testdata")
	if err != nil {
		return err
	}
	cache, err := fetch.Cache()
	e.Setenv("MRM", data)
	e.Setenv("TIERSCOPE_CACHE", cache)
	return err
}

package region

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/run"
)

// plain returns v as JSON sees it, with numbers in full.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readCase(t *testing.T, path string) (*Case, map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadCase(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return c, plain(t, json.RawMessage(text)).(map[string]any)
}

// The cases and what they must give were recorded from mrm-trace 0.1.23.
func TestCasesOfTheOriginal(t *testing.T) {
	paths, _ := filepath.Glob("testdata/label/*.json")
	if len(paths) != 17 {
		t.Fatalf("%d cases found, want 17", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			c, want := readCase(t, path)
			if c.SymbolColumns != nil {
				got, err := c.Classify()
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, plain(t, got)); d != "" {
					t.Error(d)
				}
				return
			}
			got, err := c.Label()
			if want["pages_registered"] == nil {
				if run.ExitCode(err) != 2 {
					t.Fatalf("error %v, want misuse", err)
				}
				return
			}
			var unknown *UnknownError
			if failed := errors.As(err, &unknown); failed != (want["error"] != nil) || err != nil && !failed {
				t.Fatalf("error %v, the original's %v", err, want["error"])
			}
			m := plain(t, got).(map[string]any)
			for _, key := range []string{"pages_registered", "labelled", "region_map", "region_map_columns", "kv_lifecycle", "kv_lifecycle_columns"} {
				if d := cmp.Diff(want[key], m[key]); d != "" {
					t.Errorf("%s: %s", key, d)
				}
			}
		})
	}
}

func TestReadCaseRefuses(t *testing.T) {
	for text, code := range map[string]int{
		``:                          3,
		`{"policy":`:                3,
		`{} {}`:                     3,
		`[]`:                        1,
		`{"policy":"keep"}`:         1,
		`{"input_columns":[7]}`:     1,
		"{\"policy\":\"keep\"}\x00": 3,
	} {
		_, err := ReadCase(strings.NewReader(text))
		if run.ExitCode(err) != code {
			t.Errorf("%q: %v (code %d), want code %d", text, err, run.ExitCode(err), code)
		}
	}
}

func TestLabelRefusesBadRows(t *testing.T) {
	for text, want := range map[string]string{
		`{"policy":"keep","input_columns":["address"],"input":[[1,2]]}`:                                        "input[0]: 2 cells for 1 columns",
		`{"policy":"keep","input_columns":["address"],"input":[[-1]]}`:                                         "input[0].address: -1",
		`{"policy":"keep","input_columns":["address"],"input":[[1],["<absent>"]]}`:                             "row 1: no address",
		`{"policy":"keep","input_columns":["address","symbol"],"input":[[1,4]]}`:                               "input[0].symbol: 4",
		`{"policy":"keep","ranges":[{"addr_start":1,"addr_end":2}],"input_columns":["address"],"input":[]}`:    "ranges[0].region_type: missing",
		`{"policy":"keep","ranges":[{"region_type":"x","addr_end":2}],"input_columns":["address"],"input":[]}`: "ranges[0].addr_start",
	} {
		c, err := ReadCase(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Label(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzCase(f *testing.F) {
	paths, _ := filepath.Glob("testdata/label/*.json")
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(`{"policy":"keep","ranges":[{"addr_start":0,"addr_end":18446744073709551616,"region_type":null}],"input_columns":["address","region_type"],"input":[[1,null]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadCase(strings.NewReader(text))
		if err != nil {
			return
		}
		if c.SymbolColumns != nil {
			if r, err := c.Classify(); err == nil && len(r.Rows) != len(c.Symbols) {
				t.Fatal("rows lost")
			}
			return
		}
		r, err := c.Label()
		if err != nil {
			return
		}
		var counted uint64
		for _, m := range r.Map {
			counted += m[6].(uint64)
		}
		known := uint64(0)
		for _, l := range r.Labelled {
			if l[2].(uint32) != unknownID {
				known++
			}
		}
		if counted != known || len(r.Labelled) > len(c.Input) {
			t.Fatalf("%d rows labelled, %d with a region, %d counted in regions", len(r.Labelled), known, counted)
		}
	})
}

package run

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierscope/tierscope/internal/vfs"
)

func TestEncodeJSON(t *testing.T) {
	type inner struct {
		F float64  `json:"f"`
		P *float64 `json:"p"`
		O *float64 `json:"o,omitempty"`
	}
	type outer struct {
		inner
		Name  string         `json:"name"`
		Skip  int            `json:"-"`
		List  []any          `json:"list"`
		None  []int          `json:"none"`
		Raw   []byte         `json:"raw"`
		Big   uint64         `json:"big"`
		Time  time.Time      `json:"time"`
		Map   map[uint32]any `json:"map"`
		Extra map[string]any `json:"-" extra:"true"`
	}
	inf := math.Inf(1)
	v := outer{
		inner: inner{F: math.NaN(), P: &inf}, Name: "<a & b>\u2028", List: []any{1, math.NaN(), float32(math.Inf(-1)), "x", nil, inner{F: 1.5}},
		Raw: []byte("hi"), Big: math.MaxUint64, Time: time.Unix(0, 0).UTC(), Map: map[uint32]any{7: 1},
		Extra: map[string]any{"z": math.NaN(), "b": json.RawMessage(`{"k":1}`), "name": "taken"},
	}
	got, err := EncodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "f": null,
  "p": null,
  "name": "<a & b>\u2028",
  "list": [
    1,
    null,
    null,
    "x",
    null,
    {
      "f": 1.5,
      "p": null
    }
  ],
  "none": null,
  "raw": "aGk=",
  "big": 18446744073709551615,
  "time": "1970-01-01T00:00:00Z",
  "map": {
    "7": 1
  },
  "b": {
    "k": 1
  },
  "z": null
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := EncodeJSON(map[string]any{"c": make(chan int)}); err == nil {
		t.Error("a channel was encoded")
	}
}

// TestEncodeJSONAgrees compares with encoding/json on what both know.
func TestEncodeJSONAgrees(t *testing.T) {
	m := NewMetadata()
	m.Generation.Seed = Known[int64](7)
	m.Hardware.Caches = []Cache{{"L1d", 32768, 1}}
	m.Plan = map[string]any{"b": []int{1, 2}, "a": 1e21, "c": 1e-7}
	m.Validity.Notes = []Note{{Code: "x", Severity: Info, Text: "t"}}
	ours, err := EncodeJSON(m)
	if err != nil {
		t.Fatal(err)
	}
	std, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(std)+"\n", string(ours)); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataRoundTrip(t *testing.T) {
	root := t.TempDir()
	m := NewMetadata()
	m.State, m.RunID, m.MachineID = StateComplete, "r", "box"
	m.Thermal.PeakTempC = Known(math.NaN())
	m.Timing.Total = Known(1.25)
	m.Validity.merge(nil)
	m.Extra = map[string]any{"mine": json.RawMessage(`{"n":9007199254740993}`)}
	data, err := EncodeJSON(m)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(root, metadataName), data, 0o644)
	got, err := ReadMetadata(root)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := EncodeJSON(got)
	if diff := cmp.Diff(string(data), string(again)); diff != "" {
		t.Error(diff)
	}
	if got.Thermal.PeakTempC != nil || *got.Timing.Total != 1.25 {
		t.Errorf("%+v", got)
	}
}

func TestMetadataOfOthers(t *testing.T) {
	m, err := ParseMetadata([]byte(`{"model": {"id": "a\"NaN"}, "hardware": [1], "thermal": {"peak_temp_c": NaN}, "x": [-Infinity, Infinity, -1], "generation": {"rep_index": 2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.Model.ID != `a"NaN` || m.Thermal.PeakTempC != nil || *m.Generation.Repetition != 2 {
		t.Errorf("%+v", m)
	}
	if diff := cmp.Diff(map[string]any{"hardware": json.RawMessage("[1]"), "x": json.RawMessage("[null, null, -1]")}, m.Extra); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "[]", "{", `{"tierscope_version":"0.1.0","hardware":[1]}`, `{"schema_version":"2.0"}`} {
		if _, err := ParseMetadata([]byte(bad)); ExitCode(err) != 3 {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzMetadata(f *testing.F) {
	data, err := os.ReadFile("testdata/mrm/run_fx/metadata.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"a": NaN, "b": "\"NaN", "c": -Infinity}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMetadata(data)
		if err != nil {
			return
		}
		out, err := EncodeJSON(m)
		if err != nil {
			t.Fatal(err)
		}
		m.Tool = "x" // what we write we read back strictly
		again, err := ParseMetadata(out)
		if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if out2, _ := EncodeJSON(again); string(out2) != string(out) {
			t.Errorf("%s became %s", out, out2)
		}
	})
}

func TestNotes(t *testing.T) {
	var s Notes
	s.Add(Note{Code: "lost", Severity: Warning, Text: "a", Figures: []string{"iai"}, Count: 2})
	s.Add(Note{Code: "lost", Severity: Warning, Text: "b", Count: 1})
	s.Add(Note{Code: "lost", Severity: Warning, Text: "a", Figures: []string{"iai", "rw"}, Count: 5})
	want := []Note{{"lost", Warning, "a", []string{"iai", "rw"}, 7}, {"lost", Warning, "b", nil, 1}}
	if diff := cmp.Diff(want, s.List()); diff != "" {
		t.Error(diff)
	}
	if !s.Valid() {
		t.Error("a warning made it invalid")
	}
	if w := Weakening(s.List(), "rw"); len(w) != 1 || w[0].Text != "a" {
		t.Errorf("%+v", w)
	}
	s.Add(Note{Code: "torn", Severity: Wrong})
	if s.Valid() {
		t.Error("still valid")
	}
}

func TestIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest.csv")
	want, err := os.ReadFile("testdata/mrm/manifest.csv")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadMetadata("testdata/mrm/run_fx")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	lines := strings.Split(string(want), "\n")
	stamp := func(i int) time.Time { return at(lines[i][strings.LastIndex(lines[i], ",")+1:]) }
	p99, once, pages := 33.087, 1.0, int64(67)
	if err := AppendIndex(path, IndexRow(m, IndexFigures{&p99, &once, &pages, true, stamp(1)})); err != nil {
		t.Fatal(err)
	}
	p99lo, pagesLo := 5.5, int64(11)
	lo := IndexRow(&Metadata{RunID: "run_lo"}, IndexFigures{&p99lo, nil, &pagesLo, false, stamp(2)})
	for range 2 { // recorded again, it is still one row
		if err := AppendIndex(path, lo); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := os.ReadFile(path)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	os.WriteFile(path, []byte("a,b\n1,2\n"), 0o644)
	if err := AppendIndex(path, lo); ExitCode(err) != 3 {
		t.Errorf("foreign index: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "a,b\n1,2\n" {
		t.Errorf("foreign index was changed: %s", got)
	}
}

func TestPyFloat(t *testing.T) {
	for f, want := range map[float64]string{0: "0.0", 1: "1.0", -2.5: "-2.5", 4e-9: "4e-09", 1e-4: "0.0001", 1e15: "1000000000000000.0", 1e16: "1e+16", 0.1: "0.1", math.Inf(1): "inf"} {
		if got := pyFloat(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	before := Now()
	r := ClockOffset()
	after := Now()
	if r.Monotonic < before || r.Monotonic > after || r.Offset != r.Wall-int64(r.Monotonic) {
		t.Errorf("%+v not within %d and %d", r, before, after)
	}
	if r.Error > after-before {
		t.Errorf("error %d ns", r.Error)
	}
	var c Clocks
	c.Read()
	c.Read()
	now := Now()
	wall, ok := c.WallTime(now)
	if d := time.Since(time.Unix(0, wall)); !ok || d < -time.Second || d > time.Second {
		t.Errorf("wall time is off by %v", d)
	}
	if ns, bound := c.Step(); math.Abs(float64(ns)) > 1e9+float64(bound) {
		t.Errorf("step %d ± %d ns", ns, bound)
	}
	if reflect.DeepEqual(c, Clocks{}) || c.Clock != ClockMonotonic {
		t.Errorf("%+v", c)
	}
}

func TestIndexOfManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest.csv")
	var wg sync.WaitGroup
	const n = 20
	for i := range n {
		wg.Go(func() {
			if err := AppendIndex(path, IndexRow(&Metadata{RunID: fmt.Sprint("run", i)}, IndexFigures{})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	rows, err := readIndex(path)
	if err != nil || len(rows) != n {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	// A disk that is full leaves the old index.
	full := &vfs.Faulty{FS: vfs.OS, Fault: func(_ int, op vfs.Op, _ string) (int, error) {
		if op == vfs.OpWrite {
			return 10, syscall.ENOSPC
		}
		return 0, nil
	}}
	if err := appendIndex(full, path, IndexRow(&Metadata{RunID: "more"}, IndexFigures{})); ExitCode(err) != 5 {
		t.Errorf("full disk: %v", err)
	}
	if rows, err := readIndex(path); err != nil || len(rows) != n {
		t.Errorf("after a full disk: %d rows, %v", len(rows), err)
	}
}

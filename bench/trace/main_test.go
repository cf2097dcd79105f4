package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/run"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == llamacpp.ChildCommand {
		os.Exit(llamacpp.Child(os.Stdin))
	}
	os.Exit(m.Run())
}

// targets are the figures that are held against a goal.
var targets = []string{
	"speed_slot_t1", "speed_layer_times_t1", "speed_callback_t1", "speed_slot_t2", "speed_layer_times_t2", "speed_callback_t2",
	"memory_following", "memory_finishing", "log_bytes", "row_bytes", "row_write", "tables",
}

// TestQuick runs the whole program in its quick mode. What it measures on a machine
// that tests share says nothing about speed; that every figure is there does.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: not with -short")
	}
	var stdout, stderr bytes.Buffer
	file := filepath.Join(t.TempDir(), "out.json")
	if err := bench(t.Context(), []string{"--quick", "--json", "--out", file}, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	r, err := readResult(file)
	if err != nil {
		t.Fatal(err)
	}
	var printed result
	if err := json.Unmarshal(stdout.Bytes(), &printed); err != nil || len(printed.Figures) != len(r.Figures) {
		t.Fatalf("stdout is not the document of --out: %v", err)
	}
	var held []string
	for _, f := range r.Figures {
		if !(f.Value > 0) || math.IsInf(f.Value, 0) || f.N < 1 || f.How == "" || f.Unit == "" || f.Of == "" {
			t.Errorf("%+v is no figure", f)
		}
		if (f.Low == nil) != (f.High == nil) || f.Low != nil && (*f.Low > f.Value || f.Value > *f.High) {
			t.Errorf("%s: interval does not hold %g", f.ID, f.Value)
		}
		if (f.Goal == nil) != (f.Verdict == "") {
			t.Errorf("%s: goal %v, verdict %q", f.ID, f.Goal, f.Verdict)
		}
		if f.Goal != nil {
			held = append(held, f.ID)
		}
		if !strings.Contains(r.text(), f.What) || !strings.Contains(r.page(), "| "+f.What+" | ") {
			t.Errorf("%s is not in the tables", f.ID)
		}
	}
	if !slices.Equal(held, targets) {
		t.Errorf("targets are %v, want %v", held, targets)
	}
	// What does not depend on how busy the machine is.
	for _, id := range []string{"log_bytes", "row_bytes"} {
		i := slices.IndexFunc(r.Figures, func(f figure) bool { return f.ID == id })
		if i < 0 || r.Figures[i].Verdict != met {
			t.Errorf("%s is not met", id)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		goal             *goal
		value, low, high float64
		want             string
	}{
		{atLeast(99), 99.5, 99.1, 99.9, met},
		{atLeast(99), 99.5, 98.9, 100.1, undecided},
		{atLeast(99), 98, 97, 98.9, notMet},
		{atMost(64), 50, 40, 64, met},
		{atMost(64), 60, 50, 70, undecided},
		{atMost(64), 70, 65, 75, notMet},
	} {
		if got := (figure{Goal: c.goal, Value: c.value, Low: &c.low, High: &c.high}).judged().Verdict; got != c.want {
			t.Errorf("%g (%g to %g) against %+v: %s, want %s", c.value, c.low, c.high, *c.goal, got, c.want)
		}
	}
	if got := (figure{Goal: atMost(12), Value: 12.5}).judged().Verdict; got != notMet {
		t.Errorf("12.5 against at most 12: %s", got)
	}
}

func TestFlags(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want run.Class
	}{
		{[]string{"--loud"}, run.Misuse}, {[]string{"now"}, run.Misuse}, {[]string{"--from", "none.json"}, run.Misuse}, {[]string{"--from", broken}, run.Corrupt},
	} {
		var out bytes.Buffer
		if err := bench(t.Context(), c.args, &out, &out); run.ClassOf(err) != c.want {
			t.Errorf("%q: %v, want class %v", c.args, err, c.want)
		}
	}
}

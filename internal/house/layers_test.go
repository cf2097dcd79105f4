package house

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the rows of the house from the top down; a package may import from
// rows below its own only. docs/architecture.md says what each room holds.
var rooms = []string{"cmd", "experiment", "report", "fleet", "analyze", "collect", "engine",
	"region", "activation", "kvcache", "system", "trace", "observe", "run", "internal"}

// besides are doors of the same height as cmd: programs, not rooms.
var besides = []string{"bench", "scripts"}

// roomOf returns the room of a directory of the module and its row from the top.
func roomOf(dir string) (room string, row int) {
	room, _, _ = strings.Cut(dir, "/")
	if slices.Contains(besides, room) {
		return room, 0
	}
	return room, slices.Index(rooms, room)
}

// forbidden says why a package in directory from may not import the one in
// directory to; "" = it may.
func forbidden(from, to string) string {
	a, rowA := roomOf(from)
	b, rowB := roomOf(to)
	switch {
	case rowA < 0:
		return a + " is no room of the house"
	case rowB < 0:
		return b + " is no room of the house"
	case b == "experiment" && a != "experiment" && rowA != 0:
		return "only commands know experiment"
	case rowA < rowB:
		return ""
	case rowA > rowB:
		return b + " lies above " + a
	case a != b:
		return a + " and " + b + " stand side by side"
	case a == "internal":
		return "" // a leaf may use another leaf
	case strings.HasPrefix(from, to+"/"), strings.HasPrefix(to, from+"/"), from == to:
		return "" // a room's own parts and its table of them
	case a == "collect":
		return "collectors do not know each other"
	}
	return ""
}

// TestLayers holds every import, those of tests too, against the house.
func TestLayers(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			to, ours := strings.CutPrefix(path, module+"/")
			if !ours {
				continue
			}
			seen++
			if why := forbidden(s.dir, to); why != "" {
				t.Errorf("%s imports %s: %s", s.at(spec), to, why)
			}
		}
	}
	if seen == 0 {
		t.Error("no import of the module's own packages found")
	}
}

// TestForbidden shows that the rule itself bites.
func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"cmd/tierscope", "experiment", true},
		{"cmd/tierscope", "run", true},
		{"bench/trace", "analyze", true},
		{"analyze", "trace", true},
		{"collect/tensorgraph", "engine/llamacpp", true},
		{"collect/tensorgraph", "collect", true},
		{"collect/mrm", "collect/tensorgraph", false},
		{"engine/llamacpp", "engine/fetch", true},
		{"engine/llamacpp", "collect/tensorgraph", false},
		{"trace", "analyze", false},
		{"region", "engine/gguf", false},
		{"report", "experiment", false},
		{"run", "observe", false},
		{"internal/ggml", "internal/ring", true},
		{"internal/ggml", "run", false},
		{"run", "internal/vfs", true},
		{"experiment", "cmd/tierscope", false},
		{"util", "run", false},
		{"run", "pkg/x", false},
	} {
		if why := forbidden(c.from, c.to); (why == "") != c.ok {
			t.Errorf("forbidden(%s, %s) = %q", c.from, c.to, why)
		}
	}
}

// TestRooms checks that every package stands in a room and is called by a noun of
// the field.
func TestRooms(t *testing.T) {
	names := []string{"util", "utils", "pkg", "common", "helpers", "misc", "shared"}
	for _, s := range sources(t) {
		if _, row := roomOf(s.dir); row < 0 {
			t.Errorf("%s: %s is no room of the house", s.path, s.dir)
		}
		for _, part := range strings.Split(s.dir, "/") {
			if slices.Contains(names, part) {
				t.Errorf("%s: no package is called %s", s.path, part)
			}
		}
	}
}

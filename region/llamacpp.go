package region

import (
	"io"
	"path"
	"strings"

	"github.com/tierscope/tierscope/observe"
)

// MinKVBytes is the size from which mrm-trace takes a new anonymous mapping
// for the KV cache.
const MinKVBytes = 2 << 20

// Guess is a range that [GuessLlamaCpp] found, with the reason for it.
type Guess struct {
	Range
	Source string // mmap_gguf, anon_post_load
}

// compatMapping is a line of maps as mrm-trace splits it: at blanks, with the
// sixth word as path.
type compatMapping struct {
	start, end  uint64
	perms, path string
}

func readCompatMaps(r io.Reader) (out []compatMapping, err error) {
	err = eachLine(r, func(line string) {
		words := strings.Fields(line)
		if len(words) == 0 {
			return
		}
		start, end, ok := parseSpan(words[0])
		if !ok {
			return
		}
		m := compatMapping{start: start, end: end}
		if len(words) > 1 {
			m.perms = words[1]
		}
		if len(words) > 5 {
			m.path = words[5]
		}
		out = append(out, m)
	})
	return out, err
}

// GuessLlamaCpp finds ranges as mrm-trace does: it compares the text of
// /proc/PID/maps before and after a model is loaded. A mapping whose path ends
// with the model's file name is weight; a new private writable mapping without
// path of minKV bytes or more is kv_cache. That takes compute buffers for KV,
// a mapping that grew for new, not-tiny.gguf for tiny.gguf, and does not see
// paths with blanks: it is here for comparison, live runs ask the engine.
func GuessLlamaCpp(before, after io.Reader, model string, minKV uint64) ([]Guess, error) {
	was, err := readCompatMaps(before)
	if err != nil {
		return nil, err
	}
	is, err := readCompatMaps(after)
	if err != nil {
		return nil, err
	}
	known := make(map[[2]uint64]bool, len(was))
	for _, m := range was {
		known[[2]uint64{m.start, m.end}] = true
	}
	name := path.Base(model)
	if model == "" || name == "/" || name == "." {
		name = ""
	}
	out := []Guess{}
	for _, m := range is {
		switch {
		case name != "" && strings.HasSuffix(m.path, name):
			out = append(out, Guess{Range{m.start, m.end, TypeOf(observe.ClassWeight)}, "mmap_gguf"})
		case !known[[2]uint64{m.start, m.end}] && strings.HasPrefix(m.perms, "rw") && m.path == "" &&
			m.end >= m.start && m.end-m.start >= minKV:
			out = append(out, Guess{Range{m.start, m.end, TypeOf(observe.ClassKVCache)}, "anon_post_load"})
		}
	}
	return out, nil
}

package experiment

import (
	"reflect"
	"strings"
	"sync"
)

// nearest returns the word that s is most likely a slip for, or "".
func nearest(s string, words []string) string {
	best, limit := "", max(1, len(s)/3)+1
	begins := 0
	for _, w := range words {
		if len(s) > 1 && strings.HasPrefix(w, s) {
			best = w
			begins++
		}
	}
	if begins == 1 {
		return best
	}
	best = ""
	for _, w := range words {
		if d := distance(strings.ToLower(s), strings.ToLower(w)); d < limit {
			best, limit = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, changes and swaps of neighbours
// that make b of a (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// keysOf are the keys of a section, in order.
func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i] = keyOf(t.Field(i))
	}
	return keys
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// allKeys are the keys of all sections, and the dotted paths of each. A list
// element's place is left out: models.path.
var allKeys = sync.OnceValues(func() (keys []string, paths map[string][]string) {
	paths = map[string][]string{}
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for f := range fields(t) {
			key, p := keyOf(f), join(path, keyOf(f))
			keys = append(keys, key)
			paths[key] = append(paths[key], p)
			walk(f.Type, p)
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return keys, paths
})

// elsewhere returns the dotted path of the key that name is most likely a slip
// for, wherever in a config it is, or "" if none or several are.
func elsewhere(name string) string {
	keys, paths := allKeys()
	if found := paths[nearest(name, keys)]; len(found) == 1 {
		return found[0]
	}
	return ""
}

// suggestion ends the message about a key that section t does not know.
func suggestion(key string, t reflect.Type) string {
	keys := keysOf(t)
	if w := nearest(key, keys); w != "" {
		return "; did you mean " + w + "?"
	}
	if p := elsewhere(key); p != "" {
		return "; did you mean " + p + "?"
	}
	return "; known here: " + strings.Join(keys, ", ")
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

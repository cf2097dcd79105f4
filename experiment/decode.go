package experiment

import (
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
)

// decoder fills a config from nodes and collects all problems on the way.
type decoder struct {
	mode     Mode
	errors   []Problem
	warnings []Problem
	more     int // errors beyond maxProblems
}

// maxProblems bounds what is said of one file, which may be no experiment at all.
const maxProblems = 200

// rule is what the tags of a field say about its values.
type rule struct {
	required bool
	unused   bool // has no effect yet
	strict   bool // ours, unknown in Compat
	original bool // its limits are mrm-trace's too
	name     bool // a name that can be part of a path
	distinct bool // no value twice
	nullable bool

	min, max                       *int64
	minItems, minLength, maxLength int
}

func ruleOf(f reflect.StructField) rule {
	var r rule
	flags := map[string]*bool{"required": &r.required, "unused": &r.unused, "strict": &r.strict,
		"original": &r.original, "name": &r.name, "distinct": &r.distinct}
	for _, w := range strings.Split(f.Tag.Get("cfg"), ",") {
		if w != "" {
			*flags[w] = true
		}
	}
	for _, w := range strings.Split(f.Tag.Get("jsonschema"), ",") {
		name, value, _ := strings.Cut(w, "=")
		number, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "nullable":
			r.nullable = true
		case "minimum":
			r.min = &number
		case "maximum":
			r.max = &number
		case "minItems":
			r.minItems = int(number)
		case "minLength":
			r.minLength = int(number)
		case "maxLength":
			r.maxLength = int(number)
		}
	}
	return r
}

// fields are the fields of a struct, in order.
func fields(t reflect.Type) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func (d *decoder) fail(n *node, path, kind, format string, args ...any) {
	if len(d.errors) >= maxProblems {
		d.more++
		return
	}
	d.errors = append(d.errors, problemAt(n, path, kind, format, args...))
}

func (d *decoder) warn(n *node, path, kind, format string, args ...any) {
	d.warnings = append(d.warnings, problemAt(n, path, kind, format, args...))
}

func problemAt(n *node, path, kind, format string, args ...any) Problem {
	return Problem{Path: path, Kind: kind, Message: fmt.Sprintf(format, args...), Line: n.line, Column: n.col}
}

// value decodes n into v.
func (d *decoder) value(n *node, path string, v reflect.Value, r rule) {
	if v.Kind() == reflect.Pointer {
		if n.kind == nullKind && r.nullable {
			v.SetZero()
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			preset(v)
		}
		d.value(n, path, v.Elem(), r)
		return
	}
	if c, ok := v.Interface().(choice); ok {
		d.choice(n, path, v, c.values(d.mode))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.section(n, path, v, r)
	case reflect.Slice:
		d.slice(n, path, v, r)
	case reflect.String:
		d.text(n, path, v, r)
	case reflect.Bool:
		d.boolean(n, path, v)
	case reflect.Float64:
		d.float(n, path, v, r)
	default:
		d.integer(n, path, v, r)
	}
}

// preset gives the new value behind v the defaults of its type.
func preset(v reflect.Value) {
	if p, ok := v.Interface().(interface{ preset() }); ok {
		p.preset()
	}
}

// checker is a section with rules across its keys.
type checker interface {
	check(d *decoder, n *node, path string)
}

func (d *decoder) section(n *node, path string, v reflect.Value, r rule) {
	if n.kind != mapKind {
		d.fail(n, path, "model_type", "%s where a mapping belongs", n.kind)
		return
	}
	if d.mode == Strict {
		d.keys(n, path, v.Type())
	}
	before := len(d.errors)
	i := -1
	for f := range fields(v.Type()) {
		i++
		fr := ruleOf(f)
		if fr.strict && d.mode == Compat {
			continue
		}
		fr.unused = fr.unused || r.unused
		key := keyOf(f)
		p := join(path, key)
		child := n.get(key)
		if child == nil {
			if fr.required {
				d.fail(n, p, "missing", "%s is required", key)
			}
			continue
		}
		d.value(child, p, v.Field(i), fr)
		if fr.original && d.mode == Compat {
			d.originalLimits(child, p, v.Field(i), fr)
		}
		if fr.unused && f.Type.Kind() != reflect.Struct && d.mode == Strict {
			d.warn(child, p, "no_effect", "%s is read but has no effect yet", key)
		}
	}
	if len(d.errors) == before {
		if c, ok := v.Addr().Interface().(checker); ok {
			c.check(d, n, path)
		}
	}
}

// originalLimits reports a value outside mrm-trace's own limits, in its way: a
// list as a whole.
func (d *decoder) originalLimits(n *node, path string, v reflect.Value, r rule) {
	for _, e := range d.errors {
		if e.Path == path || strings.HasPrefix(e.Path, path+".") {
			return
		}
	}
	if v.Kind() == reflect.Int {
		if v.Int() < *r.min {
			d.fail(n, path, "value_error", "must be at least %d", *r.min)
		}
		return
	}
	if v.Len() < r.minItems {
		d.fail(n, path, "value_error", "must have at least %s", count(r.minItems, "value"))
		return
	}
	for i := range v.Len() {
		if r.min != nil && v.Index(i).Int() < *r.min {
			d.fail(n, path, "value_error", "all values must be at least %d", *r.min)
			return
		}
	}
}

// keys reports the keys of n that section t does not know, and repeated ones.
func (d *decoder) keys(n *node, path string, t reflect.Type) {
	known := map[string]bool{}
	for _, k := range keysOf(t) {
		known[k] = true
	}
	first := map[string]*node{}
	for _, e := range n.entries {
		key := e.key.text
		p := join(path, key)
		switch {
		case (e.key.kind != stringKind || !known[key]) && len(d.errors) >= maxProblems:
			d.more++
		case e.key.kind != stringKind || !known[key]:
			d.fail(e.key, p, "unknown_key", "unknown key%s", suggestion(key, t))
		case first[key] != nil && !e.merged:
			d.fail(e.key, p, "repeated_key", "key is there already, in line %d", first[key].line)
		default:
			first[key] = e.key
		}
	}
}

func (d *decoder) slice(n *node, path string, v reflect.Value, r rule) {
	if n.kind != listKind {
		d.fail(n, path, "list_type", "%s where a list belongs", n.kind)
		return
	}
	before := len(d.errors)
	s := reflect.MakeSlice(v.Type(), len(n.list), len(n.list))
	one := r
	one.nullable = false
	if d.mode == Compat {
		one.min, one.max = nil, nil
	}
	for i, e := range n.list {
		preset(s.Index(i).Addr())
		d.value(e, join(path, strconv.Itoa(i)), s.Index(i), one)
	}
	if d.mode == Strict && len(n.list) < r.minItems {
		d.fail(n, path, "too_short", "must have at least %s", count(r.minItems, "value"))
	}
	if len(d.errors) > before {
		return
	}
	v.Set(s)
	if d.mode == Strict && r.distinct {
		seen := map[any]bool{}
		for i := range s.Len() {
			x := s.Index(i).Interface()
			if seen[x] {
				d.fail(n.list[i], join(path, strconv.Itoa(i)), "repeated_value", "%v is in the list already", x)
			}
			seen[x] = true
		}
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

package experiment

import (
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (d *decoder) choice(n *node, path string, v reflect.Value, values []string) {
	text, what := n.text, strconv.Quote(n.text)
	switch {
	case n.kind == boolKind && d.mode == Strict:
		// On and off are booleans in YAML, and words of a switch here.
		text = map[bool]string{true: "on", false: "off"}[n.b]
		what = n.text
	case n.kind != stringKind:
		text, what = "", n.kind.String()
	}
	if slices.Contains(values, text) {
		v.SetString(text)
		return
	}
	hint := ""
	if w := nearest(text, values); n.kind == stringKind && w != "" {
		hint = "; did you mean " + w + "?"
	}
	d.fail(n, path, "enum", "%s is none of %s%s", what, strings.Join(values, ", "), hint)
}

func (d *decoder) text(n *node, path string, v reflect.Value, r rule) {
	if n.kind != stringKind {
		hint := ""
		if n.kind != listKind && n.kind != mapKind && n.kind != nullKind {
			hint = ": quote it"
		}
		d.fail(n, path, "string_type", "%s where a string belongs%s", n.kind, hint)
		return
	}
	if d.mode == Strict {
		switch c := utf8.RuneCountInString(n.text); {
		case c < r.minLength:
			d.fail(n, path, "too_short", "must not be empty")
			return
		case r.maxLength > 0 && c > r.maxLength:
			d.fail(n, path, "too_long", "%d characters, more than %d", c, r.maxLength)
			return
		}
		if why := badName(n.text); r.name && why != "" {
			d.fail(n, path, "bad_name", "%q %s", n.text, why)
			return
		}
	}
	v.SetString(n.text)
}

// badName says why s cannot be the name of a directory and the start of file
// names, or "".
func badName(s string) string {
	switch {
	case s == "." || s == "..":
		return "is a directory of its own; use a plain name"
	case strings.ContainsAny(s, `/\`):
		return "has a slash; use a plain name, results go under output.base_dir"
	case strings.TrimSpace(s) != s:
		return "begins or ends with a blank"
	case strings.HasPrefix(s, "-"):
		return "begins with -, which commands take for an option"
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return "has a character that cannot be printed"
		}
	}
	return ""
}

func (d *decoder) boolean(n *node, path string, v reflect.Value) {
	b, kind := false, ""
	switch n.kind {
	case boolKind:
		b = n.b
	case intKind:
		b = n.i.Sign() != 0
		if !n.i.IsInt64() {
			kind = "bool_type"
		} else if x := n.i.Int64(); x != 0 && x != 1 {
			kind = "bool_parsing"
		}
	case floatKind:
		b = n.f == 1
		if n.f != math.Trunc(n.f) || math.IsInf(n.f, 0) {
			kind = "bool_type"
		} else if n.f != 0 && n.f != 1 {
			kind = "bool_parsing"
		}
	case stringKind:
		switch strings.ToLower(n.text) {
		case "1", "on", "t", "true", "y", "yes":
			b = true
		case "0", "off", "f", "false", "n", "no":
		default:
			kind = "bool_parsing"
		}
	default:
		kind = "bool_type"
	}
	if kind != "" {
		d.fail(n, path, kind, "%s where true or false belongs", n.shown())
		return
	}
	v.SetBool(b)
}

// shown is the value as a message names it.
func (n *node) shown() string {
	switch n.kind {
	case stringKind:
		return strconv.Quote(n.text)
	case intKind, floatKind:
		return n.text
	}
	return n.kind.String()
}

// A string that stands for an integer, as pydantic takes it: single
// underscores between digits, and zeros after the point.
var integerText = regexp.MustCompile(`^([-+]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?$`)

// floatText is a string that stands for a number.
var floatText = regexp.MustCompile(`(?i)^[-+]?(?:inf|infinity|nan|(?:[0-9]+(?:_[0-9]+)*\.?(?:[0-9]+(?:_[0-9]+)*)?|\.[0-9]+(?:_[0-9]+)*)(?:e[-+]?[0-9]+)?)$`)

func (d *decoder) integer(n *node, path string, v reflect.Value, r rule) {
	i, kind := n.integer()
	if kind == "" && !i.IsInt64() {
		kind = "int_parsing_size"
	}
	switch kind {
	case "":
	case "int_from_float":
		d.fail(n, path, kind, "%s where an integer belongs: it has a fraction", n.text)
		return
	case "int_parsing_size":
		d.fail(n, path, kind, "%s is too large", n.shown())
		return
	default:
		d.fail(n, path, kind, "%s where an integer belongs", n.shown())
		return
	}
	x := i.Int64()
	if !d.inRange(n, path, float64(x), r) {
		return
	}
	if v.CanUint() {
		if x < 0 || v.OverflowUint(uint64(x)) {
			d.fail(n, path, "out_of_range", "%d does not fit", x)
			return
		}
		v.SetUint(uint64(x))
		return
	}
	v.SetInt(x)
}

// inRange reports a value outside the limits of r; mrm-trace has none.
func (d *decoder) inRange(n *node, path string, x float64, r rule) bool {
	if d.mode == Compat {
		return true
	}
	switch {
	case r.min != nil && x < float64(*r.min):
		d.fail(n, path, "out_of_range", "%s is too small: at least %d", n.text, *r.min)
	case r.max != nil && x > float64(*r.max):
		d.fail(n, path, "out_of_range", "%s is too large: at most %d", n.text, *r.max)
	default:
		return true
	}
	return false
}

// integer coerces n, or returns the kind of problem that this is.
func (n *node) integer() (*big.Int, string) {
	switch n.kind {
	case intKind:
		return n.i, ""
	case boolKind:
		if n.b {
			return big.NewInt(1), ""
		}
		return big.NewInt(0), ""
	case floatKind:
		switch {
		case math.IsInf(n.f, 0) || math.IsNaN(n.f):
			return nil, "finite_number"
		case n.f != math.Trunc(n.f):
			return nil, "int_from_float"
		}
		i, _ := big.NewFloat(n.f).Int(nil)
		return i, ""
	case stringKind:
		m := integerText.FindStringSubmatch(strings.TrimSpace(n.text))
		if m == nil {
			return nil, "int_parsing"
		}
		if len(m[1]) > 4300 {
			return nil, "int_parsing_size"
		}
		i, ok := new(big.Int).SetString(strings.TrimPrefix(strings.ReplaceAll(m[1], "_", ""), "+"), 10)
		if !ok {
			return nil, "int_parsing"
		}
		return i, ""
	}
	return nil, "int_type"
}

func (d *decoder) float(n *node, path string, v reflect.Value, r rule) {
	f, kind := n.number()
	if kind != "" {
		d.fail(n, path, kind, "%s where a number belongs", n.shown())
		return
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.fail(n, path, "finite_number", "%s is not finite", n.text)
		return
	}
	if d.inRange(n, path, f, r) {
		v.SetFloat(f)
	}
}

func (n *node) number() (float64, string) {
	switch n.kind {
	case floatKind:
		return n.f, ""
	case intKind:
		f, _ := new(big.Float).SetInt(n.i).Float64()
		return f, ""
	case boolKind:
		if n.b {
			return 1, ""
		}
		return 0, ""
	case stringKind:
		s := strings.TrimSpace(n.text)
		if !floatText.MatchString(s) {
			return 0, "float_parsing"
		}
		f, _ := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
		return f, ""
	}
	return 0, "float_type"
}

package experiment

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// The plain scalars of YAML 1.1 as PyYAML knows them, which is what users of
// mrm-trace have written their files for.
var (
	boolWords = map[string]bool{
		"yes": true, "Yes": true, "YES": true, "true": true, "True": true, "TRUE": true, "on": true, "On": true, "ON": true,
		"no": false, "No": false, "NO": false, "false": false, "False": false, "FALSE": false, "off": false, "Off": false, "OFF": false,
	}
	nullWords = map[string]bool{"": true, "~": true, "null": true, "Null": true, "NULL": true}

	intForm   = regexp.MustCompile(`^[-+]?(?:0b[01_]+|0[0-7_]+|(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	floatForm = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	timeForm  = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?$`)
	dayForm   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
)

// resolve gives the plain scalar t its type.
func resolve(t *token.Token) (*node, error) {
	n := at(t, stringKind)
	n.text = t.Value
	if n.text == "" {
		return n, n.setKind(nullKind, t)
	}
	switch c := n.text[0]; {
	case n.text == "=" || n.text == "<<":
		return nil, syntaxAt(t, "%q has a meaning of its own in YAML; quote it", n.text)
	case nullWords[n.text]:
		return n, n.setKind(nullKind, t)
	case isBool(n.text):
		return n, n.setKind(boolKind, t)
	case c != '-' && c != '+' && c != '.' && (c < '0' || c > '9'):
	case intForm.MatchString(n.text):
		return n, n.setKind(intKind, t)
	case floatForm.MatchString(n.text):
		return n, n.setKind(floatKind, t)
	case dayForm.MatchString(n.text) || len(n.text) > 10 && timeForm.MatchString(n.text):
		return n, n.setKind(timeKind, t)
	}
	return n, nil
}

func isBool(s string) bool { _, ok := boolWords[s]; return ok }

// setKind reads the text of a scalar as a value of kind k.
func (n *node) setKind(k kind, t *token.Token) error {
	ok := true
	switch k {
	case boolKind:
		n.b, ok = boolWords[n.text]
		if !ok {
			n.b, ok = boolWords[strings.ToLower(n.text)]
		}
	case intKind:
		n.i, ok = parseInt(n.text)
	case floatKind:
		n.f, ok = parseFloat(n.text)
	case timeKind:
		_, err := time.Parse("2006-1-2", n.text[:len(datePart(n.text))])
		ok = err == nil
	}
	if !ok {
		return syntaxAt(t, "%q is not %s", n.text, k)
	}
	n.kind = k
	return nil
}

// datePart is the part of a time stamp before its clock.
func datePart(s string) string {
	if i := strings.IndexAny(s, "Tt \t"); i >= 0 {
		return s[:i]
	}
	return s
}

func parseInt(s string) (*big.Int, bool) {
	s = strings.ReplaceAll(s, "_", "")
	sign, digits := "", s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, digits = s[:1], s[1:]
	}
	i := new(big.Int)
	var ok bool
	switch {
	case len(digits) > 4300:
		return nil, false
	case strings.HasPrefix(digits, "0b"):
		_, ok = i.SetString(digits[2:], 2)
	case strings.HasPrefix(digits, "0x"):
		_, ok = i.SetString(digits[2:], 16)
	case strings.Contains(digits, ":"):
		ok = true
		for _, part := range strings.Split(digits, ":") {
			d, good := new(big.Int).SetString(part, 10)
			if !good {
				return nil, false
			}
			i.Add(i.Mul(i, big.NewInt(60)), d)
		}
	case len(digits) > 1 && digits[0] == '0':
		_, ok = i.SetString(digits[1:], 8)
	default:
		_, ok = i.SetString(digits, 10)
	}
	if ok && sign == "-" {
		i.Neg(i)
	}
	return i, ok
}

func parseFloat(s string) (float64, bool) {
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	sign := 1.0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	if s == ".inf" {
		return math.Inf(int(sign)), true
	}
	if s == ".nan" {
		return math.NaN(), true
	}
	f := 0.0
	for _, part := range strings.Split(s, ":") {
		d, err := strconv.ParseFloat(part, 64)
		if err != nil && !math.IsInf(d, 0) || strings.ContainsAny(part, "xpin") {
			return 0, false
		}
		f = f*60 + d
	}
	return sign * f, true
}

// tag applies an explicit tag of YAML's own; any other names a type that a
// config cannot hold.
func (b *builder) tag(a *ast.TagNode) (*node, error) {
	n, err := b.build(a.Value)
	if err != nil {
		return nil, err
	}
	kinds := map[string]kind{"!!null": nullKind, "!!bool": boolKind, "!!int": intKind, "!!float": floatKind,
		"!!str": stringKind, "!!seq": listKind, "!!map": mapKind}
	name := a.Start.Value
	k, known := kinds[name]
	scalar := n.kind != listKind && n.kind != mapKind
	switch {
	case name == "!":
		return n, nil
	case !known:
		return nil, syntaxAt(a.Start, "tag %s is not known here", name)
	case k == n.kind:
		return n, nil
	case !scalar || k == listKind || k == mapKind:
		return nil, syntaxAt(a.Start, "tag %s does not fit %s", name, n.kind)
	}
	c := *n
	return &c, c.setKind(k, a.Start)
}

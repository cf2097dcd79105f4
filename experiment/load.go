package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/tierscope/tierscope/run"
)

// maxFile is the largest experiment file in bytes.
const maxFile = 4 << 20

// Load reads the experiment file at path and returns it with all defaults and
// the warnings about it. What is wrong with the file is an [*Error], which
// lists everything, of class [run.Misuse] in [Strict] and [run.Invalid] in
// [Compat]; a file that exists but cannot be read is of class [run.IO] ([run.Invalid] in [Compat]).
func Load(path string, m Mode) (*Config, []Problem, error) {
	data, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, m.refuse(&Error{File: path, compat: "Config file not found: " + path,
			Problems: []Problem{{Kind: "no_file", Message: "no such file; give the path of an experiment file"}}})
	}
	if err != nil {
		class := run.IO
		if m == Compat {
			class = run.Invalid
		}
		return nil, nil, run.Errorf(class, "config cannot be read: %w", err)
	}
	return Parse(path, data, m)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// refuse gives e the class of a bad config.
func (m Mode) refuse(e *Error) error {
	if m == Compat {
		return run.Errorf(run.Invalid, "%w", e)
	}
	return run.Errorf(run.Misuse, "%w", e)
}

// Parse reads an experiment file that lies in data; name stands for it in
// errors, which are those of [Load].
func Parse(name string, data []byte, m Mode) (*Config, []Problem, error) {
	root, e := document(name, data)
	if e != nil {
		return nil, nil, m.refuse(e)
	}
	c := Default(m)
	d := decoder{mode: m}
	if root.kind != mapKind {
		d.fail(root, "", "model_type", "%s where the sections of an experiment belong", root.kind)
	} else {
		d.section(root, "", reflect.ValueOf(c).Elem(), rule{})
	}
	if m == Strict {
		inOrder(d.errors)
		inOrder(d.warnings)
	}
	if d.more > 0 {
		d.errors = append(d.errors, Problem{Kind: "more", Message: fmt.Sprintf("and %d more; only the first %d are listed", d.more, maxProblems)})
	}
	if len(d.errors) > 0 {
		return nil, d.warnings, m.refuse(&Error{File: name, Problems: d.errors})
	}
	return c, d.warnings, nil
}

// inOrder sorts problems as they come in the file.
func inOrder(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// document parses data as far as YAML goes.
func document(name string, data []byte) (*node, *Error) {
	one := func(kind, compat string, p Problem) *Error {
		p.Kind = kind
		return &Error{File: name, Problems: []Problem{p}, compat: compat}
	}
	if len(data) > maxFile {
		text := fmt.Sprintf("larger than %d MiB; is it an experiment file?", maxFile>>20)
		return nil, one("too_large", "Config file is "+text, Problem{Message: text})
	}
	if at := invalidUTF8(data); at >= 0 {
		text := fmt.Sprintf("byte %d is not UTF-8; save the file as UTF-8", at)
		return nil, one("not_utf8", "Config file is not UTF-8: "+text, Problem{Message: text})
	}
	n, err := parse(data)
	if err != nil {
		s := new(syntaxError)
		errors.As(err, &s)
		p := Problem{Message: "not parseable as YAML: " + s.message, Line: s.line, Column: s.col}
		if s.open != nil {
			p.Line, p.Column = s.open.Position.Line, s.open.Position.Column
		}
		return nil, one("yaml", "Failed to parse YAML: "+s.compatText(name), p)
	}
	if n.kind == nullKind {
		return nil, one("empty", "Config file is empty", Problem{Message: "file is empty; an experiment needs at least experiment and models"})
	}
	return n, nil
}

// compatText is the error in the form of PyYAML's, which mrm-trace shows.
func (e *syntaxError) compatText(file string) string {
	place := func(line, col int) string { return fmt.Sprintf("\n  in %q, line %d, column %d", file, line, col) }
	if e.open == nil {
		return e.message + place(max(e.line, 1), max(e.col, 1))
	}
	what, end := "sequence", "]"
	if e.open.Value == "{" {
		what, end = "mapping", "}"
	}
	return "while parsing a flow " + what + place(e.open.Position.Line, e.open.Position.Column) +
		"\nexpected ',' or '" + end + "', but got '<stream end>'" + place(e.line, e.col)
}

// invalidUTF8 returns the place of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

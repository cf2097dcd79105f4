package experiment

import (
	"fmt"
	"strings"
)

// Mode says how an experiment file is read.
type Mode int

// The modes.
const (
	// Strict refuses unknown and repeated keys and values out of range.
	Strict Mode = iota
	// Compat reads as mrm-trace 0.1.23 does, and is silent where it is.
	Compat
)

// Problem is something wrong in an experiment file, or worth a warning.
type Problem struct {
	Path    string `json:"path"` // dotted, such as models.0.engine; empty: the whole file
	Kind    string `json:"kind"` // such as missing, int_parsing, unknown_key, out_of_range
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: none
	Column  int    `json:"column,omitempty"` // in characters, from 1
}

// In returns the problem on one line, with its place in file.
func (p Problem) In(file string) string {
	var b strings.Builder
	b.WriteString(file)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error is what is wrong with an experiment file: one problem or more.
type Error struct {
	File     string
	Problems []Problem
	compat   string // mrm-trace's words, where they are its own
}

// Error lists the problems on a line each.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.In(e.File)
	}
	return strings.Join(lines, "\n")
}

// compatText is the error as mrm-trace words it.
func (e *Error) compatText() string {
	if e.compat != "" {
		return e.compat
	}
	var b strings.Builder
	b.WriteString("Invalid experiment config:")
	for _, p := range e.Problems {
		path := p.Path
		if path == "" {
			path = "(file)"
		}
		fmt.Fprintf(&b, "\n%s: %s [%s]", path, p.Message, p.Kind)
	}
	return b.String()
}

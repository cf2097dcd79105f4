package experiment

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth bounds how deeply lists and mappings nest: the parser recurses, and
// a stack that overflows cannot be caught.
const maxDepth = 100

// maxKeys bounds the keys outside of brackets: the parser recurses for each key
// of a mapping too, and takes time quadratic in them.
const maxKeys = 5_000

// parse returns the one document of data. Errors are of type *syntaxError.
func parse(data []byte) (n *node, err error) {
	// The YAML library indexes past its tokens on some malformed inputs.
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, &syntaxError{message: "the structure cannot be made out"}
		}
	}()
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkCharacters(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(text)
	open, err := checkNesting(tokens)
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if open != nil {
		line, col := endOf(text)
		return nil, &syntaxError{"bracket " + open.Value + " is not closed", line, col, open}
	}
	if err != nil {
		return nil, syntaxOf(err)
	}
	body, err := oneDocument(file)
	if err != nil {
		return nil, err
	}
	b := builder{anchors: map[string]*node{}}
	return b.build(body)
}

// checkCharacters refuses the characters that YAML does not allow.
func checkCharacters(s string) error {
	line, col := 1, 0
	for i, r := range s {
		col++
		if r == '\n' {
			line, col = line+1, 0
			continue
		}
		bad := r < ' ' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(s[i:])
			bad = size == 1
		}
		if bad {
			return &syntaxError{message: fmt.Sprintf("character U+%04X is not allowed", r), line: line, col: col}
		}
	}
	return nil
}

// checkNesting bounds the depth and the keys, and returns the innermost bracket that is not closed.
func checkNesting(tokens token.Tokens) (*token.Token, error) {
	var open []*token.Token
	keys := 0
	chain, line := 0, 0 // markers behind each other, each of which nests the next
	for i, t := range tokens {
		here := 0
		if t.Position != nil {
			here = t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			open = append(open, t)
		case token.MappingEndType, token.SequenceEndType:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
			chain = 0
		case token.TagType, token.AnchorType:
			chain++
		case token.SequenceEntryType, token.MappingKeyType:
			if chain++; here != line {
				chain = 1
			}
		default:
			if i == 0 || tokens[i-1].Type != token.AnchorType {
				chain = 0
			}
		}
		line = here
		if t.Type == token.MappingValueType && len(open) == 0 {
			keys++
		}
		if keys > maxKeys {
			return nil, syntaxAt(t, "more than %d keys; is it an experiment file?", maxKeys)
		}
		if len(open) > maxDepth || chain > maxDepth {
			return nil, syntaxAt(t, "lists and mappings nest deeper than %d", maxDepth)
		}
	}
	if len(open) == 0 || tokens.InvalidToken() != nil {
		return nil, nil
	}
	return open[len(open)-1], nil
}

// endOf is the place behind the last character.
func endOf(s string) (line, col int) {
	last := strings.LastIndexByte(s, '\n') + 1
	return strings.Count(s, "\n") + 1, utf8.RuneCountInString(s[last:]) + 1
}

func syntaxOf(err error) error {
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		return syntaxAt(s.Token, "%s", s.Message)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &syntaxError{message: first}
}

// oneDocument returns the body of the only document; nil for none.
func oneDocument(f *ast.File) (ast.Node, error) {
	var body ast.Node
	seen := false
	for _, d := range f.Docs {
		if _, directive := d.Body.(*ast.DirectiveNode); directive || d.Body == nil && d.Start == nil {
			continue
		}
		if seen {
			return nil, syntaxAt(d.Start, "a second document begins; one experiment is one document")
		}
		body, seen = d.Body, true
	}
	return body, nil
}

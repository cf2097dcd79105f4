package experiment

import (
	"fmt"
	"math/big"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// kind is the type that YAML 1.1 gives to a value.
type kind int

const (
	nullKind kind = iota
	boolKind
	intKind
	floatKind
	stringKind
	timeKind
	listKind
	mapKind
)

var kindNames = [...]string{"null", "a boolean", "an integer", "a number", "a string", "a date", "a list", "a mapping"}

func (k kind) String() string { return kindNames[k] }

// node is a value of the file with its place. Aliases are shared pointers.
type node struct {
	kind      kind
	line, col int
	text      string // a scalar as written, quotes and escapes undone
	b         bool
	i         *big.Int
	f         float64
	list      []*node
	entries   []entry
}

// entry is a key of a mapping with its value.
type entry struct {
	key, value *node
	merged     bool // came in by a merge key
}

// get returns the value of the key called name, or nil. The last one counts.
func (n *node) get(name string) *node {
	for i := len(n.entries) - 1; i >= 0; i-- {
		if e := n.entries[i]; e.key.kind == stringKind && e.key.text == name {
			return e.value
		}
	}
	return nil
}

// syntaxError is a place at which a file is not YAML.
type syntaxError struct {
	message   string
	line, col int
	open      *token.Token // the bracket that is not closed, if that is why
}

func (e *syntaxError) Error() string { return e.message }

func syntaxAt(t *token.Token, format string, args ...any) error {
	e := &syntaxError{message: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.line, e.col = t.Position.Line, t.Position.Column
	}
	return e
}

// builder turns a syntax tree into nodes.
type builder struct {
	anchors map[string]*node // nil: being built
}

func (b *builder) build(a ast.Node) (*node, error) {
	switch a := a.(type) {
	case nil:
		return &node{}, nil
	case *ast.MappingNode:
		return b.mapping(a)
	case *ast.MappingValueNode:
		n := at(a.Key.GetToken(), mapKind)
		return n, b.pair(n, a, nil)
	case *ast.SequenceNode:
		n := at(a.Start, listKind)
		n.list = make([]*node, 0, len(a.Values))
		for _, v := range a.Values {
			e, err := b.build(v)
			if err != nil {
				return nil, err
			}
			n.list = append(n.list, e)
		}
		return n, nil
	case *ast.AnchorNode:
		return b.anchor(a)
	case *ast.AliasNode:
		return b.alias(a)
	case *ast.TagNode:
		return b.tag(a)
	case *ast.MappingKeyNode:
		return b.build(a.Value)
	case *ast.LiteralNode:
		n := at(a.Start, stringKind)
		n.text = a.Value.Value
		return n, nil
	case ast.ScalarNode:
		t := a.GetToken()
		if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
			n := at(t, stringKind)
			n.text = t.Value
			return n, nil
		}
		if t.Type == token.ImplicitNullType {
			return at(t, nullKind), nil
		}
		return resolve(t)
	}
	return nil, syntaxAt(a.GetToken(), "a %s is not expected here", a.Type())
}

func at(t *token.Token, k kind) *node {
	n := &node{kind: k}
	if t != nil && t.Position != nil {
		n.line, n.col = t.Position.Line, t.Position.Column
	}
	return n
}

func (b *builder) mapping(a *ast.MappingNode) (*node, error) {
	t := a.Start
	if !a.IsFlowStyle && len(a.Values) > 0 {
		t = a.Values[0].Key.GetToken()
	}
	n := at(t, mapKind)
	own := map[string]bool{}
	var merges []*ast.MappingValueNode
	for _, v := range a.Values {
		if v.Key.IsMergeKey() {
			merges = append(merges, v)
			continue
		}
		if err := b.pair(n, v, own); err != nil {
			return nil, err
		}
	}
	for _, v := range merges {
		if err := b.pair(n, v, own); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// pair adds a key and its value to n, or what a merge key brings in. Keys in
// own are there already, so a merge does not bring them again.
func (b *builder) pair(n *node, a *ast.MappingValueNode, own map[string]bool) error {
	v, err := b.build(a.Value)
	if err != nil {
		return err
	}
	if a.Key.IsMergeKey() {
		return b.merge(n, a, v, own)
	}
	k, err := b.build(a.Key)
	if err != nil {
		return err
	}
	if own != nil && k.kind == stringKind {
		own[k.text] = true
	}
	n.entries = append(n.entries, entry{key: k, value: v})
	return nil
}

func (b *builder) merge(n *node, a *ast.MappingValueNode, v *node, own map[string]bool) error {
	sources := []*node{v}
	if v.kind == listKind {
		sources = v.list
	}
	for _, s := range sources {
		if s.kind != mapKind {
			return syntaxAt(a.Key.GetToken(), "a merge key takes a mapping or a list of mappings, not %s", s.kind)
		}
		for i := range s.entries {
			e := s.entries[len(s.entries)-1-i]
			if e.key.kind != stringKind || own[e.key.text] {
				continue
			}
			if own != nil {
				own[e.key.text] = true
			}
			e.merged = true
			n.entries = append(n.entries, e)
		}
	}
	return nil
}

func (b *builder) anchor(a *ast.AnchorNode) (*node, error) {
	name := a.Name.GetToken().Value
	if _, twice := b.anchors[name]; twice {
		return nil, syntaxAt(a.Start, "anchor &%s is there already", name)
	}
	b.anchors[name] = nil
	n, err := b.build(a.Value)
	if err != nil {
		return nil, err
	}
	b.anchors[name] = n
	return n, nil
}

func (b *builder) alias(a *ast.AliasNode) (*node, error) {
	t := a.Value.GetToken()
	n, ok := b.anchors[t.Value]
	if !ok {
		return nil, syntaxAt(a.Start, "alias *%s has no anchor before it", t.Value)
	}
	if n == nil {
		return nil, syntaxAt(a.Start, "alias *%s lies inside the value that it stands for", t.Value)
	}
	c := *n
	if p := a.Start.Position; p != nil {
		c.line, c.col = p.Line, p.Column
	}
	return &c, nil
}

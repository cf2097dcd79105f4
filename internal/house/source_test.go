package house

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is the length above which a file holds more than one idea.
const maxLines = 400

// TestFileSize checks that no hand-written Go file but a test is longer than maxLines.
func TestFileSize(t *testing.T) {
	for _, s := range sources(t) {
		if n := strings.Count(s.text, "\n"); n > maxLines && !s.test && !ast.IsGenerated(s.file) {
			t.Errorf("%s has %d lines, more than %d: split it", s.path, n, maxLines)
		}
	}
}

// TestGenerated checks that a generated file names the command that makes it, in
// its own directory, so that a drift can be mended.
func TestGenerated(t *testing.T) {
	directives := map[string]bool{}
	for _, s := range sources(t) {
		if strings.Contains(s.text, "\n//go:generate ") {
			directives[s.dir] = true
		}
	}
	for _, s := range sources(t) {
		if ast.IsGenerated(s.file) && !directives[s.dir] {
			t.Errorf("%s is generated, but no //go:generate line in %s says how", s.path, s.dir)
		}
	}
}

// unexplained are methods whose name says all: they belong to interfaces of the
// standard library.
var unexplained = []string{"Error", "String", "Unwrap", "Is", "As", "Read", "Write", "Close", "Len", "Less", "Swap",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML"}

// TestDocs checks that every package and every exported identifier has a comment.
func TestDocs(t *testing.T) {
	explained := map[string]bool{}
	first := map[string]string{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if first[s.dir] == "" {
			first[s.dir] = s.path
		}
		if s.file.Doc.Text() != "" {
			explained[s.dir] = true
		}
		if s.file.Name.Name == "main" {
			continue
		}
		for _, decl := range s.file.Decls {
			for _, d := range silent(decl) {
				t.Errorf("%s: %s has no comment", s.at(d), d.Name)
			}
		}
	}
	for dir, path := range first {
		if !explained[dir] {
			t.Errorf("%s: package in %s has no comment", path, dir)
		}
	}
}

// silent returns the exported names that decl declares without a comment.
func silent(decl ast.Decl) []*ast.Ident {
	var names []*ast.Ident
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc.Text() == "" && d.Name.IsExported() && exportedReceiver(d) &&
			(d.Recv == nil || !slices.Contains(unexplained, d.Name.Name)) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		group := d.Doc.Text() != ""
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc.Text() == "" && !group {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc.Text() == "" && s.Comment.Text() == "" && !group {
						names = append(names, n)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// TestSkips checks that a test that skips itself says why.
func TestSkips(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test && !strings.Contains(s.text, "testing.TB") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch x, _ := sel.X.(*ast.Ident); {
			case x == nil || !slices.Contains([]string{"t", "b", "f", "tb", "ts"}, x.Name):
			case sel.Sel.Name == "SkipNow", sel.Sel.Name == "Skip" && len(call.Args) == 0:
				t.Errorf("%s skips without a reason", s.at(call))
			case (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf") && empty(call.Args[0]):
				t.Errorf("%s skips with an empty reason", s.at(call))
			}
			return true
		})
	}
}

func empty(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && len(strings.Trim(lit.Value, "\"` ")) < 4
}

// unfit are words that no committed file holds: work that is put off, and paths
// and names of one machine or of one place of work. They are put together here so
// that this file does not hold them either.
var unfit = []struct {
	what string
	re   *regexp.Regexp
}{
	{"work put off", regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)},
	{"a path of one machine", regexp.MustCompile(`(^|[^\w.])/(wo` + `rk|ro` + `ot|ho` + `me)/\w`)},
	{"a word of a place of work", regexp.MustCompile(`(?i)\b(sub-?ag` + `ents?|work` + `place|brief\` + `.md|shared/(fix` + `tures|ref` + `erence)|issues? #?\d+|pro` + `mpted by)\b`)},
}

// binary are endings of files that hold no text of ours.
var binary = regexp.MustCompile(`\.(parquet|png|gz|zst|gguf|bin|so|o|ico|woff2?|pb|perf\.data)$|\.min\.(js|css)$|^LICENSE$|go\.sum$|/testdata/fuzz/|/vendored/`)

// TestWords checks the text of every file that is committed.
func TestWords(t *testing.T) {
	walk(t, func(path string) {
		if binary.MatchString(path) {
			return
		}
		for i, line := range strings.Split(read(t, path), "\n") {
			for _, u := range unfit {
				if m := u.re.FindString(line); m != "" {
					t.Errorf("%s:%d: %q is %s", path, i+1, m, u.what)
				}
			}
		}
	})
}

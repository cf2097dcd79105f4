package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tierscope/tierscope"

// root is the module's directory as seen from this package.
const root = "../.."

// skipped directories hold nothing that is committed, or nothing that is ours.
var skippedDirs = map[string]bool{".git": true, ".cache": true, "bin": true, "results": true,
	"node_modules": true, "__pycache__": true}

// walk calls f with every file of the tree, by its path from the root.
func walk(t *testing.T, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && skippedDirs[d.Name()] {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && !strings.HasSuffix(name, ".test") && !strings.HasSuffix(name, ".prof") {
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// source is a Go file of the module, whatever its build tags.
type source struct {
	path string // from the root
	dir  string // "." for the root
	test bool
	text string
	file *ast.File
	fset *token.FileSet
}

func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return s.path + ":" + strconv.Itoa(p.Line)
}

var parsed = struct {
	once    sync.Once
	sources []*source
}{}

// sources parses every Go file of the module once; files of testdata and of the
// module of the tools are not part of it.
func sources(t *testing.T) []*source {
	t.Helper()
	parsed.once.Do(func() {
		walk(t, func(path string) {
			if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") || strings.HasPrefix(path, "tools/") {
				return
			}
			s := &source{path: path, dir: filepath.ToSlash(filepath.Dir(path)), test: strings.HasSuffix(path, "_test.go"),
				text: read(t, path), fset: token.NewFileSet()}
			var err error
			s.file, err = parser.ParseFile(s.fset, path, s.text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				return
			}
			parsed.sources = append(parsed.sources, s)
		})
	})
	if len(parsed.sources) == 0 {
		t.Fatal("no Go file found")
	}
	return parsed.sources
}

package house

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// elsewhere are commands of the manual that are too long for here, by their
// beginning, and the test that runs them.
var elsewhere = map[string]string{
	"tierscope validate --machine": "cmd/tierscope.TestScripts/machine",
}

// smaller is what runs in place of parts of commands that would fetch or write
// gigabytes, or run for minutes: the same words over something smaller.
var smaller = strings.NewReplacer(
	"TIERSCOPE_CACHE=/data/cache tierscope model fetch all", "tierscope model fetch smollm2",
	"--preset llama-3.1-70b --layers 2", "--preset smollm2-135m --layers 2",
	"run --config docs/examples/first-light.yaml", "run --config quick.yaml",
	"run --config first-light.yaml", "run --config quick.yaml",
)

var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary builds tierscope once and returns the directory that it lies in.
func builtBinary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		built.dir, built.err = os.MkdirTemp("", "tierscope-manual-")
		if built.err != nil {
			return
		}
		c := exec.Command("go", "build", "-o", built.dir+"/", "./cmd/tierscope")
		c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// TestCommandsPage checks that docs/commands.md is what the program says of itself.
func TestCommandsPage(t *testing.T) {
	out, err := exec.Command(filepath.Join(builtBinary(t), "tierscope"), "docs").Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != read(t, "docs/commands.md") {
		t.Error("docs/commands.md is not what `tierscope docs` prints: run `make docs`")
	}
}

// TestManual runs every command that README.md and docs/ show in a console block.
// The blocks of a page share one directory, in which testdata/manual/setup.sh has
// laid out what they name. Lines below a command are what it must print; ... stands
// for anything. A block whose fence says "console needs=root" runs as root only.
func TestManual(t *testing.T) {
	var pages []string
	walk(t, func(path string) {
		if path == "README.md" || strings.HasPrefix(path, "docs/") && strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
	})
	if len(pages) < 3 {
		t.Fatalf("only %v found", pages)
	}
	ran := 0
	for _, page := range pages {
		blocks := consoleBlocks(read(t, page))
		if len(blocks) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			env := manualDir(t)
			for _, b := range blocks {
				t.Run(fmt.Sprintf("line%d", b.line), func(t *testing.T) {
					if b.needs == "root" && os.Getuid() != 0 {
						t.Skip("needs root")
					}
					for _, c := range b.commands {
						c.run(t, env)
						ran++
					}
				})
			}
		})
	}
	if ran == 0 {
		t.Error("the manual shows no command")
	}
}

// consoleBlock is a fenced block of commands.
type consoleBlock struct {
	line     int // of the fence, from 1
	needs    string
	commands []consoleCommand
}

type consoleCommand struct {
	line int
	text string
	want []string // what it prints; none = anything
}

var fence = regexp.MustCompile("^```console(?: needs=(\\w+))?$")

func consoleBlocks(text string) []consoleBlock {
	var blocks []consoleBlock
	var b *consoleBlock
	for i, line := range strings.Split(text, "\n") {
		if b == nil {
			if m := fence.FindStringSubmatch(line); m != nil {
				b = &consoleBlock{line: i + 1, needs: m[1]}
			}
			continue
		}
		n := len(b.commands)
		switch {
		case line == "```":
			blocks, b = append(blocks, *b), nil
		case strings.HasPrefix(line, "$ "):
			b.commands = append(b.commands, consoleCommand{line: i + 1, text: line[2:]})
		case n > 0 && strings.HasPrefix(line, "> ") && len(b.commands[n-1].want) == 0:
			b.commands[n-1].text += "\n" + line[2:]
		case n > 0 && !strings.HasPrefix(line, "#") && line != "":
			b.commands[n-1].want = append(b.commands[n-1].want, line)
		}
	}
	return blocks
}

// environment is where the commands of a page run.
type environment struct {
	dir string
	env []string
}

func manualDir(t *testing.T) environment {
	t.Helper()
	dir := t.TempDir()
	house, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	e := environment{dir, append(os.Environ(), "HOUSE="+house,
		"PATH="+builtBinary(t)+string(os.PathListSeparator)+os.Getenv("PATH"))}
	if out, err := e.shell(filepath.Join(house, "internal/house/testdata/manual/setup.sh")); err != nil {
		t.Fatalf("setup.sh: %v\n%s", err, out)
	}
	return e
}

func (e environment) shell(script string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+script)
	c.Dir, c.Env, c.WaitDelay = e.dir, e.env, time.Second
	return c.CombinedOutput()
}

func (c consoleCommand) run(t *testing.T, e environment) {
	t.Helper()
	text := strings.TrimPrefix(c.text, "bin/")
	if target, ok := strings.CutPrefix(text, "make "); ok {
		if !strings.Contains(read(t, "Makefile"), "\n"+target+":") {
			t.Errorf("line %d: the Makefile has no target %q", c.line, target)
		}
		return
	}
	for begin, test := range elsewhere {
		if strings.HasPrefix(text, begin) {
			dir, name, _ := strings.Cut(test, ".")
			if err := exists(testFuncs(t), dir, name); err != nil {
				t.Errorf("line %d: %v", c.line, err)
			}
			return
		}
	}
	out, err := e.shell(smaller.Replace(text))
	if err != nil {
		t.Errorf("line %d: %s\n%v\n%s", c.line, c.text, err, out)
		return
	}
	if len(c.want) > 0 && !like(c.want).MatchString(string(out)) {
		t.Errorf("line %d: %s prints\n%s\nthe page says\n%s", c.line, c.text, out, strings.Join(c.want, "\n"))
	}
}

// like returns the pattern of an output with ... in it.
func like(want []string) *regexp.Regexp {
	s := regexp.QuoteMeta(strings.Join(want, "\n"))
	return regexp.MustCompile(`(?s)^\s*` + strings.ReplaceAll(s, `\.\.\.`, `.*?`) + `\s*$`)
}

// TestConsoleBlocks shows that the reader of pages finds what it should.
func TestConsoleBlocks(t *testing.T) {
	blocks := consoleBlocks("x\n```console\n$ a b\none\n...\n$ c \\\n> d\n# remark\n```\n```console needs=root\n$ e\n```\n```sh\n$ f\n```\n")
	want := []consoleBlock{
		{2, "", []consoleCommand{{3, "a b", []string{"one", "..."}}, {6, "c \\\nd", nil}}},
		{10, "root", []consoleCommand{{11, "e", nil}}},
	}
	if !reflect.DeepEqual(blocks, want) {
		t.Errorf("blocks are\n%v\nwant\n%v", blocks, want)
	}
	for _, c := range []struct {
		want, out string
		ok        bool
	}{
		{"a ... c", "a b c\n", true}, {"a.c", "abc", false}, {"a\n...\nz", "a\nb\nc\nz\n", true}, {"a", "a\nb", false},
	} {
		if got := like(strings.Split(c.want, "\n")).MatchString(c.out); got != c.ok {
			t.Errorf("like(%q) on %q = %v", c.want, c.out, got)
		}
	}
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks checks that what the manual links to within the tree is there.
func TestLinks(t *testing.T) {
	seen := 0
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".md") || strings.Contains(path, "testdata/") {
			return
		}
		for _, m := range markdownLink.FindAllStringSubmatch(read(t, path), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), target)); err != nil {
				t.Errorf("%s: link to %s: %v", path, target, err)
			}
		}
	})
	if seen == 0 {
		t.Error("no link found")
	}
}

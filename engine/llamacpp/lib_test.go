package llamacpp_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// The engine runs in a child: this binary, started again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == llamacpp.ChildCommand {
		os.Exit(llamacpp.Child(os.Stdin))
	}
	os.Exit(m.Run())
}

// seen counts the records of a job.
type seen struct {
	kinds  map[uint8]int
	engine trace.Engine
	err    error
}

func (s *seen) Append(kind uint8, p []byte) error {
	s.kinds[kind]++
	if kind == trace.KindEngine {
		s.err = json.Unmarshal(p, &s.engine)
	}
	return s.err
}

func (s *seen) Flush() error { return nil }

// generate runs a tiny model with the libraries of a directory.
func generate(t *testing.T, lib string) (*seen, error) {
	t.Helper()
	dir := t.TempDir()
	model := filepath.Join(dir, "tiny.gguf")
	if err := gguf.Synth(model, gguf.Spec{Layers: 1, Heads: 2, Width: 64, FFN: 64, Vocab: 64, Context: 256}); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "engine.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s := &seen{kinds: map[uint8]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = llamacpp.Run(ctx, &llamacpp.Job{Model: model, LibDir: lib, Context: 256, Threads: 1, Observe: true, Prompts: []llamacpp.Prompt{{Tokens: 5, Output: 4}}}, s, log)
	t.Log(llamacpp.LastWords(log.Name(), 3))
	return s, err
}

func cached(t *testing.T) string {
	t.Helper()
	dir, err := fetch.Libs(t.Context(), nil)
	if err != nil {
		t.Fatalf("llama.cpp libraries: %v", err)
	}
	return dir
}

// renamed links the libraries of from into a new directory, under other names; a library
// whose new name is empty is left out.
func renamed(t *testing.T, from string, name func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to := name(e.Name())
		if !strings.Contains(e.Name(), ".so") || to == "" {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, to)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return dir
}

// versioned is how distributions name libraries: libllama.so.0, without a plain name.
// Backends are opened by their plain names, so they keep them.
func versioned(n string) string {
	base, _, _ := strings.Cut(n, ".")
	switch base {
	case "libllama", "libggml", "libggml-base":
		return base + ".so.0"
	}
	return n
}

func TestOwnLibraries(t *testing.T) {
	from := cached(t)
	plain := renamed(t, from, func(n string) string { return n })
	distro := renamed(t, from, versioned)
	for name, path := range map[string]string{
		"directory":        plain,
		"library":          filepath.Join(plain, "libllama.so"),
		"version suffix":   filepath.Join(plain, "libllama.v0.5.0.so"),
		"distribution":     distro,
		"distribution, so": filepath.Join(distro, "libllama.so.0"),
	} {
		t.Run(name, func(t *testing.T) {
			lib, err := llamacpp.PrepareLib(path, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			s, err := generate(t, lib)
			if err != nil {
				t.Fatal(err)
			}
			if s.kinds[trace.KindEval] != 4 || s.engine.Via != "slot" || !strings.HasPrefix(s.engine.Library, "libllama") {
				t.Errorf("%d evaluations seen via %s of %s", s.kinds[trace.KindEval], s.engine.Via, s.engine.Library)
			}
		})
	}
}

func TestIncompleteLibraries(t *testing.T) {
	from := cached(t)
	for _, missing := range []string{"libllama", "libggml", "libggml-base"} {
		dir := renamed(t, from, func(n string) string {
			if base, _, _ := strings.Cut(n, "."); base == missing {
				return ""
			}
			return n
		})
		_, err := llamacpp.PrepareLib(dir, t.TempDir())
		if run.ClassOf(err) != run.Misuse || !strings.Contains(err.Error(), missing+".so") || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		if _, err := llamacpp.PrepareLib(path, t.TempDir()); run.ClassOf(err) != run.Misuse || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestOtherLibraries gives libraries that are none of llama.cpp's: the child ends
// with one clear line and does not crash.
func TestOtherLibraries(t *testing.T) {
	from := cached(t)
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string]struct{ lib, by string }{
		"text for libllama":            {"libllama.so", text},
		"text for libggml-base":        {"libggml-base.so", text},
		"libggml-base for libllama":    {"libllama.so", filepath.Join(from, "libggml-base.so")},
		"libllama for libggml-base":    {"libggml-base.so", filepath.Join(from, "libllama.so")},
		"a CPU backend for libllama":   {"libllama.so", filepath.Join(from, "libggml-cpu-x64.so")},
		"empty file for libllama":      {"libllama.so", os.DevNull},
		"libggml for all of libllama":  {"libllama.so", filepath.Join(from, "libggml.so")},
		"libllama-common for libllama": {"libllama.so", filepath.Join(from, "libllama-common.so")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := renamed(t, from, func(n string) string {
				if n == swap.lib || strings.HasPrefix(n, "libllama.v") {
					return ""
				}
				return n
			})
			if err := os.Symlink(swap.by, filepath.Join(dir, swap.lib)); err != nil {
				t.Fatal(err)
			}
			if swap.lib != "libllama.so" {
				if err := os.Symlink(filepath.Join(from, "libllama.so"), filepath.Join(dir, "libllama.so")); err != nil && !os.IsExist(err) {
					t.Fatal(err)
				}
			}
			lib, err := llamacpp.PrepareLib(dir, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			s, err := generate(t, lib)
			if run.ClassOf(err) != run.Capability || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), lib) {
				t.Errorf("class %d: %v", run.ClassOf(err), err)
			}
			if s.kinds[trace.KindEval] != 0 {
				t.Error("and yet a graph was evaluated")
			}
			t.Log(err)
		})
	}
}

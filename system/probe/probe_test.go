package probe

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCapabilities(t *testing.T) {
	list := Capabilities(context.Background(), Options{Dir: t.TempDir()})
	seen := map[string]Capability{}
	for _, c := range list {
		t.Logf("%-22s %-5v %s | %s", c.Name, c.OK, c.Why, c.Fix)
		if c.Name == "" || c.Why == "" || c.Use == "" {
			t.Errorf("%+v says too little", c)
		}
		if strings.Contains(c.Why+c.Fix, "\n") {
			t.Errorf("%s: more than one line", c.Name)
		}
		if c.OK && (c.Fix != "" || c.Package != "") {
			t.Errorf("%s is there, and needs %q", c.Name, c.Fix)
		}
		seen[c.Name] = c
	}
	if len(seen) != len(probes) {
		t.Errorf("%d names for %d probes", len(seen), len(probes))
	}
	for _, name := range []string{"memfd", "disk"} {
		if !seen[name].OK {
			t.Errorf("%s is missing on a machine that runs this test: %s", name, seen[name].Why)
		}
	}
	data, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"name"`, `"ok"`, `"why"`, `"fix"`} {
		if !strings.Contains(string(data), key) {
			t.Errorf("no %s in %s", key, data)
		}
	}
}

// atLeast reports whether the kernel is of that version or later.
func atLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	k, ok := parseRelease(release())
	return ok && (k[0] > major || k[0] == major && k[1] >= minor)
}

// TestShouldBeThere fails where a feature is missing that this kernel and these
// privileges must have.
func TestShouldBeThere(t *testing.T) {
	root := os.Getuid() == 0
	ctx, o := context.Background(), Options{}
	for _, c := range []struct {
		name  string
		try   func(context.Context, Options) verdict
		must  bool
		needs string
	}{
		{"pagemap-scan", pagemapScan, atLeast(t, 6, 7), "Linux 6.7"},
		{"userfaultfd", written, atLeast(t, 6, 7), "Linux 6.7"},
		{"perf-software", software, root, "root"},
		{"debug-registers", breakpoint, root && runtime.GOARCH == "amd64", "root and x86-64"},
		{"ebpf", ebpf, root && atLeast(t, 5, 8), "root and Linux 5.8"},
		{"uprobes", uprobes, root && readString(sysEvents+"uprobe/type") != "", "root and uprobe events in the kernel"},
		{"btf", btf, readString("/sys/kernel/btf/vmlinux") != "", "a kernel that describes its types"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.must {
				t.Skipf("needs %s", c.needs)
			}
			v := c.try(ctx, o)
			if v.ok {
				return
			}
			// A sandbox that refuses is said, not failed.
			if strings.Contains(v.why, unix.EPERM.Error()) || strings.Contains(v.why, unix.EACCES.Error()) || strings.Contains(v.why, unix.ENOSYS.Error()) {
				t.Skipf("refused here: %s", v.why)
			}
			t.Errorf("%s (fix: %s)", v.why, v.fix)
		})
	}
}

func TestAptLineAndDemo(t *testing.T) {
	list := []Capability{
		{Name: "npm", Package: "npm", Demo: true}, {Name: "pip", OK: true, Demo: true},
		{Name: "valgrind", Package: "valgrind"}, {Name: "again", Package: "npm"}, {Name: "btf"},
	}
	if got := AptLine(list); got != "apt-get install -y npm valgrind" {
		t.Errorf("%q", got)
	}
	if got := DemoLacks(list); !slices.Equal(got, []string{"npm"}) {
		t.Errorf("%v", got)
	}
	if got := AptLine(nil); got != "" {
		t.Errorf("%q", got)
	}
}

// TestWithoutPrograms tries everything with an empty PATH: each program is
// missing, each with its package, and nothing else is.
func TestWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	list := Capabilities(context.Background(), Options{Dir: t.TempDir()})
	if got, want := AptLine(list), "apt-get install -y chromium linux-perf npm python3 python3-pip valgrind"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	lacks := DemoLacks(list)
	for _, name := range []string{"python3", "pip", "npm"} {
		if !slices.Contains(lacks, name) {
			t.Errorf("the demo does not miss %s: %v", name, lacks)
		}
	}
	for _, name := range DemoLacks(Capabilities(context.Background(), Options{Dir: t.TempDir(), Fetched: true})) {
		if name != "platform" {
			t.Errorf("all is fetched, yet the demo misses %s", name)
		}
	}
}

func TestBrokenProgram(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\necho 'npm is broken' >&2\nexit 3\n"), 0o755)
	os.WriteFile(filepath.Join(dir, "perf"), []byte("#!/bin/sh\nsleep 60 & wait\n"), 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if v := npm(context.Background(), Options{}); v.ok || v.why != "npm: npm is broken" {
		t.Errorf("%+v", v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if v := perfTool(ctx, Options{}); v.ok || time.Since(start) > 10*time.Second {
		t.Errorf("a program that hangs: %+v after %v", v, time.Since(start))
	}
}

func TestDiskIsSmall(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if v := disk(context.Background(), Options{Dir: filepath.Join(dir, "not", "yet")}); v.ok || !strings.Contains(v.why, "MiB free") {
		t.Errorf("%+v", v)
	}
}

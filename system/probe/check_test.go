package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "touch-memory" {
		fmt.Println(TouchMemory())
		return
	}
	os.Exit(m.Run())
}

// TestMachines checks machines that are described by files: their proc and sys,
// and programs that answer as theirs did. Each says what is wanted.
func TestMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			h := &Host{Root: t.TempDir(), Dir: t.TempDir(), Workload: []string{"true"}}
			want := ""
			for _, f := range a.Files {
				switch {
				case f.Name == "want":
					want = string(f.Data)
					continue
				case f.Name == "host":
					if _, err := fmt.Sscan(string(f.Data), &h.OS, &h.Kernel, &h.UID); err != nil {
						t.Fatal(err)
					}
					continue
				}
				p := filepath.Join(h.Root, f.Name)
				os.MkdirAll(filepath.Dir(p), 0o755)
				data, mode := f.Data, os.FileMode(0o644)
				if strings.HasPrefix(f.Name, "bin/") {
					data, mode = append([]byte("#!/bin/sh\n"), data...), 0o755
				}
				if err := os.WriteFile(p, data, mode); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", filepath.Join(h.Root, "bin"))
			m, err := h.Check(context.Background(), func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, c := range m.Checks {
				if c.Name == "disk" {
					continue // this machine's own
				}
				fmt.Fprintf(&got, "%s %s", c.Name, c.Status)
				if n, ok := c.Data["samples"]; ok {
					fmt.Fprintf(&got, " %v", n)
				}
				got.WriteByte('\n')
				if c.Detail == "" || c.Data == nil || strings.Contains(c.Detail, "\n") {
					t.Errorf("%+v", c)
				}
				if c.Status == Fail && c.Remediation == "" {
					t.Errorf("%s fails and does not say what to do", c.Name)
				}
			}
			fmt.Fprintf(&got, "exit %d\n", m.ExitCode)
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Error(diff)
			}
			if c := h.Context(); c.PMUAvailable != (m.Checks[8].Status == Pass) {
				t.Errorf("context says %+v, facility %s", c, m.Checks[8].Status)
			}
		})
	}
}

// TestThisMachine runs the checks for real; what they find depends on where.
func TestThisMachine(t *testing.T) {
	h := ThisHost(t.TempDir(), os.Args[0], "touch-memory")
	var told []string
	m, err := h.Check(context.Background(), func(name string) { told = append(told, name) })
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("os wsl2 kernel perf_installed perf_version root paranoid cpu facility pmu_dmesg smoke ac_power governor thermal memray gpu disk")
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if m.ExitCode < 0 || m.ExitCode > 2 || m.Checks[0].Status != Pass {
		t.Errorf("%+v", m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil || len(doc) != 3 {
		t.Errorf("%v: %s", err, data)
	}
	for _, key := range []string{"name", "status", "detail", "remediation", "data"} {
		if _, ok := doc["checks"].([]any)[0].(map[string]any)[key]; !ok {
			t.Errorf("no %s", key)
		}
	}
	if c := h.Context(); c.CPUModel == "" || c.DiskFreeGB == nil {
		t.Errorf("%+v", c)
	}
}

func TestCheckIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ThisHost(".").Check(ctx, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTouchMemory(t *testing.T) {
	const n = 32 << 20 / 8
	if got, want := TouchMemory(), uint64(20*n*(n-1)/2); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

func FuzzRelease(f *testing.F) {
	for _, s := range []string{"6.1.0-18-amd64", "6.8", "", ".", "6.", "6.x", "99999999999999999999.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := parseRelease(s); ok && (v[1] < 0 || !strings.Contains(s, ".")) {
			t.Errorf("%q: %v", s, v)
		}
	})
}

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tierscope/tierscope/run"
)

func TestTrees(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			root, want := t.TempDir(), map[string]string{}
			for _, f := range a.Files {
				if strings.HasPrefix(f.Name, "want.") {
					want[f.Name] = string(f.Data)
					continue
				}
				p := filepath.Join(root, f.Name)
				os.MkdirAll(filepath.Dir(p), 0o755)
				if err := os.WriteFile(p, f.Data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m := New(root)
			h := m.Hardware()
			h.CPUModel = strings.Replace(h.CPUModel, runtime.GOARCH, "amd64", 1)
			h.PageSize = 4096
			got, err := json.Marshal(h)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(want["want.json"]), string(got)); diff != "" {
				t.Error(diff)
			}
			freq, okF := m.FrequencyMHz()
			temp, okT := m.TemperatureC()
			turbo, okB := m.Turbo()
			before := Throttles{"0:0": 4}
			if len(m.Throttles()) == 0 {
				before = nil
			} else {
				before["0:1"] = 0
			}
			text := fmt.Sprintf("frequency %v %v\ntemperature %v %v\nturbo %v %v\nthrottles %d\n", freq, okF, temp, okT, turbo, okB, m.Throttles().Since(before))
			if diff := cmp.Diff(want["want.txt"], text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThrottlesOfANewCore(t *testing.T) {
	if n := (Throttles{"a": 5, "b": 3, "c": 1}).Since(Throttles{"a": 4, "c": 2}); n != 1 {
		t.Errorf("%d", n)
	}
}

func TestID(t *testing.T) {
	for host, want := range map[string]string{"box-1": "box-1", "Box_1.example.org": "box-1", "": "unknown-host", "...": "unknown-host", "ÄÖ": "unknown-host", "--A  b--": "a-b"} {
		if got := ID(host); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	meta := run.NewMetadata()
	New("").Describe(meta)
	h, s := meta.Hardware, meta.Software
	if h.CPUModel == "" || h.LogicalCPUs < 1 || h.MemoryTotal < 64<<20 || h.PageSize < 4096 {
		t.Errorf("%+v", h)
	}
	if !strings.HasPrefix(s.OS, "Linux ") || s.Kernel == "" || meta.MachineID == "" {
		t.Errorf("%+v", s)
	}
	var total uint64
	for _, c := range h.Caches {
		total += c.Bytes
	}
	if len(h.Caches) > 0 && (total < 16<<10 || total > 4<<30) {
		t.Errorf("caches %+v", h.Caches)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{"32K": 32 << 10, "266240K": 266240 << 10, "4M": 4 << 20, "1G": 1 << 30, "512": 512} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("%q: %d %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "K", "-1K", "99999999999999999999", "18446744073709551615K"} {
		if got, err := parseSize(bad); err == nil {
			t.Errorf("%q: %d", bad, got)
		}
	}
}

func FuzzSysfs(f *testing.F) {
	f.Add("0-3,8", "32K")
	f.Fuzz(func(t *testing.T, list, size string) {
		if n := countList(list); n < 0 {
			t.Errorf("%q: %d", list, n)
		}
		parseSize(size)
	})
}

// TestBaselineSeesLoad keeps one CPU busy: every reading covers a whole period,
// so none of them can be near 0.
func TestBaselineSeesLoad(t *testing.T) {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
		}
	}()
	b, err := New("").Baseline(context.Background(), 400*time.Millisecond, 100*time.Millisecond)
	stop.Store(true)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	if least := 100 / float64(runtime.NumCPU()) / 3; b.CPUPercent < least || b.CPUPercentMax < b.CPUPercent || b.CPUPercentMax > 100 {
		t.Errorf("%v %% mean, %v %% max with one CPU busy", b.CPUPercent, b.CPUPercentMax)
	}
	if b.MemTotalMiB < b.MemAvailableMiB || b.MemUsedPercent <= 0 || b.Time <= 0 {
		t.Errorf("%+v", b)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New("").Baseline(ctx, time.Hour, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

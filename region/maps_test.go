package region

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestGuessesOfTheOriginal(t *testing.T) {
	var want map[string]json.RawMessage
	if err := json.NewDecoder(open(t, "testdata/maps/expected.json")).Decode(&want); err != nil {
		t.Fatal(err)
	}
	type regionJSON struct {
		Type   string `json:"region_type"`
		Start  uint64 `json:"addr_start"`
		End    uint64 `json:"addr_end"`
		Size   uint64 `json:"size_bytes"`
		Source string `json:"source"`
	}
	for name, raw := range want {
		if name == "parsed_post" {
			continue
		}
		var c struct {
			Model   string       `json:"model_path"`
			MinKV   uint64       `json:"min_kv_bytes"`
			Regions []regionJSON `json:"regions"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		guesses, err := GuessLlamaCpp(open(t, "testdata/maps/pre.txt"), open(t, "testdata/maps/post.txt"), c.Model, c.MinKV)
		if err != nil {
			t.Fatal(err)
		}
		got := []regionJSON{}
		for _, g := range guesses {
			got = append(got, regionJSON{g.Type.Name, g.Start, g.End, g.End - g.Start, g.Source})
		}
		if d := cmp.Diff(c.Regions, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}

	type line struct {
		Start uint64 `json:"addr_start"`
		End   uint64 `json:"addr_end"`
		Perms string `json:"perms"`
		Path  string `json:"path"`
	}
	var lines, got []line
	if err := json.Unmarshal(want["parsed_post"], &lines); err != nil {
		t.Fatal(err)
	}
	parsed, err := readCompatMaps(open(t, "testdata/maps/post.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range parsed {
		got = append(got, line{m.start, m.end, m.perms, m.path})
	}
	if d := cmp.Diff(lines, got); d != "" {
		t.Error(d)
	}
}

func TestReadMaps(t *testing.T) {
	text := strings.Join([]string{
		"7f000c800000-7f0032000000 r--s 00001000 fd:01 9                          /my models/tiny (deleted).gguf (deleted)",
		"55d000000000-55d000300000 rw-p 00000000 00:00 0                          [heap]",
		"7f0000000000-7f0000800000 rw-p 00000000 00:00 0 ",
		"7f0000000000-7f0000400000 rw-p 00000000 00:00 0 ", // overlaps
		"7f0044c00000-7f0044c00000 rw-p 00000000 00:00 0 ", // empty
		"7f0051400000-7f0051600000 r--p 00000000 00:00 0                          [anon:glibc: malloc]",
		`7f0061400000-7f0061600000 r-xp 00000000 fd:01 10                         /lib/a\012b.so`,
		"7ffe00000000-7ffe00100000 rw-p 00000000 00:00 0                          [stack]",
		"7ffe00200000-7ffe00201000 r-xp 00000000 00:00 0                          [vdso]",
		"garbage line", "-", "10-zz rw-p 0 0:0 0", "10-20 rwxpp 0 0:0 0", "10-20 rw-p x 0:0 0", "10-20 rw-p 0 0 0", "10-20 rw-p 0 0:0 -1", "",
	}, "\n")
	m, err := ReadMaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if m.Skipped != 9 || len(m.All) != 7 {
		t.Errorf("%d mappings, %d skipped; want 7 and 9", len(m.All), m.Skipped)
	}
	for addr, want := range map[uint64]string{
		0x55d000000000: "heap [heap]", 0x55d0002fffff: "heap [heap]", 0x55d000300000: "",
		0x7f0000000001: "anon [anon]", 0x7f000c800000: "file /my models/tiny (deleted).gguf", 0x7f0051400010: "anon [anon:glibc: malloc]",
		0x7f0061400000: "file /lib/a\nb.so", 0x7ffe00000000: "stack [stack]", 0x7ffe00200000: "vdso [vdso]", 0: "", ^uint64(0): "",
	} {
		got := ""
		if p := m.Find(addr); p != nil {
			got = p.Kind() + " " + p.Name()
		}
		if got != want {
			t.Errorf("%#x: %q, want %q", addr, got, want)
		}
	}
	if p := m.Find(0x7f000c800000); !p.Deleted || p.Offset != 0x1000 || p.Inode != 9 || p.Dev != "fd:01" {
		t.Errorf("fields of the deleted file: %+v", p)
	}
}

func TestOwnMaps(t *testing.T) {
	m, err := ProcessMaps(0)
	if err != nil {
		t.Fatal(err)
	}
	if m.Skipped != 0 {
		t.Errorf("%d lines of the kernel's not understood", m.Skipped)
	}
	on := new([1 << 16]byte)
	if p := m.Find(uint64(uintptr(unsafe.Pointer(on)))); p == nil || p.Kind() != "anon" || p.Perms != "rw-p" {
		t.Errorf("a Go object lies in %+v", p)
	}
	runtime.KeepAlive(on)
	if _, err := ProcessMaps(1 << 30); err == nil {
		t.Error("a process that cannot exist has mappings")
	}
}

func FuzzMaps(f *testing.F) {
	for _, name := range []string{"pre", "post"} {
		text, err := os.ReadFile("testdata/maps/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("10-20 rw-p 0 0:0 0 a (deleted)\n18-28 rw-p 0 0:0 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadMaps(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		end := uint64(0)
		for i := range m.All {
			p := &m.All[i]
			if p.Start < end || p.End <= p.Start {
				t.Fatalf("mapping %d out of order: %+v", i, p)
			}
			if m.Find(p.Start) != p || m.Find(p.End-1) != p {
				t.Fatalf("mapping %d not found by its addresses", i)
			}
			end = p.End
		}
		if _, err := GuessLlamaCpp(strings.NewReader(""), strings.NewReader(text), "m.gguf", 1); err != nil {
			t.Fatal(err)
		}
	})
}

package region

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Mapping is a line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64 // End is exclusive
	Perms      string // rwxp
	Offset     uint64 // into the file
	Dev        string
	Inode      uint64
	Path       string // "" anonymous; [heap], [stack], [anon:...]; else a file, octal escapes resolved
	Deleted    bool   // the file has been unlinked
}

// Kind is what a mapping is made of: file, heap, stack, vdso, or anon.
func (m *Mapping) Kind() string {
	switch {
	case m.Path == "[heap]":
		return "heap"
	case strings.HasPrefix(m.Path, "[stack"):
		return "stack"
	case strings.HasPrefix(m.Path, "[v"): // vdso, vvar, vsyscall
		return "vdso"
	case m.Path == "" || strings.HasPrefix(m.Path, "["):
		return "anon"
	case strings.HasPrefix(m.Path, "anon_inode:"), m.Path == "/dev/zero":
		return "anon"
	}
	return "file"
}

// Name is the mapping's path, or its kind where it has none.
func (m *Mapping) Name() string {
	if m.Path == "" {
		return "[" + m.Kind() + "]"
	}
	return m.Path
}

// Maps are the mappings of a process, in order of address and disjoint. Safe
// for concurrent use once read.
type Maps struct {
	All     []Mapping
	Skipped int // lines that are no mapping, or overlap one before them
}

// ReadMaps reads text in the form of /proc/PID/maps. What is no mapping is
// counted in Skipped; only reading itself can fail.
func ReadMaps(r io.Reader) (*Maps, error) {
	m := &Maps{}
	err := eachLine(r, func(line string) {
		if line == "" {
			return
		}
		if p, ok := parseMapping(line); ok {
			m.All = append(m.All, p)
		} else {
			m.Skipped++
		}
	})
	if err != nil {
		return nil, fmt.Errorf("maps: %w", err)
	}
	slices.SortStableFunc(m.All, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
	kept := m.All[:0]
	for _, p := range m.All {
		if n := len(kept); n > 0 && p.Start < kept[n-1].End {
			m.Skipped++
			continue
		}
		kept = append(kept, p)
	}
	m.All = kept
	return m, nil
}

// ProcessMaps reads the mappings of a process; pid 0 is this one.
func ProcessMaps(pid int) (*Maps, error) {
	name := "/proc/self/maps"
	if pid != 0 {
		name = fmt.Sprintf("/proc/%d/maps", pid)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadMaps(f)
}

// Find returns the mapping that holds addr, or nil.
func (m *Maps) Find(addr uint64) *Mapping {
	i := sort.Search(len(m.All), func(i int) bool { return m.All[i].End > addr })
	if i < len(m.All) && m.All[i].Start <= addr {
		return &m.All[i]
	}
	return nil
}

// eachLine calls f for every line of r, without its end, of whatever length.
func eachLine(r io.Reader, f func(string)) error {
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		if line != "" {
			f(strings.TrimRight(line, "\r\n"))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// parseMapping reads one line. The path is all that follows the inode, so it
// may hold blanks.
func parseMapping(line string) (m Mapping, ok bool) {
	word := func() string {
		var w string
		w, line, _ = strings.Cut(line, " ")
		line = strings.TrimLeft(line, " ")
		return w
	}
	if m.Start, m.End, ok = parseSpan(word()); !ok || m.Start >= m.End {
		return m, false
	}
	m.Perms = word()
	if len(m.Perms) != 4 || strings.Trim(m.Perms, "rwxps-") != "" {
		return m, false
	}
	var err error
	if m.Offset, err = strconv.ParseUint(word(), 16, 64); err != nil {
		return m, false
	}
	if m.Dev = word(); !strings.Contains(m.Dev, ":") {
		return m, false
	}
	if m.Inode, err = strconv.ParseUint(word(), 10, 64); err != nil {
		return m, false
	}
	if strings.HasPrefix(line, "/") {
		line, m.Deleted = strings.CutSuffix(line, " (deleted)")
	}
	m.Path = unescape(line)
	return m, true
}

func parseSpan(s string) (start, end uint64, ok bool) {
	a, b, found := strings.Cut(s, "-")
	start, err1 := strconv.ParseUint(a, 16, 64)
	end, err2 := strconv.ParseUint(b, 16, 64)
	return start, end, found && err1 == nil && err2 == nil
}

// unescape resolves the octal form in which the kernel writes line ends.
func unescape(s string) string { return strings.ReplaceAll(s, `\012`, "\n") }

// Package machine reads what the machine is and how it is doing: CPU, caches,
// memory, kernel, clock frequency, heat, load. Everything comes from files of the
// kernel; what is not there is left out and is no error, as in many VMs.
package machine

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/run"
)

// Machine reads below a root directory: "" is this machine, another holds copies
// of its proc, sys and etc. Safe for concurrent use.
type Machine struct{ root string }

// New returns a machine that is read below root.
func New(root string) Machine { return Machine{root} }

func (m Machine) path(p string) string { return filepath.Join(m.root, p) }

// text returns the trimmed content of a file, "" if it cannot be read.
func (m Machine) text(p string) string {
	data, err := os.ReadFile(m.path(p))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(string(data), "\x00"))
}

// number returns the content of a file as a number.
func (m Machine) number(p string) (float64, bool) {
	f, err := strconv.ParseFloat(m.text(p), 64)
	return f, err == nil
}

func (m Machine) glob(pattern string) []string {
	list, err := filepath.Glob(m.path(pattern))
	if err != nil {
		return nil
	}
	for i, p := range list {
		list[i] = "/" + strings.TrimPrefix(strings.TrimPrefix(p, m.root), "/")
	}
	return list
}

// ID makes a word of a host name: up to its first dot, lower case, every run of
// other characters than a-z and 0-9 one '-'; unknown-host if nothing is left.
func ID(host string) string {
	host, _, _ = strings.Cut(host, ".")
	word := strings.FieldsFunc(strings.ToLower(host), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	if len(word) == 0 {
		return "unknown-host"
	}
	return strings.Join(word, "-")
}

// Hardware returns what the machine is made of.
func (m Machine) Hardware() run.Hardware {
	h := run.Hardware{PageSize: os.Getpagesize(), LogicalCPUs: m.online()}
	m.cpu(&h)
	h.Caches, h.CacheLine = m.caches()
	if h.CacheLine == 0 {
		h.CacheLine = 64
	}
	f := m.FrequencyLimits()
	h.FreqHWMHz, h.FreqMaxMHz, h.FreqMinMHz, h.Governor = f.HWMaxMHz, f.MaxMHz, f.MinMHz, f.Governor
	if fs, err := procfs.NewFS(m.path("/proc")); err == nil {
		if mem, err := fs.Meminfo(); err == nil {
			h.MemoryTotal, h.SwapTotal = value(mem.MemTotalBytes), value(mem.SwapTotalBytes)
		}
	}
	for _, p := range m.glob("/proc/driver/nvidia/gpus/*/information") {
		for line := range strings.SplitSeq(m.text(p), "\n") {
			if v, ok := strings.CutPrefix(line, "Model:"); ok {
				h.GPUs = append(h.GPUs, strings.TrimSpace(v))
			}
		}
	}
	h.NUMANodes = len(m.glob("/sys/devices/system/node/node[0-9]*"))
	return h
}

func value(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

func (m Machine) online() int {
	if n := countList(m.text("/sys/devices/system/cpu/online")); n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// countList counts the numbers of a kernel list such as 0-3,8.
func countList(s string) int {
	n := 0
	for _, part := range strings.Split(s, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			return 0
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(to); err != nil || b < a || b > 1<<20 {
				return 0
			}
		}
		n += b - a + 1
	}
	return n
}

// cpu fills in what /proc/cpuinfo says. Its keys differ by architecture.
func (m Machine) cpu(h *run.Hardware) {
	data, err := os.ReadFile(m.path("/proc/cpuinfo"))
	if err != nil {
		return
	}
	sockets, cores := map[string]bool{}, map[[2]string]bool{}
	socket := "0"
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		key, val, _ := strings.Cut(s.Text(), ":")
		val = strings.TrimSpace(val)
		switch strings.TrimSpace(key) {
		case "model name", "Model", "cpu model":
			if h.CPUModel == "" {
				h.CPUModel = val
			}
		case "vendor_id", "CPU implementer":
			h.CPUVendor = val
		case "physical id":
			socket = val
			sockets[val] = true
		case "core id":
			cores[[2]string{socket, val}] = true
		case "flags":
			h.Virtual = h.Virtual || strings.Contains(" "+val+" ", " hypervisor ")
		}
	}
	if h.CPUVendor == "0x41" {
		h.CPUVendor = "ARM"
	}
	if h.CPUModel == "" {
		h.CPUModel = strings.TrimSpace(h.CPUVendor + " " + runtime.GOARCH)
	}
	h.Sockets, h.Cores = len(sockets), len(cores)
	if h.Cores == 0 {
		h.Cores = len(m.glob("/sys/devices/system/cpu/cpu[0-9]*/topology"))
	}
	h.Hypervisor = m.hypervisor()
	h.Virtual = h.Virtual || h.Hypervisor != ""
}

// hypervisor returns the name of what this machine is a guest of, "" if it says
// nothing.
func (m Machine) hypervisor() string {
	if s := m.text("/sys/hypervisor/type"); s != "" {
		return s
	}
	product := m.text("/sys/class/dmi/id/sys_vendor") + " " + m.text("/sys/class/dmi/id/product_name")
	for _, word := range []string{"QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Amazon EC2", "Google Compute Engine", "Microsoft Corporation Virtual"} {
		if strings.Contains(product, word) {
			return word
		}
	}
	return ""
}

// caches returns the caches of CPU 0 and the size of a line in bytes.
func (m Machine) caches() (out []run.Cache, line int) {
	for _, dir := range m.glob("/sys/devices/system/cpu/cpu0/cache/index[0-9]*") {
		size, err := parseSize(m.text(dir + "/size"))
		if err != nil {
			continue
		}
		name := "L" + m.text(dir+"/level")
		switch m.text(dir + "/type") {
		case "Data":
			name += "d"
		case "Instruction":
			name += "i"
		}
		out = append(out, run.Cache{Name: name, Bytes: size, CPUs: countList(m.text(dir + "/shared_cpu_list"))})
		if n, ok := m.number(dir + "/coherency_line_size"); ok {
			line = int(n)
		}
	}
	return out, line
}

// parseSize reads a size of sysfs such as 32K.
func parseSize(s string) (uint64, error) {
	shift := 0
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'K':
			shift = 10
		case 'M':
			shift = 20
		case 'G':
			shift = 30
		}
		if shift > 0 {
			s = s[:n-1]
		}
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err == nil && v > 1<<(63-shift) {
		err = strconv.ErrRange
	}
	return v << shift, err
}

// Software returns what the machine runs. Libraries are for the engine to fill in.
func (m Machine) Software() run.Software {
	s := run.Software{Go: runtime.Version(), Arch: runtime.GOARCH, OS: "Linux"}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		s.Kernel = unix.ByteSliceToString(u.Release[:])
		s.OS = unix.ByteSliceToString(u.Sysname[:]) + " " + s.Kernel
		s.Hostname = unix.ByteSliceToString(u.Nodename[:])
	}
	for _, p := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		if s.Distribution = osRelease(m.text(p)); s.Distribution != "" {
			break
		}
	}
	return s
}

func osRelease(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

// Describe fills in the machine's part of m: machine id, hardware, software.
func (m Machine) Describe(meta *run.Metadata) {
	meta.Hardware = m.Hardware()
	meta.Software = m.Software()
	meta.MachineID = ID(meta.Software.Hostname)
}

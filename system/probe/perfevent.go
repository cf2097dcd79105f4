package probe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const paranoid = "/proc/sys/kernel/perf_event_paranoid"

const perfFix = "lower kernel.perf_event_paranoid (sudo sysctl kernel.perf_event_paranoid=1), or give CAP_PERFMON"

// count opens an event on this thread, does work and returns how often the event
// happened. The kernel's own share is left out.
func count(attr unix.PerfEventAttr, work func()) (uint64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("perf_event_open: %w", err)
	}
	defer unix.Close(fd)
	work()
	var buf [8]byte
	if n, err := unix.Read(fd, buf[:]); err != nil || n != 8 {
		return 0, fmt.Errorf("reading the event: %d bytes, %w", n, errors.Join(err))
	}
	return binary.NativeEndian.Uint64(buf[:]), nil
}

const userOnly = unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv

// software counts the page faults of touching fresh pages.
func software(context.Context, Options) verdict {
	mem, free, err := pages(16)
	if err != nil {
		return no("", "mapping memory: %v", err)
	}
	defer free()
	n, err := count(unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS, Bits: userOnly}, func() {
		for i := 0; i < len(mem); i += os.Getpagesize() {
			mem[i] = 1
		}
	})
	switch {
	case err != nil:
		return no(perfFix, "%v", err)
	case n < 16:
		return no("", "16 fresh pages were touched, %d page faults counted", n)
	}
	return yes("page faults are counted")
}

// breakpoint watches a word with a debug register and writes it.
func breakpoint(context.Context, Options) verdict {
	mem, free, err := pages(1)
	if err != nil {
		return no("", "mapping memory: %v", err)
	}
	defer free()
	mem[0] = 1
	const writes = 3
	n, err := count(unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Bits: userOnly, Bp_type: 2, // HW_BREAKPOINT_W
		Ext1: uint64(address(mem)), Ext2: 8,
	}, func() {
		p := (*uint64)(unsafe.Pointer(&mem[0]))
		for i := range uint64(writes) {
			store(p, i)
		}
	})
	switch {
	case err != nil:
		return no(perfFix+"; another debugger may hold the registers", "%v", err)
	case n != writes:
		return no("a hypervisor that passes debug registers through", "a word was written %d times, %d were seen", writes, n)
	}
	return yes("a debug register saw every write of a word")
}

//go:noinline
func store(p *uint64, v uint64) { *p = v }

// uprobed is what [uprobes] sets a probe on.
//
//go:noinline
func uprobed(n int) int { return n*3 + 1 }

// uprobes sets a probe on a function of this program and calls it.
func uprobes(context.Context, Options) verdict {
	kind, err := strconv.ParseUint(strings.TrimSpace(readString("/sys/bus/event_source/devices/uprobe/type")), 10, 32)
	if err != nil {
		return no("a kernel with CONFIG_UPROBE_EVENTS", "the kernel shows no uprobe events")
	}
	path, offset, err := fileOffset(reflect.ValueOf(uprobed).Pointer())
	if err != nil {
		return no("", "%v", err)
	}
	name := append([]byte(path), 0)
	sum, calls := 0, 5
	n, err := count(unix.PerfEventAttr{Type: uint32(kind), Ext1: uint64(address(name)), Ext2: offset}, func() {
		for i := range calls {
			sum += uprobed(i)
		}
	})
	runtime.KeepAlive(name)
	switch {
	case err != nil:
		return no("run as root, or give CAP_PERFMON (kernel 5.8) and CAP_BPF", "%v", err)
	case n != uint64(calls):
		return no("", "a function was called %d times, %d were seen", calls, n)
	}
	return yes("a probe on a function saw every call")
}

// fileOffset returns the file that the code at addr was mapped from, and where in
// it that lies.
func fileOffset(addr uintptr) (path string, offset uint64, err error) {
	data, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "", 0, err
	}
	for line := range bytes.Lines(data) {
		var from, to, off uint64
		var perm string
		if n, _ := fmt.Sscanf(string(line), "%x-%x %s %x", &from, &to, &perm, &off); n != 4 {
			continue
		}
		if uint64(addr) < from || uint64(addr) >= to {
			continue
		}
		// The path may hold blanks; it begins with the first slash. A binary that
		// was replaced on disk can still be read through /proc.
		if i := bytes.IndexByte(line, '/'); i >= 0 {
			return "/proc/self/exe", off + uint64(addr) - from, nil
		}
	}
	return "", 0, errors.New("this program's code is mapped from no file")
}

// memorySampling opens the CPU's event for sampled memory accesses.
func memorySampling(context.Context, Options) verdict {
	const fix = "a machine, or a VM with a virtual PMU, that has PEBS, IBS or SPE"
	for _, f := range facilities {
		dir := sysEvents + f.device
		kind, err := strconv.ParseUint(strings.TrimSpace(readString(dir+"/type")), 10, 32)
		if err != nil {
			continue
		}
		n, err := count(unix.PerfEventAttr{Type: uint32(kind), Config: f.config, Ext1: f.config1, Sample: 1 << 20, Bits: unix.PerfBitPreciseIPBit2 | f.bits}, func() {})
		if err != nil {
			return no(perfFix, "%s: %v", f.name, err)
		}
		return yes("%s opened (%d counted)", f.name, n)
	}
	return no(fix, "the kernel shows no event for sampled memory accesses")
}

const sysEvents = "/sys/bus/event_source/devices/"

// facilities are the events by which CPUs sample memory accesses. Configurations
// are those of the kernel's own event tables.
var facilities = []struct {
	name, device    string
	config, config1 uint64
	bits            uint64
}{
	{"Intel PEBS load latency", "cpu", 0x1cd, 3, userOnly},
	{"Intel PEBS load latency", "cpu_core", 0x1cd, 3, userOnly},
	{"AMD IBS op", "ibs_op", 0, 0, 0},
	{"Arm SPE", "arm_spe_0", 0, 0, 0},
}

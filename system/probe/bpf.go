package probe

import (
	"context"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ebpf loads the shortest program there is and attaches it to a raw tracepoint
// of the scheduler for an instant.
func ebpf(context.Context, Options) verdict {
	const fix = "run as root, or give CAP_BPF and CAP_PERFMON (Linux 5.8)"
	code := []uint64{0x00000000000000b7, 0x0000000000000095} // r0 = 0; exit
	licence := []byte("Dual MIT/GPL\x00")
	load := struct {
		kind, insnCount     uint32
		insns, licence      uint64
		logLevel, logSize   uint32
		log                 uint64
		kernVersion, flags  uint32
		name                [16]byte
		ifindex, attachType uint32
	}{kind: unix.BPF_PROG_TYPE_RAW_TRACEPOINT, insnCount: uint32(len(code)),
		insns: uint64(uintptr(unsafe.Pointer(&code[0]))), licence: uint64(address(licence))}
	prog, errno := bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&load), unsafe.Sizeof(load))
	runtime.KeepAlive(code)
	runtime.KeepAlive(licence)
	if errno != 0 {
		return no(fix, "loading a program: %v", errno)
	}
	defer unix.Close(prog)
	name := []byte("sched_switch\x00")
	open := struct {
		name uint64
		fd   uint32
		_    uint32
	}{name: uint64(address(name)), fd: uint32(prog)}
	link, errno := bpf(unix.BPF_RAW_TRACEPOINT_OPEN, unsafe.Pointer(&open), unsafe.Sizeof(open))
	runtime.KeepAlive(name)
	if errno != 0 {
		return no(fix, "attaching a program: %v", errno)
	}
	unix.Close(link)
	return yes("a program was loaded and attached to a tracepoint")
}

func bpf(cmd uintptr, attr unsafe.Pointer, size uintptr) (int, unix.Errno) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(attr), size)
	return int(fd), errno
}

// btf reads the kernel's own type information.
func btf(context.Context, Options) verdict {
	const path, fix = "/sys/kernel/btf/vmlinux", "a kernel with CONFIG_DEBUG_INFO_BTF"
	f, err := os.Open(path)
	if err != nil {
		return no(fix, "%v", err)
	}
	defer f.Close()
	var magic [2]byte
	if _, err := f.Read(magic[:]); err != nil || magic != [2]byte{0x9f, 0xeb} && magic != [2]byte{0xeb, 0x9f} {
		return no(fix, "%s is not BTF", path)
	}
	return yes("the kernel describes its types")
}

// tracefs reads a tracepoint's description.
func tracefs(context.Context, Options) verdict {
	const event = "/events/sched/sched_switch/format"
	var last error
	for _, dir := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		data, err := os.ReadFile(dir + event)
		if err == nil && len(data) > 0 {
			return yes("tracepoints can be read in %s", dir)
		}
		if last == nil || os.IsPermission(err) {
			last = err
		}
	}
	if os.IsPermission(last) {
		return no("run as root, or let this user read /sys/kernel/tracing", "%v", last)
	}
	return no("sudo mount -t tracefs tracefs /sys/kernel/tracing", "tracefs is not mounted")
}

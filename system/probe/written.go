package probe

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The interfaces of fs/proc/task_mmu.c and userfaultfd.h that x/sys has not.
const (
	pagemapScanIoctl = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	pageIsWritten    = 1 << 1
	pageIsPresent    = 1 << 3

	uffdUserModeOnly = 1
	uffdAPI          = 0xaa
	uffdioAPI        = 0xc018aa3f
	uffdioRegister   = 0xc020aa00
	uffdioProtect    = 0xc018aa06
	uffdModeWP       = 1 << 1
	uffdWP           = 1 << 0
	uffdUnpopulated  = 1 << 13
	uffdAsync        = 1 << 15
)

type pmScanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	inverted, categoryMask, categoryAnyOf, returnMask       uint64
}

type pageRegion struct{ start, end, categories uint64 }

// scan returns the page ranges of mem that have the category, as page numbers
// from its start.
func scan(mem []byte, category uint64) ([]int, error) {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("pagemap: %w", err)
	}
	defer unix.Close(fd)
	vec := make([]pageRegion, 64)
	start := uint64(address(mem))
	arg := pmScanArg{start: start, end: start + uint64(len(mem)), vec: uint64(uintptr(unsafe.Pointer(&vec[0]))), vecLen: uint64(len(vec)),
		categoryMask: category, returnMask: category}
	arg.size = uint64(unsafe.Sizeof(arg))
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScanIoctl, uintptr(unsafe.Pointer(&arg)))
	runtime.KeepAlive(vec)
	if errno != 0 {
		return nil, fmt.Errorf("PAGEMAP_SCAN: %w", errno)
	}
	page := uint64(os.Getpagesize())
	var pages []int
	for _, r := range vec[:n] {
		for a := r.start; a < r.end; a += page {
			pages = append(pages, int((a-start)/page))
		}
	}
	return pages, nil
}

// pages maps n small pages of fresh memory.
func pages(n int) (mem []byte, free func(), err error) {
	mem, free, err = anonymous(n*os.Getpagesize(), os.Getpagesize())
	if err == nil {
		unix.Madvise(mem, unix.MADV_NOHUGEPAGE) // fails only where there are none
	}
	return mem, free, err
}

// pagemapScan touches two of eight pages and asks which are there.
func pagemapScan(context.Context, Options) verdict {
	const fix = "Linux 6.7 or later"
	mem, free, err := pages(8)
	if err != nil {
		return no("", "mapping memory: %v", err)
	}
	defer free()
	mem[2*os.Getpagesize()], mem[5*os.Getpagesize()] = 1, 1
	got, err := scan(mem, pageIsPresent)
	if err != nil {
		return no(fix, "%v", err)
	}
	if len(got) != 2 || got[0] != 2 || got[1] != 5 {
		return no(fix, "pages 2 and 5 were touched, the scan says %v", got)
	}
	return yes("a scan found exactly the pages that were touched")
}

// written protects eight pages asynchronously, writes two and asks which were
// written.
func written(context.Context, Options) verdict {
	const fix = "Linux 6.7 or later, with userfaultfd allowed for this process"
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return no(fix, "userfaultfd: %v", errno)
	}
	defer unix.Close(int(fd))
	mem, free, err := pages(8)
	if err != nil {
		return no("", "mapping memory: %v", err)
	}
	defer free()
	for i := range mem {
		mem[i] = 1
	}
	start, size := uint64(address(mem)), uint64(len(mem))
	api := [3]uint64{uffdAPI, uffdAsync | uffdUnpopulated, 0}
	register := [4]uint64{start, size, uffdModeWP, 0}
	protect := [3]uint64{start, size, uffdWP}
	for _, call := range []struct {
		what string
		code uintptr
		arg  unsafe.Pointer
	}{{"asynchronous write protection", uffdioAPI, unsafe.Pointer(&api)}, {"registering memory", uffdioRegister, unsafe.Pointer(&register)}, {"write protection", uffdioProtect, unsafe.Pointer(&protect)}} {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, call.code, uintptr(call.arg)); errno != 0 {
			return no(fix, "%s: %v", call.what, errno)
		}
	}
	mem[1*os.Getpagesize()], mem[6*os.Getpagesize()] = 2, 2
	got, err := scan(mem, pageIsWritten)
	if err != nil {
		return no(fix, "%v", err)
	}
	if len(got) != 2 || got[0] != 1 || got[1] != 6 {
		return no(fix, "pages 1 and 6 were written, the scan says %v", got)
	}
	return yes("exactly the pages that were written are known, without a stop")
}

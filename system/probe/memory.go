package probe

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memfd shares a sealed memory file between two mappings, as the ring does.
func memfd(context.Context, Options) verdict {
	const fix = "a kernel or sandbox that allows memfd_create and shared mappings of it"
	fd, err := unix.MemfdCreate("tierscope-probe", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return no(fix, "memfd_create: %v", err)
	}
	defer unix.Close(fd)
	size := os.Getpagesize()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return no(fix, "growing a memory file: %v", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return no(fix, "sealing a memory file: %v", err)
	}
	var maps [2][]byte
	for i := range maps {
		if maps[i], err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return no(fix, "mapping a memory file: %v", err)
		}
		defer unix.Munmap(maps[i])
	}
	maps[0][7] = 42
	if maps[1][7] != 42 {
		return no(fix, "two mappings of a memory file do not share their bytes")
	}
	return yes("two mappings of a sealed memory file share their bytes")
}

// anonymous maps size bytes of fresh private memory, aligned to align.
func anonymous(size, align int) (mem []byte, free func(), err error) {
	all, err := unix.Mmap(-1, 0, size+align, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	skip := int(-address(all) & uintptr(align-1))
	return all[skip : skip+size], func() { unix.Munmap(all) }, nil
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// hugepages touches memory that was advised to be huge and looks whether it is.
func hugepages(context.Context, Options) verdict {
	const size = 4 << 20
	const knob = "/sys/kernel/mm/transparent_hugepage/enabled"
	setting := strings.TrimSpace(readString(knob))
	if setting == "" {
		return no("a kernel with transparent huge pages", "%s is not there", knob)
	}
	mem, free, err := anonymous(size, size)
	if err != nil {
		return no("", "mapping %d MiB: %v", size>>20, err)
	}
	defer free()
	if err := unix.Madvise(mem, unix.MADV_HUGEPAGE); err != nil {
		return no("a kernel with transparent huge pages", "madvise: %v", err)
	}
	for i := 0; i < size; i += 4096 {
		mem[i] = 1
	}
	kib, err := smapsField(mem, "AnonHugePages:")
	switch {
	case err != nil:
		return no("", "%v", err)
	case kib == 0 && strings.Contains(setting, "[never]"):
		return no("echo madvise | sudo tee "+knob, "huge pages are switched off")
	case kib == 0:
		return no("free or compact memory: echo 1 | sudo tee /proc/sys/vm/compact_memory", "asked for, but the kernel gave small pages (%s)", setting)
	}
	return yes("%d of %d MiB came in huge pages", kib>>10, size>>20)
}

// smapsField returns a field, in KiB, summed over the mappings that mem lies in.
func smapsField(mem []byte, field string) (kib uint64, err error) {
	data, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	from, to := uint64(address(mem)), uint64(address(mem))+uint64(len(mem))
	inside, found := false, false
	for line := range bytes.Lines(data) {
		word := strings.Fields(string(line))
		if len(word) == 0 {
			continue
		}
		if a, b, ok := strings.Cut(word[0], "-"); ok {
			start, err1 := strconv.ParseUint(a, 16, 64)
			end, err2 := strconv.ParseUint(b, 16, 64)
			inside = err1 == nil && err2 == nil && start < to && from < end
			continue
		}
		if inside && word[0] == field && len(word) > 1 {
			n, err := strconv.ParseUint(word[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("smaps: %w", err)
			}
			kib, found = kib+n, true
		}
	}
	if !found {
		return 0, fmt.Errorf("smaps shows no %s", strings.TrimSuffix(field, ":"))
	}
	return kib, nil
}

// clearRefs clears the referenced bits of this process, touches a page of a
// mapping and looks whether just that one shows.
func clearRefs(context.Context, Options) verdict {
	const fix = "a kernel with CONFIG_PROC_PAGE_MONITOR"
	size := 64 * os.Getpagesize()
	mem, free, err := anonymous(size, os.Getpagesize())
	if err != nil {
		return no("", "mapping memory: %v", err)
	}
	defer free()
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	for i := range mem {
		mem[i] = 1
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("1"), 0); err != nil {
		return no(fix, "%v", err)
	}
	mem[0]++
	kib, err := smapsField(mem, "Referenced:")
	if err != nil {
		return no(fix, "%v", err)
	}
	// The mapping may have joined a neighbour: more may show, never all of it.
	if kib == 0 || kib >= uint64(size)>>10 {
		return no(fix, "one page was touched, %d KiB show as referenced", kib)
	}
	return yes("referenced bits can be cleared and read")
}

func readString(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}

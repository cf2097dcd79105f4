//go:build linux

package ggml

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNoSlot says that a library calls a function in another way than through a
// jump slot (static, other processor, hidden), so the call cannot be hooked.
var ErrNoSlot = errors.New("no jump slot")

// Slot is the word through which one shared library calls a function of another.
type Slot struct {
	addr ptr
	orig uintptr
}

// relocation types that fill a slot with a function's address.
func isJump(m elf.Machine, info uint64) bool {
	t := uint32(info)
	switch m {
	case elf.EM_X86_64:
		return t == uint32(elf.R_X86_64_JMP_SLOT) || t == uint32(elf.R_X86_64_GLOB_DAT)
	case elf.EM_AARCH64:
		return t == uint32(elf.R_AARCH64_JUMP_SLOT) || t == uint32(elf.R_AARCH64_GLOB_DAT)
	}
	return false
}

// FindSlot finds the slot through which the library loaded from path calls
// symbol; orig is the function's address.
func FindSlot(path, symbol string, orig uintptr) (*Slot, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	syms, err := f.DynamicSymbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrNoSlot, err)
	}
	base, err := loadBase(path, f)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{".rela.plt", ".rela.dyn"} {
		sec := f.Section(name)
		if sec == nil {
			continue
		}
		data, err := sec.Data()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, name, err)
		}
		for ; len(data) >= 24; data = data[24:] {
			off, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
			i := int(info>>32) - 1
			if i < 0 || i >= len(syms) || syms[i].Name != symbol || !isJump(f.Machine, info) {
				continue
			}
			s := &Slot{ptr(base + off), orig}
			return s, s.Set(orig) // whether it can be written shows only here
		}
	}
	return nil, fmt.Errorf("%s calls %s in another way: %w", path, symbol, ErrNoSlot)
}

// loadBase is the address that the file's virtual address 0 was loaded at.
func loadBase(path string, f *elf.File) (uint64, error) {
	real, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	st := real.Sys().(*syscall.Stat_t)
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	for sc := bufio.NewScanner(maps); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) < 6 || fields[4] != strconv.FormatUint(st.Ino, 10) {
			continue
		}
		start, _, _ := strings.Cut(fields[0], "-")
		addr, err1 := strconv.ParseUint(start, 16, 64)
		off, err2 := strconv.ParseUint(fields[2], 16, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && off == p.Off&^4095 {
				return addr - p.Vaddr&^4095, nil
			}
		}
	}
	return 0, fmt.Errorf("%s is not mapped into this process: %w", path, ErrNoSlot)
}

// Set makes the slot lead to fn; Restore to the original. The page may be
// read-only after relocation (RELRO), so it is made writable: it is this
// process's own.
func (s *Slot) Set(fn uintptr) error {
	size := os.Getpagesize()
	page := uintptr(s.addr) &^ (uintptr(size) - 1)
	if err := unix.Mprotect(bytesAt(ptr(page), size), unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("%w: the slot's page cannot be written: %w", ErrNoSlot, err)
	}
	atomic.StoreUintptr(at[uintptr](s.addr, 0), fn)
	return nil
}

// Restore makes the slot lead to the original function.
func (s *Slot) Restore() { atomic.StoreUintptr(at[uintptr](s.addr, 0), s.orig) }

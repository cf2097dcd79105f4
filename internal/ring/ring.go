// Package ring is the one protocol between processes: a ring of records in a
// shared memory file (memfd), with one producer thread and one consumer.
//
// The file, all numbers little endian, offsets in bytes:
//
//	0     u64  magic "TSRING1\n"
//	8     u32  protocol version, 1
//	12    u32  process id of the producer (0 until it has attached)
//	16    u64  capacity of the data area, a power of two
//	24    u32  closed: 1 when the producer has written its last record
//	64    u64  head: bytes ever written (producer only)
//	128   u64  tail: bytes ever consumed (consumer only)
//	192   u64  records the producer gave up on since the ring was made
//	200   u64  ns the producer spent waiting for room
//	4096  data area
//
// A record is a header of 16 bytes (u32 payload length, u32 kind, u64 sequence
// number from 0) and its payload, padded to 8 bytes. A record never wraps: a
// padding record (kind 0) fills the end of the area. The producer writes a record
// whole and then stores head with release order, so the consumer never sees
// half of one. A producer that gives up on a record uses up its sequence number
// and, before the next record that fits, writes a gap record (kind 1, payload
// u64 count); the consumer checks that sequence numbers and gaps agree. A
// producer that dies leaves only whole records.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	magic     = 0x0a31474e49525354 // "TSRING1\n"
	version   = 1
	dataStart = 4096
	headerLen = 16

	kindPad = 0
	kindGap = 1
	// FirstKind is the first record kind that users may choose.
	FirstKind = 16
)

// ErrFull says that a record found no room in the time given.
var ErrFull = errors.New("ring is full")

type ring struct {
	mem  []byte
	data []byte
	mask uint64
}

func (r *ring) u32(off int) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[off])) }
func (r *ring) u64(off int) *uint64 { return (*uint64)(unsafe.Pointer(&r.mem[off])) }

func (r *ring) head() *uint64 { return r.u64(64) }
func (r *ring) tail() *uint64 { return r.u64(128) }

func mapFile(f *os.File) (*ring, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := st.Size()
	if size <= dataStart || (size-dataStart)&(size-dataStart-1) != 0 {
		return nil, fmt.Errorf("ring file has %d bytes, not 4096 and a power of two", size)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("ring file: mmap: %w", err)
	}
	return &ring{mem, mem[dataStart:], uint64(size) - dataStart - 1}, nil
}

func (r *ring) check() error {
	switch {
	case *r.u64(0) != magic:
		return errors.New("not a ring: wrong magic")
	case *r.u32(8) != version:
		return fmt.Errorf("ring has protocol version %d, want %d", *r.u32(8), version)
	case *r.u64(16) != r.mask+1:
		return fmt.Errorf("ring says capacity %d, file holds %d", *r.u64(16), r.mask+1)
	}
	return nil
}

// Create makes a ring whose data area has at least capacity bytes (rounded up
// to a power of two) and returns its file, to be handed to the producer. The
// consumer keeps the file open for as long as it reads.
func Create(capacity int) (*os.File, error) {
	n := 4096
	for n < capacity {
		n *= 2
	}
	fd, err := unix.MemfdCreate("tierscope-ring", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "ring")
	if err := f.Truncate(int64(dataStart + n)); err != nil {
		f.Close()
		return nil, fmt.Errorf("ring of %d bytes: %w", n, err)
	}
	r, err := mapFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	*r.u32(8) = version
	*r.u64(16) = uint64(n)
	atomic.StoreUint64(r.u64(0), magic)
	return f, unix.Munmap(r.mem)
}

// Producer writes records. One goroutine.
type Producer struct {
	*ring
	at   uint64 // bytes written
	seq  uint64
	lost uint64 // given up since the last record that fitted
}

// Attach opens the ring for writing by this process.
func Attach(f *os.File) (*Producer, error) {
	r, err := mapFile(f)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if !atomic.CompareAndSwapUint32(r.u32(12), 0, uint32(os.Getpid())) {
		return nil, fmt.Errorf("ring already has a producer, process %d", *r.u32(12))
	}
	return &Producer{ring: r}, nil
}

func padded(n int) uint64 { return (uint64(n) + headerLen + 7) &^ 7 }

// room makes sure that a record with n payload bytes fits behind at, padding
// out the end of the area if it must, and reports whether it does.
func (p *Producer) room(n int) bool {
	need := padded(n)
	if rest := p.mask + 1 - p.at&p.mask; rest < need {
		if p.at+rest+need-atomic.LoadUint64(p.tail()) > p.mask+1 {
			return false
		}
		if rest >= headerLen {
			p.put(kindPad, p.data[p.at&p.mask:], int(rest)-headerLen, 0)
		}
		p.at += rest
		return true
	}
	return p.at+need-atomic.LoadUint64(p.tail()) <= p.mask+1
}

func (p *Producer) put(kind uint32, at []byte, n int, seq uint64) {
	binary.LittleEndian.PutUint32(at, uint32(n))
	binary.LittleEndian.PutUint32(at[4:], kind)
	binary.LittleEndian.PutUint64(at[8:], seq)
}

// Write appends a record of the given kind (from FirstKind up), waiting at
// most wait for room. ErrFull counts the record as lost; the consumer learns
// of it. A record longer than half the ring never fits.
func (p *Producer) Write(kind uint32, payload []byte, wait time.Duration) error {
	if padded(len(payload)) > (p.mask+1)/2 {
		p.giveUp()
		return fmt.Errorf("record of %d bytes in a ring of %d: %w", len(payload), p.mask+1, ErrFull)
	}
	if p.lost > 0 {
		if !p.waitRoom(8, wait) {
			p.giveUp()
			return ErrFull
		}
		at := p.data[p.at&p.mask:]
		p.put(kindGap, at, 8, p.seq)
		binary.LittleEndian.PutUint64(at[headerLen:], p.lost)
		p.at += padded(8)
		p.lost = 0
	}
	if !p.waitRoom(len(payload), wait) {
		p.giveUp()
		atomic.StoreUint64(p.head(), p.at)
		return ErrFull
	}
	at := p.data[p.at&p.mask:]
	p.put(kind, at, len(payload), p.seq)
	copy(at[headerLen:], payload)
	p.at += padded(len(payload))
	p.seq++
	atomic.StoreUint64(p.head(), p.at)
	return nil
}

func (p *Producer) giveUp() {
	p.seq++
	p.lost++
	atomic.AddUint64(p.u64(192), 1)
}

func (p *Producer) waitRoom(n int, wait time.Duration) bool {
	if p.room(n) {
		return true
	}
	// A gap record may have been written: let the consumer see it, it frees room.
	atomic.StoreUint64(p.head(), p.at)
	for start := time.Now(); time.Since(start) < wait; {
		time.Sleep(200 * time.Microsecond)
		if p.room(n) {
			atomic.AddUint64(p.u64(200), uint64(time.Since(start)))
			return true
		}
	}
	return false
}

// Close says that no record will follow. A gap still pending stays visible in
// the count of given up records.
func (p *Producer) Close() error {
	atomic.StoreUint64(p.head(), p.at)
	atomic.StoreUint32(p.u32(24), 1)
	return unix.Munmap(p.mem)
}

// Package process samples what a process uses: CPU, memory, faults and I/O, of
// all its threads together, from files of /proc that are held open. A reading
// costs a few microseconds and allocates nothing.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tierscope/tierscope/run"
)

// Sample is one reading. Counters run from the start of the process and include
// threads that have ended.
type Sample struct {
	Time        uint64 `json:"time_ns"`           // the run's clock
	CPU         uint64 `json:"cpu_ns"`            // user and system time of all threads
	User        uint64 `json:"user_ns"`           // user time alone, in steps of 10 ms
	RSS         uint64 `json:"rss_bytes"`         // resident; the kernel's count lags by up to some 100 KiB a CPU
	RSSShared   uint64 `json:"rss_shared_bytes"`  // of it pages of files (mapped weights) and shared memory
	Virtual     uint64 `json:"virtual_bytes"`     // mapped
	MinorFaults uint64 `json:"minor_faults"`      // served without I/O
	MajorFaults uint64 `json:"major_faults"`      // waited for I/O
	ReadBytes   uint64 `json:"read_bytes"`        // fetched from storage; 0 unless IOKnown
	WriteBytes  uint64 `json:"write_bytes"`       // sent to the page cache for storage; 0 unless IOKnown
	ReadCalls   uint64 `json:"read_calls_bytes"`  // asked for by read calls, cached or not; 0 unless IOKnown
	WriteCalls  uint64 `json:"write_calls_bytes"` // given to write calls; 0 unless IOKnown
	Threads     uint32 `json:"threads"`
	IOKnown     bool   `json:"io_known"` // I/O of another user's process cannot be read without privilege
}

// CPUPercent returns the CPU that was used from a to b, a hundred a CPU; NaN if no
// time passed.
func CPUPercent(a, b Sample) float64 {
	if b.Time <= a.Time {
		return nan
	}
	return 100 * (float64(b.CPU) - float64(a.CPU)) / float64(b.Time-a.Time)
}

// ErrGone says that the process has ended.
var ErrGone = errors.New("process has ended")

// Reader reads samples of one process. It never confuses the process with a later
// one of the same id. One goroutine at a time.
type Reader struct {
	pid      int
	stat     *os.File
	statm    *os.File
	io       *os.File // nil: not readable
	cpuClock int32
	buf      [2048]byte
}

// NewReader opens the process. One that does not exist is an error that wraps
// [ErrGone]. Close it.
func NewReader(pid int) (*Reader, error) {
	open := func(name string) (*os.File, error) { return os.Open(fmt.Sprintf("/proc/%d/%s", pid, name)) }
	r := &Reader{pid: pid, cpuClock: int32(^pid<<3 | 2)} // the kernel's MAKE_PROCESS_CPUCLOCK, CPUCLOCK_SCHED
	var err error
	if r.stat, err = open("stat"); err == nil {
		r.statm, err = open("statm")
	}
	if err != nil {
		r.Close()
		if os.IsNotExist(err) || errors.Is(err, unix.ESRCH) {
			return nil, run.Errorf(run.Misuse, "process %d: %w", pid, ErrGone)
		}
		return nil, err
	}
	if r.io, err = open("io"); err == nil {
		// The right is checked at each read, not when it is opened.
		if _, err = r.io.ReadAt(r.buf[:1], 0); err != nil {
			r.io.Close()
		}
	}
	if err != nil {
		r.io = nil
	}
	return r, nil
}

// Close closes the reader.
func (r *Reader) Close() {
	for _, f := range []*os.File{r.stat, r.statm, r.io} {
		if f != nil {
			f.Close()
		}
	}
}

// Read fills in s. It returns [ErrGone] when the process has ended, also while
// its parent has not yet waited for it.
func (r *Reader) Read(s *Sample) error {
	s.Time = run.Now()
	text, err := r.read(r.stat)
	if err != nil {
		return err
	}
	var st stat
	if err := st.parse(text); err != nil {
		return fmt.Errorf("/proc/%d/stat: %w", r.pid, err)
	}
	if st.state == 'Z' || st.state == 'X' {
		return ErrGone
	}
	s.User, s.CPU = st.utime*tick, (st.utime+st.stime)*tick
	s.MinorFaults, s.MajorFaults, s.Threads, s.Virtual = st.minflt, st.majflt, uint32(st.threads), st.vsize
	var t unix.Timespec
	if unix.ClockGettime(r.cpuClock, &t) == nil {
		s.CPU = uint64(t.Sec)*1e9 + uint64(t.Nsec)
	}

	if text, err = r.read(r.statm); err != nil {
		return err
	}
	var pages [3]uint64
	if err := parseStatm(text, &pages); err != nil {
		return fmt.Errorf("/proc/%d/statm: %w", r.pid, err)
	}
	s.RSS, s.RSSShared = pages[1]*pageSize, pages[2]*pageSize

	s.IOKnown = r.io != nil
	if r.io == nil {
		return nil
	}
	if text, err = r.read(r.io); err != nil {
		return err
	}
	return parseIO(text, s)
}

func (r *Reader) read(f *os.File) ([]byte, error) {
	n, err := f.ReadAt(r.buf[:], 0)
	if n == 0 {
		// An ended process reads as ESRCH or as nothing.
		if err == nil || errors.Is(err, unix.ESRCH) || errors.Is(err, io.EOF) {
			return nil, ErrGone
		}
		return nil, err
	}
	return bytes.TrimRight(r.buf[:n], "\n"), nil
}

package run

import (
	"math"

	"golang.org/x/sys/unix"
)

// Now returns CLOCK_MONOTONIC in ns, the time of every live timestamp. It is the
// clock of all processes of this machine. Safe for concurrent use.
func Now() uint64 { return clock(unix.CLOCK_MONOTONIC) }

func clock(id int32) uint64 {
	var t unix.Timespec
	// Fails only for a clock that does not exist or a bad pointer.
	if err := unix.ClockGettime(id, &t); err != nil {
		panic("clock_gettime: " + err.Error())
	}
	return uint64(t.Sec)*1e9 + uint64(t.Nsec)
}

// ClockReading relates the run's clock to wall time at one moment.
type ClockReading struct {
	Monotonic uint64 `json:"monotonic_ns"` // CLOCK_MONOTONIC, ns
	Wall      int64  `json:"wall_ns"`      // CLOCK_REALTIME, ns since 1970-01-01 UTC
	Offset    int64  `json:"offset_ns"`    // Wall - Monotonic
	Error     uint64 `json:"error_ns"`     // the true offset lies within Offset ± Error
}

// clockTries is how often ClockOffset brackets the wall clock; the narrowest
// bracket is kept, so one undisturbed try suffices.
const clockTries = 16

// ClockOffset measures the offset of wall time to the run's clock: wall time is
// read between two readings of the clock, and the error is half of what lies
// between them.
func ClockOffset() ClockReading {
	best := ClockReading{Error: math.MaxUint64}
	for range clockTries {
		before := clock(unix.CLOCK_MONOTONIC)
		wall := int64(clock(unix.CLOCK_REALTIME))
		after := clock(unix.CLOCK_MONOTONIC)
		half := (after - before + 1) / 2
		if half < best.Error {
			mono := before + (after-before)/2
			best = ClockReading{mono, wall, wall - int64(mono), half}
		}
	}
	return best
}

// Clocks is what the metadata says about time.
type Clocks struct {
	// Clock says what the timestamps are: monotonic, perf, instructions, none.
	Clock string `json:"clock"`
	// Unit is ns, or what an imported clock counts.
	Unit string `json:"unit"`
	// Readings relate it to wall time, in the order they were taken.
	Readings []ClockReading `json:"wall_readings,omitempty"`
}

// Kinds of clocks of a run. Figures that need time are withheld with the last
// two.
const (
	ClockMonotonic    = "monotonic"
	ClockPerf         = "perf"
	ClockInstructions = "instructions"
	ClockNone         = "none"
)

// Read appends a reading of the machine's clocks.
func (c *Clocks) Read() {
	if c.Clock == "" {
		c.Clock, c.Unit = ClockMonotonic, "ns"
	}
	c.Readings = append(c.Readings, ClockOffset())
}

// Step returns by how many ns wall time moved against the run's clock between
// the first and the last reading, and the error bound of that difference. More
// than the bound means that wall time was set or slewed during the run.
func (c *Clocks) Step() (ns int64, err uint64) {
	if len(c.Readings) < 2 {
		return 0, 0
	}
	a, b := c.Readings[0], c.Readings[len(c.Readings)-1]
	return b.Offset - a.Offset, a.Error + b.Error
}

// WallTime returns the wall time of t, a reading of the run's clock, in ns since
// 1970, by the nearest reading. False without readings.
func (c *Clocks) WallTime(t uint64) (int64, bool) {
	var best ClockReading
	near := uint64(math.MaxUint64)
	for _, r := range c.Readings {
		d := r.Monotonic - t
		if t > r.Monotonic {
			d = t - r.Monotonic
		}
		if d <= near {
			near, best = d, r
		}
	}
	return int64(t) + best.Offset, len(c.Readings) > 0
}

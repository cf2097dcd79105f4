package machine

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/procfs"

	"github.com/tierscope/tierscope/run"
)

// Periods of the baseline.
const (
	BaselineTime   = 2 * time.Second
	BaselinePeriod = 200 * time.Millisecond
)

// Baseline watches the machine for d before a run: CPU % of all CPUs in each
// period, its mean and maximum, memory and load. Every reading covers a whole
// period; there is none that covers next to nothing. It ends early, with the
// context's error, when ctx does.
func (m Machine) Baseline(ctx context.Context, d, period time.Duration) (*run.Baseline, error) {
	fs, err := procfs.NewFS(m.path("/proc"))
	if err != nil {
		return nil, err
	}
	last, err := cpuTime(fs)
	if err != nil {
		return nil, err
	}
	b := &run.Baseline{Time: float64(run.Now()) / 1e9}
	tick := time.NewTicker(period)
	defer tick.Stop()
	var sum float64
	n := 0
	for end := time.Now().Add(d); n == 0 || time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		now, err := cpuTime(fs)
		if err != nil {
			return nil, err
		}
		// The counters move in steps of 10 ms: a late tick may follow at once.
		if now.total <= last.total {
			continue
		}
		pct := 100 * (now.busy - last.busy) / (now.total - last.total)
		pct = min(max(pct, 0), 100)
		sum += pct
		b.CPUPercentMax = max(b.CPUPercentMax, pct)
		n++
		last = now
	}
	b.CPUPercent = sum / float64(n)
	return b, memory(fs, b)
}

// times are CPU seconds of all CPUs since boot.
type times struct{ busy, total float64 }

func cpuTime(fs procfs.FS) (times, error) {
	s, err := fs.Stat()
	if err != nil {
		return times{}, err
	}
	c := s.CPUTotal
	// Guest time is part of user time already.
	total := c.User + c.Nice + c.System + c.Idle + c.Iowait + c.IRQ + c.SoftIRQ + c.Steal
	return times{total - c.Idle - c.Iowait, total}, nil
}

func memory(fs procfs.FS, b *run.Baseline) error {
	mem, err := fs.Meminfo()
	if err != nil {
		return err
	}
	if mem.MemTotalBytes == nil || mem.MemAvailableBytes == nil || *mem.MemTotalBytes == 0 {
		return errors.New("meminfo has no total or available memory")
	}
	total, free := float64(*mem.MemTotalBytes), float64(*mem.MemAvailableBytes)
	b.MemTotalMiB, b.MemAvailableMiB = total/(1<<20), free/(1<<20)
	b.MemUsedPercent = 100 * (total - free) / total
	if load, err := fs.LoadAvg(); err == nil {
		b.Load1 = run.Known(load.Load1)
	}
	return nil
}

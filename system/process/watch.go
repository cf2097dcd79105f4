package process

import (
	"errors"
	"sync"
	"time"
)

// Watcher samples a process periodically until it ends or Stop is called. Memory
// is bounded: when its list is full, every second sample goes and the period
// doubles. Counters lose nothing by that, and the peak is that of all readings.
type Watcher struct {
	r      *Reader
	period time.Duration
	max    int
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once

	res Watched
}

// Watched is what a [Watcher] saw.
type Watched struct {
	Samples []Sample
	Period  time.Duration // of Samples at the end
	PeakRSS uint64        // bytes, of all readings
	Late    uint64        // readings that came later than a whole period: the machine or this process was too busy
	Gone    bool          // the process ended first
	Err     error         // why sampling stopped early
}

// Watch begins to sample pid every period, keeping at most max samples (at least
// 16). The first sample is taken before it returns.
func Watch(pid int, period time.Duration, max int) (*Watcher, error) {
	r, err := NewReader(pid)
	if err != nil {
		return nil, err
	}
	if max < 16 {
		max = 16
	}
	w := &Watcher{r: r, period: period, max: max, stop: make(chan struct{}), done: make(chan struct{})}
	w.res.Samples = make([]Sample, 0, max)
	if !w.take() {
		r.Close()
		return nil, w.res.Err
	}
	go w.loop()
	return w, nil
}

func (w *Watcher) loop() {
	defer close(w.done)
	defer w.r.Close()
	t := time.NewTicker(w.period)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			w.take()
			return
		case at := <-t.C:
			if time.Since(at) > w.period {
				w.res.Late++
			}
			if !w.take() {
				return
			}
			if len(w.res.Samples) == w.max {
				w.thin()
				t.Reset(w.period)
			}
		}
	}
}

// take appends a sample; false when there are no more.
func (w *Watcher) take() bool {
	var s Sample
	if err := w.r.Read(&s); err != nil {
		w.res.Err = err
		if errors.Is(err, ErrGone) {
			w.res.Gone = true
		}
		return false
	}
	w.res.PeakRSS = max(w.res.PeakRSS, s.RSS)
	w.res.Samples = append(w.res.Samples, s)
	return true
}

// thin drops every second sample but never the first.
func (w *Watcher) thin() {
	s := w.res.Samples
	for i := 2; i < len(s); i += 2 {
		s[i/2] = s[i]
	}
	w.res.Samples = s[:(len(s)+1)/2]
	w.period *= 2
}

// Stop takes a last sample, if the process still lives, and returns what was
// seen. It may be called again.
func (w *Watcher) Stop() Watched {
	w.once.Do(func() { close(w.stop) })
	<-w.done
	w.res.Period = w.period
	if w.res.Gone {
		w.res.Err = nil
	}
	return w.res
}

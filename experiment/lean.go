package experiment

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// leanHeap is what the Go runtime may hold while a run is finished, in bytes: with the
	// pages of the program's own file, about 25 MiB, less than 64 MiB.
	leanHeap = 32 << 20
	// leanEvery is the number of batches after which what is live is looked at.
	leanEvery = 64
)

// lean keeps the garbage of this process small while it finishes a run, for the
// observer's memory is part of what it costs. Where more than the limit is really in
// use the limit rises with it: collecting garbage all the time would find none. One
// goroutine.
type lean struct {
	before, limit int64 // limit 0: the user has set one, which stays
	batches       int
	live          []metrics.Sample
}

func newLean() *lean {
	l := &lean{before: debug.SetMemoryLimit(-1), live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	if l.before == math.MaxInt64 {
		l.limit = leanHeap
		debug.SetMemoryLimit(l.limit)
	}
	return l
}

// look raises the limit where it must.
func (l *lean) look() {
	if l.batches++; l.limit == 0 || l.batches%leanEvery != 0 {
		return
	}
	metrics.Read(l.live)
	if live := int64(l.live[0].Value.Uint64()); live > l.limit/4*3 {
		l.limit = live / 2 * 3
		debug.SetMemoryLimit(l.limit)
	}
}

// end gives the limit back.
func (l *lean) end() {
	if l.limit != 0 {
		debug.SetMemoryLimit(l.before)
	}
}

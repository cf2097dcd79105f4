// Package mrm gives the ten tables of mrm-trace 0.1.23 under its names and to
// its digits, in one pass over batches and bounded memory.
//
// The tables take every access as a point: its time, address, page, operation,
// region and region type, nothing else. Their definitions are mrm-trace's, also
// where better ones exist (retention is first store to last load of a whole
// region, intervals are by exact address, a page shared by k regions counts k
// times). Where mrm-trace contradicts itself, retention is signed and clipped at
// 0; where one region lacks a store or a load it computes the times of that
// column in doubles, and so does this.
//
// Rows without a region id count for inter-access intervals only. A missing
// page follows from the address. Of rows without time or address that much is
// taken which does not need them; [Result.Notes] says how many there were.
//
// # How
//
// Each row updates its region (times, counts, stride to the row before) and is
// logged, 24 bytes, in one of 64 partitions by hash of its page. Beyond the
// memory limit logs go to a temporary file. At the end each partition is grouped
// by address in tables that fit the cache, which gives intervals, stores per
// address and distinct pages, whatever the order of the rows in time. Strides
// need a region's rows by time: a region whose rows came out of order is read
// from the logs again and sorted. Quantiles are exact: the values that may hold
// a rank are counted until those that do are known.
//
// Memory is the limit, about 150 bytes for each region, and what sorting out
// one partition takes.
package mrm

import (
	"math"

	"github.com/tierscope/tierscope/internal/spill"
	"github.com/tierscope/tierscope/observe"
)

// Options of a [State]. The zero value is all tables with 1 GiB of memory.
type Options struct {
	// Memory is how many bytes logs may hold before they go to a file;
	// 0 is 1 GiB.
	Memory int64
	// TempDir is where that file lies; "" is the system's directory.
	TempDir string
	// FirstRow is the number of the first row that the state will see, for
	// states of parts of one stream that are joined by [State.Follow].
	FirstRow uint64
	// Metrics limits what is computed; 0 is all.
	Metrics Metrics
	// Check is called now and then while tables are worked out; its error
	// ends that.
	Check func() error

	// open replaces how the temporary file is made, for tests.
	open func(dir string) (spill.File, error)
}

const (
	partBits = 6
	parts    = 1 << partBits
	blockLen = 2048 // rows worked on at a time, so that they stay in the cache

	strideLogs = 16
	ownStrides = 1 << 16 // strides after which a region gets a log of its own
)

// State is the ten tables in the making. It is an
// [github.com/tierscope/tierscope/analyze.Following]; one goroutine at a time.
// Close it.
type State struct {
	opt   Options
	want  Metrics
	store *spill.Store
	also  []*spill.Store // stores of states joined to this one
	rows  uint64         // seen so far

	labels  labels
	regions []region
	runs    []stretch // by tag of the logs
	logs    [parts]spill.Log[record]
	strides [strideLogs]spill.Log[stride]
	notes   notes

	reordered int32 // tag from which the shared logs count for disordered regions

	in input
}

// stretch is a run of rows whose log records count rows from base and name
// labels and regions of their own, if the tables are there.
type stretch struct {
	base    uint64
	labels  []uint32
	regions []uint32
}

// record is a row as the partitions keep it.
type record struct {
	addr, time uint64
	bits       uint32 // label, flags, operation
	seq        uint32 // row from the base of the run
}

// What a record's bits hold: the label from labelShift on, below it flags.
const (
	opLoad  = 0
	opStore = 1
	opOther = 2
	opNone  = 3 // operation missing; never logged
	opPage  = 3 // of a log: addr is the page of the row, if not that of its address

	opMask     = 3
	flagNoPage = 4 // the page is not that of the address; a record of its own has it
	flagNoTime = 8
	labelShift = 4
	maxLabels  = 1 << (32 - labelShift)
)

// stride is the distance between a row of a region and the row before it.
type stride struct {
	region, lo, hi uint32
}

type notes struct {
	noRegion, noType, noTime, noAddress, otherOp, noOp uint64
}

// New returns a state that has seen nothing.
func New(o Options) *State {
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	s := &State{opt: o, want: o.Metrics, runs: []stretch{{base: o.FirstRow}}}
	if s.want == 0 {
		s.want = AllMetrics
	}
	if o.open != nil {
		s.store = spill.NewStoreOn(o.TempDir, o.Memory, o.open)
	} else {
		s.store = spill.NewStore(o.TempDir, o.Memory)
	}
	for i := range s.logs {
		s.logs[i] = spill.NewLog[record](s.store)
	}
	for i := range s.strides {
		s.strides[i] = spill.NewLog[stride](s.store)
	}
	s.labels.init()
	return s
}

// Columns implements [github.com/tierscope/tierscope/analyze.Analysis].
func (s *State) Columns() observe.Cols {
	return observe.ColTime | observe.ColAddress | observe.ColAddressPage | observe.ColOpType |
		observe.ColRegionType | observe.ColRegionID
}

// Rows returns the number of rows seen.
func (s *State) Rows() uint64 { return s.rows }

// Spilled returns the bytes that went to temporary files so far.
func (s *State) Spilled() int64 {
	n := s.store.Spilled()
	for _, o := range s.also {
		n += o.Spilled()
	}
	return n
}

// Close gives back the temporary file.
func (s *State) Close() error {
	err := s.store.Close()
	for _, o := range s.also {
		if e := o.Close(); err == nil {
			err = e
		}
	}
	return err
}

// spillOver moves logs to the file if they hold too much.
func (s *State) spillOver() error {
	for pass := 0; pass < 2 && s.store.Over(); pass++ {
		for i := range s.logs {
			if err := s.logs[i].Spill(pass == 1); err != nil {
				return err
			}
		}
		for i := range s.strides {
			if err := s.strides[i].Spill(pass == 1); err != nil {
				return err
			}
		}
		for i := range s.regions {
			if own := s.regions[i].own; own != nil {
				if err := own.Spill(pass == 1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// partOf returns the partition of a page.
func partOf(page uint64) uint64 { return page * 0x9E3779B97F4A7C15 >> (64 - partBits) }

// nextRun begins a run once row numbers no longer fit a record.
func (s *State) nextRun() {
	s.runs = append(s.runs, stretch{base: s.opt.FirstRow + s.rows})
	tag := int32(len(s.runs) - 1)
	for i := range s.logs {
		s.logs[i].SetTag(tag)
	}
	for i := range s.strides {
		s.strides[i].SetTag(tag)
	}
}

func (s *State) seq(row uint64) uint32 { return uint32(row - s.runs[len(s.runs)-1].base) }

// fits reports whether n more rows can be numbered in the current run.
func (s *State) fits(n int) bool {
	return s.opt.FirstRow+s.rows+uint64(n)-s.runs[len(s.runs)-1].base <= math.MaxUint32
}

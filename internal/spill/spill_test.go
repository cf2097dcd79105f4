package spill

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

type rec struct {
	a uint64
	b uint32
}

// TestLog appends, spills, changes tags and adopts in random order and reads back
// what a slice would hold.
func TestLog(t *testing.T) {
	type tagged struct {
		tag int32
		rec rec
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s, s2 := NewStore(dir, 1<<20), NewStore(dir, 1<<20)
		defer s.Close()
		defer s2.Close()
		l, other := NewLog[rec](s), NewLog[rec](s2)
		var want, wantOther []tagged
		n, tag := uint64(0), int32(0)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			var err error
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				for range rapid.IntRange(1, 400).Draw(t, "n") {
					l.Append(rec{n, uint32(n)})
					want = append(want, tagged{tag, rec{n, uint32(n)}})
					n++
				}
			case 2:
				err = l.Spill(false)
			case 3:
				err = l.Spill(true)
				if l.Memory() != 0 {
					t.Fatalf("%d bytes held after all was spilled", l.Memory())
				}
			case 4:
				tag = rapid.Int32Range(0, 3).Draw(t, "tag")
				l.SetTag(tag)
			case 5:
				for range 100 {
					other.Append(rec{n, 1})
					wantOther = append(wantOther, tagged{10, rec{n, 1}})
					n++
				}
				if rapid.Bool().Draw(t, "spill other") {
					err = other.Spill(true)
				}
			case 6:
				l.Adopt(&other, 10)
				want, wantOther = append(want, wantOther...), nil
				if other.Len() != 0 || s2.Used() != 0 {
					t.Fatalf("an adopted log has %d records, its store %d bytes", other.Len(), s2.Used())
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if l.Len() != uint64(len(want)) || s.Used() != l.Memory() {
			t.Fatalf("%d records, want %d; store uses %d, log %d", l.Len(), len(want), s.Used(), l.Memory())
		}
		var got []tagged
		err := l.Each(func(tag int32, recs []rec) error {
			for _, r := range recs {
				got = append(got, tagged{tag, r})
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d records read back, want %d (%v)", len(got), len(want), err)
		}
		l.Free()
		if l.Len() != 0 || s.Used() != 0 {
			t.Fatalf("a freed log has %d records, its store %d bytes", l.Len(), s.Used())
		}
	})
}

func TestSelect(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() uint64{
		"uniform":           r.Uint64,
		"small":             func() uint64 { return r.Uint64N(1500) },
		"one value":         func() uint64 { return 1_000_000_007 },
		"narrow":            func() uint64 { return 1<<40 + r.Uint64N(1<<20) },
		"two far apart":     func() uint64 { return r.Uint64N(2) * ^uint64(0) },
		"one bucket, wide":  func() uint64 { return 1<<63 + r.Uint64N(1<<52) },
		"exponential":       func() uint64 { return uint64(r.ExpFloat64() * 1e9) },
		"half one, half no": func() uint64 { return max(1<<30, r.Uint64N(1<<31)) },
	} {
		for _, n := range []int{1, 2, 1000, gatherMax, 3*gatherMax + 1} {
			s := NewStore(t.TempDir(), 1<<20)
			l := NewLog[uint64](s)
			var vals []uint64
			for i := range n {
				v := draw()
				l.Append(v)
				vals = append(vals, v)
				if i%100_000 == 0 {
					if err := l.Spill(true); err != nil {
						t.Fatal(err)
					}
				}
			}
			slices.Sort(vals)
			ranks := []uint64{uint64(n - 1), 0, uint64(n / 2), uint64(n / 2), uint64(n * 9 / 10), uint64(n * 99 / 100)}
			got, err := Select(&l, ranks)
			if err != nil {
				t.Fatal(err)
			}
			for i, k := range ranks {
				if got[i] != vals[k] {
					t.Errorf("%s: rank %d of %d is %d, want %d", name, k, n, got[i], vals[k])
				}
			}
			s.Close()
		}
	}
}

func TestLogBuckets(t *testing.T) {
	next := uint64(0)
	for b := range logBuckets {
		lo, hi := logBounds(b)
		if lo != next || logBucket(lo) != b || logBucket(hi) != b {
			t.Fatalf("bucket %d is %d to %d, begins at %d; its ends are in %d and %d", b, lo, hi, next, logBucket(lo), logBucket(hi))
		}
		next = hi + 1
	}
	if next != 0 {
		t.Errorf("buckets end at %d", next-1)
	}
}

func TestSorter(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := NewStore(dir, 1)
		defer s.Close()
		sorter := NewSorter(s, 0, func(a, b rec) int { return cmp.Compare(a.a, b.a) })
		n := rapid.IntRange(0, 9000).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		want := make([]rec, n)
		for i := range want {
			want[i] = rec{r.Uint64(), uint32(i)}
			if err := sorter.Add(want[i]); err != nil {
				t.Fatal(err)
			}
		}
		slices.SortFunc(want, func(a, b rec) int { return cmp.Compare(a.a, b.a) })
		var got []rec
		if err := sorter.Each(func(v rec) error { got = append(got, v); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d records out of order or lost", n)
		}
		if (s.Spilled() > 0) != (n > 1024) {
			t.Fatalf("%d records, %d bytes spilled", n, s.Spilled())
		}
	})
}

// full is a file that has no room behind a number of bytes.
type full struct {
	File
	room int64
}

func (f *full) WriteAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > f.room {
		n, err := f.File.WriteAt(b[:max(0, f.room-off)], off)
		if err == nil {
			err = &os.PathError{Op: "write", Path: "spill", Err: syscall.ENOSPC}
		}
		return n, err
	}
	return f.File.WriteAt(b, off)
}

// TestFull runs out of disk: what is in memory stays, the error says why.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	s := NewStoreOn(dir, 1, func(dir string) (File, error) {
		f, err := openTemp(dir)
		return &full{f, 10_000}, err
	})
	defer s.Close()
	l := NewLog[uint64](s)
	for i := range uint64(5000) {
		l.Append(i)
	}
	if err := l.Spill(true); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("spilling to a full disk: %v", err)
	}
	next := uint64(0)
	err := l.Each(func(_ int32, v []uint64) error {
		for _, x := range v {
			if x != next {
				return errors.New("a value is missing")
			}
			next++
		}
		return nil
	})
	if err != nil || next != 5000 {
		t.Errorf("%d values left after the disk was full: %v", next, err)
	}
}

// TestNoTrace checks that the file has no name.
func TestNoTrace(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(dir, 1)
	defer s.Close()
	l := NewLog[uint64](s)
	l.Append(1)
	if err := l.Spill(true); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 || s.Spilled() != 8 {
		t.Errorf("%d bytes spilled, %v in the directory (%v)", s.Spilled(), names, err)
	}
}

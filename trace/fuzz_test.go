package trace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// touch looks at values of every column, and at the string of every code.
func touch(b *observe.Batch) {
	some := *b
	some.Len = min(b.Len, 100)
	rows{}.batch(&some)
	for _, l := range layout {
		w, ok := l.writer().(*batchText)
		if !ok {
			continue
		}
		for i := range b.Len {
			w.at(b).Text(i)
		}
	}
}

var errEnough = errors.New("enough")

// readHostile reads whatever it can of data, up to a limit of rows, and fails
// on anything but a Corrupt error.
func readHostile(t *testing.T, path string) {
	r, err := Open(path)
	if err == nil {
		defer r.Close()
		n := 0
		err = r.Read(observe.ColsAll, func(b *observe.Batch) error {
			if n += b.Len; n > 1<<18 {
				return errEnough
			}
			touch(b)
			return nil
		})
	}
	if err != nil && err != errEnough && run.ClassOf(err) != run.Corrupt {
		t.Errorf("class %d: %v", run.ClassOf(err), err)
	}
}

func FuzzReader(f *testing.F) {
	dir := f.TempDir()
	small := filepath.Join(dir, "small.parquet")
	w, err := Create(small, Options{Compression: "none", RowGroupRows: 40})
	if err != nil {
		f.Fatal(err)
	}
	b := points(60, 1<<30, 1)
	b.Layer = observe.SliceOf(make([]int32, 60))
	b.Layer.Nulls = make([]bool, 60)
	b.Layer.Nulls[7] = true
	if err := errors.Join(w.Accesses(b), w.Close()); err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{small, "testdata/mrm/analyse_single_load.parquet", "testdata/mrm/analyse_mixed_small.parquet"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)*2/3])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		readHostile(t, path)
		for _, read := range []func() error{
			func() error { return ReadObjects(path, func(*observe.Object) error { return errEnough }) },
			func() error { return ReadRegionMap(path, func(*RegionRow) error { return errEnough }) },
			func() error { return ReadKVBlocks(path, func(*KVBlockRow) error { return errEnough }) },
		} {
			if err := read(); err != nil && err != errEnough && run.ClassOf(err) != run.Corrupt {
				t.Errorf("class %d: %v", run.ClassOf(err), err)
			}
		}
	})
}

// TestDamagedBytes flips bytes of small files, one at a time: what comes is an
// error or rows, never a panic. Some bytes of a footer make a valid file of
// other content, so the rows are not judged.
func TestDamagedBytes(t *testing.T) {
	dir := t.TempDir()
	ours := filepath.Join(dir, "ours")
	writePoints(t, ours, Options{}, 1, 1<<14)
	bad := filepath.Join(dir, "bad")
	corrupt := 0
	for _, path := range []string{"testdata/mrm/analyse_mixed_small.parquet", ours} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := max(0, len(data)-7000); i < len(data); i += 11 {
			old := data[i]
			data[i] ^= byte(1 << (i % 8))
			if err := os.WriteFile(bad, data, 0o600); err != nil {
				t.Fatal(err)
			}
			data[i] = old
			r, err := Open(bad)
			if err == nil {
				err = r.Read(observe.ColsCompat, func(b *observe.Batch) error { return nil })
				r.Close()
			}
			if err == nil {
				continue
			}
			if corrupt++; run.ClassOf(err) != run.Corrupt {
				t.Fatalf("%s, byte %d: class %d: %v", path, i, run.ClassOf(err), err)
			}
		}
	}
	if corrupt < 250 {
		t.Errorf("only %d of the damaged files were refused", corrupt)
	}
}

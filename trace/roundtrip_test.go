package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/observe"
)

// rows is a trace as text, one line a row and column: the slow, plain way to
// say what is in a batch.
type rows map[string][]string

func (r rows) batch(b *observe.Batch) {
	for _, l := range layout {
		r[l.name] = append(r[l.name], cells(l, b)...)
	}
}

func numText[T observe.Number](c *observe.Column[T], n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "null"
		if !c.Null(i) {
			out[i] = fmt.Sprint(c.At(i))
		}
	}
	return out
}

func cells(l layoutColumn, b *observe.Batch) []string {
	switch w := l.writer().(type) {
	case *batchText:
		s := w.at(b)
		out := make([]string, b.Len)
		for i := range out {
			out[i] = "null"
			if !s.Null(i) {
				out[i] = "=" + s.Text(i)
			}
		}
		return out
	case *batchNum[uint8]:
		return numText(w.at(b), b.Len)
	case *batchNum[uint16]:
		return numText(w.at(b), b.Len)
	case *batchNum[uint32]:
		return numText(w.at(b), b.Len)
	case *batchNum[uint64]:
		return numText(w.at(b), b.Len)
	case *batchNum[int32]:
		return numText(w.at(b), b.Len)
	}
	panic(l.name)
}

// drawColumn draws a column of n rows in any form.
func drawColumn[T observe.Number](t *rapid.T, name string, n int, draw func(*rapid.T) T) observe.Column[T] {
	c := observe.Column[T]{Form: observe.Form(rapid.IntRange(0, 3).Draw(t, name+" form"))}
	c.First = draw(t)
	c.Step = T(rapid.SampledFrom([]int{0, 1, 3, -1, 1 << 20}).Draw(t, name+" step"))
	switch c.Form {
	case observe.Slice:
		c.Values = make([]T, n)
		few := rapid.Bool().Draw(t, name+" few")
		for i := range c.Values {
			c.Values[i] = c.First
			if !few || i%7 == 3 {
				c.Values[i] = draw(t)
			}
		}
	case observe.Absent:
		return observe.Column[T]{}
	}
	switch rapid.IntRange(0, 3).Draw(t, name+" nulls") {
	case 0:
		c.Nulls = make([]bool, n)
	case 1:
		c.Nulls = rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, name+" nulls")
	}
	return c
}

func drawBatch(t *rapid.T, dict *observe.Dict) *observe.Batch {
	b := &observe.Batch{Len: rapid.IntRange(0, 40).Draw(t, "rows")}
	for _, l := range layout {
		switch w := l.writer().(type) {
		case *batchText:
			s := w.at(b)
			s.Dict = dict
			s.Column = drawColumn(t, l.name, b.Len, func(t *rapid.T) uint32 {
				return dict.Code(rapid.SampledFrom([]string{"", "a", "bb", "läng", "x\x00y"}).Draw(t, "text"))
			})
			if s.Form == observe.Run {
				s.Form = observe.Const
			}
		case *batchNum[uint8]:
			*w.at(b) = drawColumn(t, l.name, b.Len, func(t *rapid.T) uint8 { return rapid.Uint8().Draw(t, "v") })
		case *batchNum[uint16]:
			*w.at(b) = drawColumn(t, l.name, b.Len, func(t *rapid.T) uint16 { return rapid.Uint16().Draw(t, "v") })
		case *batchNum[uint32]:
			*w.at(b) = drawColumn(t, l.name, b.Len, func(t *rapid.T) uint32 { return rapid.Uint32().Draw(t, "v") })
		case *batchNum[uint64]:
			*w.at(b) = drawColumn(t, l.name, b.Len, func(t *rapid.T) uint64 { return rapid.Uint64().Draw(t, "v") })
		case *batchNum[int32]:
			*w.at(b) = drawColumn(t, l.name, b.Len, func(t *rapid.T) int32 { return rapid.Int32().Draw(t, "v") })
		}
	}
	if b.AddressPage.Form == observe.Absent {
		b.Address = observe.Column[uint64]{} // else pages are derived
	}
	return b
}

func readAll(r *Reader) (rows, error) {
	got := rows{}
	err := r.Read(observe.ColsAll, func(b *observe.Batch) error { got.batch(b); return nil })
	return got, err
}

func TestAnyBatchComesBack(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		opts := Options{
			Compression:  rapid.SampledFrom([]string{"zstd", "snappy", "gzip", "none"}).Draw(t, "compression"),
			RowGroupRows: rapid.SampledFrom([]int{0, 1, 17, 64}).Draw(t, "group"),
		}
		w, err := Create(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := rows{}
		dict := observe.NewDict()
		for range rapid.IntRange(0, 4).Draw(t, "batches") {
			if rapid.Bool().Draw(t, "new dictionary") {
				dict = observe.NewDict("unused")
			}
			b := drawBatch(t, dict)
			want.batch(b)
			if err := w.Accesses(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer os.Remove(path)
		got, err := readAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.Rows() != w.Rows() {
			t.Fatalf("%d rows, wrote %d", r.Rows(), w.Rows())
		}
		for name, col := range want {
			if len(col) == 0 {
				continue
			}
			if d := cmp.Diff(col, got[name]); d != "" {
				t.Fatalf("%s: %s", name, d)
			}
		}
	})
}

package tensorgraph_test

import (
	"testing"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/observe"
)

// checkPlaces holds every address against the engine's own mappings: a weight
// of the file lies in the file's mapping at its offset, everything else in
// memory that belongs to no file.
func checkPlaces(t *testing.T, v *view, f *gguf.File) {
	t.Helper()
	var all, unknown uint64
	for i := range v.rows {
		r := &v.rows[i]
		o := &v.objects[r.object-1]
		all += r.size
		if r.class == observe.ClassUnknown {
			unknown += r.size
		}
		switch {
		case r.addr != o.Base+r.off:
			t.Errorf("%s + %d is said to be at %#x, its base is %#x", r.name, r.off, r.addr, o.Base)
		case r.class != o.Class:
			t.Errorf("row of %s is %s, the object %s", r.name, r.class, o.Class)
		case r.size == 0 || r.count == 0 || r.size%uint64(r.count) != 0:
			t.Errorf("%s: %d bytes in %d pieces", r.name, r.size, r.count)
		case r.end() > o.Size:
			t.Errorf("%s of %d bytes: bytes up to %d were touched", r.name, o.Size, r.end())
		}
		if t.Failed() {
			t.Fatalf("%+v", *r)
		}
	}
	if all == 0 || unknown*1000 > all {
		t.Errorf("%d of %d bytes are unknown", unknown, all)
	}
	touched := map[uint32]bool{}
	for i := range v.rows {
		touched[v.rows[i].object] = true
	}
	for id := range touched {
		o := &v.objects[id-1]
		m := v.maps.Find(o.Base)
		if o.Class == observe.ClassWeight && o.Buffer != repackBuffer && m != nil && m.Path != "" {
			x := f.Tensor(o.Name)
			if x == nil {
				t.Errorf("weight %s is not in the model", o.Name)
			} else if m.Path != f.Path || o.Base-m.Start+m.Offset != uint64(x.Offset) || o.Size != uint64(x.Bytes) || o.Base+o.Size > m.End {
				t.Errorf("%s lies at %#x of %s at offset %#x, want %#x of %s", o.Name, o.Base, m.Path, o.Base-m.Start+m.Offset, x.Offset, f.Path)
			}
			continue
		}
		// A buffer may be larger than one mapping, and grow after the mappings were read.
		for at := o.Base; at < o.Base+o.Size; {
			m := v.maps.Find(at)
			if m == nil {
				if o.Class == observe.ClassKVCache || o.Class == observe.ClassWeight {
					t.Errorf("%s (%s): byte %#x is in no mapping", o.Name, o.Class, at)
				}
				break
			}
			if m.Kind() == "file" {
				t.Errorf("%s (%s) lies in %s", o.Name, o.Class, m.Path)
			}
			at = m.End
		}
	}
}

// repackBuffer is the engine's name of the buffer that holds repacked weights.
const repackBuffer = "CPU_REPACK"

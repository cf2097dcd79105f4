package region

import (
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// IsLabelled reports whether any row of a trace has a region type other than
// unknown. It reads one column.
func IsLabelled(r *trace.Reader) (bool, error) {
	found := false
	var dict *observe.Dict
	var unknown uint32
	err := r.Read(observe.ColRegionType, func(b *observe.Batch) error {
		c := &b.RegionType
		if found || c.Form == observe.Absent {
			return nil
		}
		if dict != c.Dict {
			dict, unknown = c.Dict, c.Dict.Code(observe.ClassUnknown)
		}
		for i := 0; i < b.Len && !found; i++ {
			found = !c.Null(i) && c.At(i) != unknown
		}
		return nil
	})
	return found, err
}

// Labels are what labelling a trace gave beside the rows.
type Labels struct {
	Map    []trace.RegionRow
	Blocks []trace.KVBlockRow
	// Here says that the labels come from the labeller, not from the trace.
	Here             bool
	Skipped, Unknown uint64 // rows left out, and rows that stayed unknown
}

// ReadLabelled delivers the rows of a trace with labels: those it has, or, if
// it has none at all, those that l gives. In the first case map and blocks are
// empty. A row of a labelled trace never changes.
func ReadLabelled(r *trace.Reader, l *Labeller, cols observe.Cols, fn func(*observe.Batch) error) (*Labels, error) {
	has, err := IsLabelled(r)
	if err != nil {
		return nil, err
	}
	if has {
		return &Labels{}, r.Read(cols, fn)
	}
	err = r.Read(cols|Columns, func(b *observe.Batch) error {
		raw := *b
		raw.RegionType = observe.Strings{} // null or unknown, which is the same here
		out, err := l.Label(&raw)
		if err != nil {
			return err
		}
		return fn(out)
	})
	if err != nil {
		return nil, err
	}
	_, skipped, unknown := l.Rows()
	return &Labels{Map: l.Map(), Blocks: l.Lifecycle(), Here: true, Skipped: skipped, Unknown: unknown}, nil
}

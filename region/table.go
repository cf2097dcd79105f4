package region

import (
	"cmp"
	"container/heap"
	"slices"
	"sort"
)

// span is a run of pages that have one type.
type span struct {
	first, last uint64 // both inclusive
	typ         uint32
}

// spanTable holds disjoint spans in order of address. A page belongs to the
// range that claimed it first, so the answers are those of a table of pages at
// the cost of a table of ranges.
type spanTable struct{ spans []span }

// find returns the span that holds page.
func (t *spanTable) find(page uint64) (span, bool) {
	i := sort.Search(len(t.spans), func(i int) bool { return t.spans[i].last >= page })
	if i < len(t.spans) && t.spans[i].first <= page {
		return t.spans[i], true
	}
	return span{}, false
}

// add claims the pages of added, in order, that have no type yet and returns
// the newly claimed spans. It sweeps over all starts once, with the claims on
// the present page in a heap, oldest first.
func (t *spanTable) add(added []span) (claimed []span) {
	all := make([]rankedSpan, 0, len(t.spans)+len(added))
	for _, s := range t.spans {
		all = append(all, rankedSpan{s, 0})
	}
	for i, s := range added {
		all = append(all, rankedSpan{s, i + 1})
	}
	slices.SortFunc(all, func(a, b rankedSpan) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.rank, b.rank))
	})
	out := make([]span, 0, len(all))
	open := &ranked{}
	var at uint64
	emit := func(last uint64) { // pages at..last go to the oldest open claim
		c := open.items[0]
		s := span{at, last, c.typ}
		if c.rank > 0 {
			claimed = append(claimed, s)
		}
		if n := len(out); n > 0 && out[n-1].typ == s.typ && out[n-1].last+1 == s.first {
			out[n-1].last = last
		} else {
			out = append(out, s)
		}
	}
	for i := 0; i < len(all) || open.Len() > 0; {
		if open.Len() == 0 {
			at = all[i].first
		}
		for i < len(all) && all[i].first == at {
			heap.Push(open, all[i])
			i++
		}
		last := open.items[0].last
		if i < len(all) && all[i].first <= last {
			last = all[i].first - 1
		}
		emit(last)
		at = last + 1
		for open.Len() > 0 && open.items[0].last <= last {
			heap.Pop(open)
		}
	}
	t.spans = out
	return claimed
}

type rankedSpan struct {
	span
	rank int
}

// ranked is a heap of claims, oldest on top.
type ranked struct{ items []rankedSpan }

func (r *ranked) Len() int           { return len(r.items) }
func (r *ranked) Less(i, j int) bool { return r.items[i].rank < r.items[j].rank }
func (r *ranked) Swap(i, j int)      { r.items[i], r.items[j] = r.items[j], r.items[i] }
func (r *ranked) Push(x any)         { r.items = append(r.items, x.(rankedSpan)) }
func (r *ranked) Pop() any {
	n := len(r.items) - 1
	x := r.items[n]
	r.items = r.items[:n]
	return x
}

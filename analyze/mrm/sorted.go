package mrm

import (
	"cmp"

	"github.com/tierscope/tierscope/internal/spill"
)

// sorted works off a log that no hash can cut small enough, such as a billion
// accesses to one address: it sorts it on disk and takes an address at a time.
func (d *digest) sorted(l *spill.Log[record]) error {
	list := d.s.labels.list
	sorter := spill.NewSorter(d.s.store, d.s.opt.Memory/4, func(a, b record) int {
		ta, tb := list[a.bits>>labelShift].typ, list[b.bits>>labelShift].typ
		switch pa, pb := a.page(), b.page(); {
		case pa != pb:
			return cmp.Compare(pa, pb)
		case rank(a) != rank(b):
			return rank(a) - rank(b)
		case a.addr != b.addr:
			return cmp.Compare(a.addr, b.addr)
		case ta != tb:
			return cmp.Compare(ta, tb)
		case (a.bits^b.bits)&flagNoTime != 0:
			return cmp.Compare(a.bits&flagNoTime, b.bits&flagNoTime)
		}
		return cmp.Compare(a.time, b.time)
	})
	err := d.s.eachRecord(l, func(recs []record) error {
		for _, r := range recs {
			if err := sorter.Add(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.Free()

	var last record
	begun := false
	pages := map[int32]bool{}    // regions of the page
	stores := map[int32]uint64{} // stores of the address by region
	flush := func() {
		for reg, n := range stores {
			d.s.regions[reg].written++
			if n == 1 {
				d.s.regions[reg].once++
			}
		}
		clear(stores)
	}
	err = sorter.Each(func(r record) error {
		lab := list[r.bits>>labelShift]
		samePage := begun && r.page() == last.page()
		if !samePage {
			clear(pages)
		}
		isPage := r.bits&opMask == opPage
		if lab.region >= 0 && (isPage || r.bits&flagNoPage == 0) && !pages[lab.region] {
			pages[lab.region] = true
			d.s.regions[lab.region].pages++
		}
		sameAddr := samePage && rank(last) == 1 && !isPage && r.addr == last.addr
		if !sameAddr {
			flush()
		}
		if lab.region >= 0 && r.bits&opMask == opStore {
			stores[lab.region]++
		}
		if sameAddr && lab.typ >= 0 && lab.typ == list[last.bits>>labelShift].typ &&
			(r.bits|last.bits)&flagNoTime == 0 && d.s.want&InterAccess != 0 {
			t := &d.types[lab.typ]
			t.add(r.time - last.time)
			if t.log.Len()%blockLen == 0 && d.s.store.Over() {
				if err := t.log.Spill(false); err != nil {
					return err
				}
			}
		}
		last, begun = r, true
		return nil
	})
	flush()
	return err
}

// rank puts records that are only a page before those of the page's addresses.
func rank(r record) int {
	if r.bits&opMask == opPage {
		return 0
	}
	return 1
}

package analyze

import (
	"maps"
	"slices"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// Regions collects the region map: one row a region, with the pages, times and
// number of its accesses. Unknown rows make no region.
type Regions struct {
	rows map[uint32]*trace.RegionRow
}

// NewRegions returns an empty map.
func NewRegions() *Regions { return &Regions{map[uint32]*trace.RegionRow{}} }

// Columns implements [Analysis].
func (r *Regions) Columns() observe.Cols {
	return observe.ColTime | observe.ColAddress | observe.ColRegionType | observe.ColRegionID | observe.ColSize | observe.ColCount | observe.ColStride
}

// Observe implements [Analysis].
func (r *Regions) Observe(b *observe.Batch) error {
	var row *trace.RegionRow
	last := uint32(0)
	for i := range b.Len {
		id := b.RegionID.At(i)
		if id == 0 {
			continue
		}
		t, addr := b.Time.At(i), b.Address.At(i)
		end := addr + b.Size.At(i)
		if n := uint64(b.Count.At(i)); n > 1 {
			end = addr + (n-1)*b.Stride.At(i) + b.Size.At(i)/n
		}
		if id != last || row == nil {
			last, row = id, r.rows[id]
			if row == nil {
				row = &trace.RegionRow{RegionID: id, RegionType: b.RegionType.Text(i), PageMin: addr >> 12, FirstSeenNS: t}
				r.rows[id] = row
			}
		}
		row.PageMin, row.PageMax = min(row.PageMin, addr>>12), max(row.PageMax, (max(end, addr+1)-1)>>12)
		row.LastSeenNS = max(row.LastSeenNS, t)
		row.AccessCount++
	}
	return nil
}

// Join implements [Commuting]; the first time of a region is the smaller one.
func (r *Regions) Join(o *Regions) error {
	for id, x := range o.rows {
		m := r.rows[id]
		if m == nil {
			r.rows[id] = x
			continue
		}
		m.PageMin, m.PageMax = min(m.PageMin, x.PageMin), max(m.PageMax, x.PageMax)
		m.FirstSeenNS, m.LastSeenNS = min(m.FirstSeenNS, x.FirstSeenNS), max(m.LastSeenNS, x.LastSeenNS)
		m.AccessCount += x.AccessCount
	}
	return nil
}

// Rows returns the map by region id.
func (r *Regions) Rows() []trace.RegionRow {
	out := make([]trace.RegionRow, 0, len(r.rows))
	for _, id := range slices.Sorted(maps.Keys(r.rows)) {
		out = append(out, *r.rows[id])
	}
	return out
}

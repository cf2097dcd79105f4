package report

import (
	"math"
	"slices"
	"sort"
)

// lifetimes is the distribution of bytes over the lifetime of their values, on
// the edges of all regions' buckets together.
type lifetimes struct {
	Edges   []float64 // s, rising
	Regions []string
	// Share[r][i] is the share of the region's bytes whose lifetime is at most
	// Edges[i]: exact on the region's own edges, held level within its buckets.
	Share [][]float64
	// Bytes[r][i] are the bytes of the region's bucket that covers Edges[i] to
	// Edges[i+1]; NaN outside of its buckets.
	Bytes [][]float64
	Sum   []float64 // bytes, by region
}

type lifeBucket struct{ lower, upper, bytes float64 }

func lifetimeSeries(d *Data) (*lifetimes, error) {
	c, err := open(d, figLifetime, "lifetime_distribution", "region_type", "lower_s", "upper_s", "bytes")
	if err != nil {
		return nil, err
	}
	lo, hi, bytes, region := c.numbers("lower_s"), c.numbers("upper_s"), c.numbers("bytes"), c.strings("region_type")
	by := map[string][]lifeBucket{}
	var l lifetimes
	for i := range bytes {
		// An open last bucket has no upper edge: its bytes lie at its lower one.
		if math.IsNaN(hi[i]) {
			hi[i] = lo[i]
		}
		if math.IsNaN(lo[i]) || math.IsNaN(bytes[i]) || bytes[i] <= 0 {
			continue
		}
		by[region[i]] = append(by[region[i]], lifeBucket{lo[i], hi[i], bytes[i]})
		l.Edges = append(l.Edges, lo[i], hi[i])
	}
	if len(by) == 0 {
		return nil, c.empty("no bucket of table lifetime_distribution holds any bytes")
	}
	for r := range by {
		l.Regions = append(l.Regions, r)
	}
	l.Regions = orderRegions(l.Regions)
	sort.Float64s(l.Edges)
	l.Edges = positive(slices.Compact(l.Edges))
	for _, r := range l.Regions {
		share, heights, sum := distribute(by[r], l.Edges)
		l.Share, l.Bytes, l.Sum = append(l.Share, share), append(l.Bytes, heights), append(l.Sum, sum)
	}
	return &l, nil
}

// positive replaces an edge at 0, which a log axis cannot show, by one a decade
// below the next, or 1 ns.
func positive(edges []float64) []float64 {
	for len(edges) > 1 && edges[0] <= 0 && edges[1] <= 0 {
		edges = edges[1:]
	}
	if edges[0] <= 0 {
		edges[0] = 1e-9
		if len(edges) > 1 {
			edges[0] = math.Min(1e-9, edges[1]/10)
		}
	}
	return edges
}

func distribute(b []lifeBucket, edges []float64) (share, heights []float64, sum float64) {
	share, heights = make([]float64, len(edges)), make([]float64, len(edges))
	for _, k := range b {
		sum += k.bytes
	}
	for i, e := range edges {
		heights[i] = math.NaN()
		for _, k := range b {
			if k.upper <= e {
				share[i] += k.bytes
			}
			lower, upper := math.Max(k.lower, edges[0]), math.Max(k.upper, edges[0])
			point := lower == upper && lower == e
			if point || i+1 < len(edges) && lower <= e && upper >= edges[i+1] {
				heights[i] = zeroNaN(heights[i]) + k.bytes
			}
		}
		share[i] /= sum
	}
	return share, heights, sum
}

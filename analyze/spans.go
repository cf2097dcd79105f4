package analyze

import "sort"

// span is a byte range with what happened to it last. Ord orders events, also
// those of one instant.
type span struct {
	start, end uint64
	ord, at    uint64
}

// spans is a map from bytes to their last event: disjoint, in order of address.
type spans struct{ s []span }

// find returns the first span that ends behind start.
func (m *spans) find(start uint64) int {
	// Appends at the end are the common case of a cache that grows.
	if n := len(m.s); n == 0 || m.s[n-1].end <= start {
		return len(m.s)
	}
	return sort.Search(len(m.s), func(i int) bool { return m.s[i].end > start })
}

// assign makes x the last event of its bytes.
func (m *spans) assign(x span) {
	if x.start >= x.end {
		return
	}
	i := m.find(x.start)
	j := i
	for j < len(m.s) && m.s[j].start < x.end {
		j++
	}
	if i == j {
		m.s = append(m.s, span{})
		copy(m.s[i+1:], m.s[i:])
		m.s[i] = x
		return
	}
	var put [3]span
	n := 0
	if first := m.s[i]; first.start < x.start {
		first.end = x.start
		put[n] = first
		n++
	}
	put[n] = x
	n++
	if last := m.s[j-1]; last.end > x.end {
		last.start = x.end
		put[n] = last
		n++
	}
	m.replace(i, j, put[:n])
}

// replace puts x in place of the spans [i, j).
func (m *spans) replace(i, j int, x []span) {
	if d := len(x) - (j - i); d > 0 {
		for range d {
			m.s = append(m.s, span{})
		}
		copy(m.s[j+d:], m.s[j:len(m.s)-d])
	} else if d < 0 {
		copy(m.s[j+d:], m.s[j:])
		m.s = m.s[:len(m.s)+d]
	}
	copy(m.s[i:], x)
}

// each calls f for the spans that touch [start, end), cut to it.
func (m *spans) each(start, end uint64, f func(span)) {
	for i := m.find(start); i < len(m.s) && m.s[i].start < end; i++ {
		x := m.s[i]
		x.start, x.end = max(x.start, start), min(x.end, end)
		f(x)
	}
}

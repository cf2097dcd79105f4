package mrm

// groups numbers addresses from 1 in order of first appearance.
type groups struct {
	slots []slot // val 0: free
	shift uint
	list  []group
}

type group struct {
	addr uint64
	n    uint32
}

func (g *groups) reset() {
	if g.slots == nil {
		g.slots, g.shift = make([]slot, 1024), 64-10
	}
	clear(g.slots)
	g.list = append(g.list[:0], group{})
}

func (g *groups) of(addr uint64) uint32 {
	mask := uint64(len(g.slots) - 1)
	for i := addr * 0xD6E8FEB86659FD93 >> g.shift; ; i = (i + 1) & mask {
		s := &g.slots[i]
		if s.val == 0 {
			v := uint32(len(g.list))
			*s = slot{addr, v}
			g.list = append(g.list, group{addr: addr})
			if 2*len(g.list) > len(g.slots) {
				g.grow()
			}
			return v
		}
		if s.key == addr {
			return s.val
		}
	}
}

func (g *groups) grow() {
	g.slots = make([]slot, 2*len(g.slots))
	g.shift--
	mask := uint64(len(g.slots) - 1)
	for v := 1; v < len(g.list); v++ {
		i := g.list[v].addr * 0xD6E8FEB86659FD93 >> g.shift
		for g.slots[i].val != 0 {
			i = (i + 1) & mask
		}
		g.slots[i] = slot{g.list[v].addr, uint32(v)}
	}
}

// set is a set of pairs of page and region.
type set struct {
	slots []slot // val is region + 1; 0: free
	shift uint
	n     int

	lastPage   uint64
	lastRegion uint32
}

func (s *set) reset() {
	if s.slots == nil {
		s.slots, s.shift = make([]slot, 1024), 64-10
	}
	clear(s.slots)
	s.n, s.lastRegion = 0, ^uint32(0)
}

func (s *set) at(page uint64, region uint32) uint64 {
	return (page + uint64(region)<<40) * 0xD6E8FEB86659FD93 >> s.shift
}

// add puts a pair in and reports whether it is new.
func (s *set) add(page uint64, region uint32) bool {
	if page == s.lastPage && region == s.lastRegion {
		return false
	}
	s.lastPage, s.lastRegion = page, region
	mask := uint64(len(s.slots) - 1)
	i := s.at(page, region)
	for ; s.slots[i].val != 0; i = (i + 1) & mask {
		if s.slots[i].key == page && s.slots[i].val == region+1 {
			return false
		}
	}
	s.slots[i] = slot{page, region + 1}
	if s.n++; 2*s.n > len(s.slots) {
		old := s.slots
		s.slots = make([]slot, 2*len(old))
		s.shift--
		mask = uint64(len(s.slots) - 1)
		for _, o := range old {
			if o.val == 0 {
				continue
			}
			i := s.at(o.key, o.val-1)
			for s.slots[i].val != 0 {
				i = (i + 1) & mask
			}
			s.slots[i] = o
		}
	}
	return true
}

package mrm

import (
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// label is a pair of region and region type; -1 where the row has none.
type label struct {
	region, typ int32
}

// labels numbers the pairs of region id and type that rows carry, the regions
// and the types, each in order of first appearance.
type labels struct {
	list  []label
	ids   []uint32 // region id by region
	types *observe.Dict

	pairs   numbers
	regions numbers
}

func (l *labels) init() { l.types = observe.NewDict() }

const noRegion = 1 << 32

// pairKey packs a region id (or noRegion) and a type (-1 is none) so that it is
// never 0.
func pairKey(id uint64, typ int32) uint64 {
	return 1<<63 | uint64(uint32(typ+1))<<33 | id
}

// of returns the label of a pair and whether its region is new.
func (l *labels) of(id uint64, typ int32) (lab uint32, fresh bool, err error) {
	key := pairKey(id, typ)
	if v, ok := l.pairs.get(key); ok {
		return v, false, nil
	}
	if len(l.list) >= maxLabels {
		return 0, false, run.Errorf(run.Invalid, "trace has more than %d pairs of region and region type; analyze it in parts", maxLabels)
	}
	reg := int32(-1)
	if id != noRegion {
		v, ok := l.regions.get(id | 1<<63)
		if !ok {
			v = uint32(len(l.ids))
			l.ids = append(l.ids, uint32(id))
			l.regions.put(id|1<<63, v)
			fresh = true
		}
		reg = int32(v)
	}
	lab = uint32(len(l.list))
	l.list = append(l.list, label{reg, typ})
	l.pairs.put(key, lab)
	return lab, fresh, nil
}

// numbers is a hash table from keys other than 0 to numbers.
type numbers struct {
	slots []slot
	n     int
	shift uint
}

type slot struct {
	key uint64
	val uint32
}

func (t *numbers) get(key uint64) (uint32, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for i := key * 0xD6E8FEB86659FD93 >> t.shift; ; i = (i + 1) & mask {
		switch s := &t.slots[i]; s.key {
		case key:
			return s.val, true
		case 0:
			return 0, false
		}
	}
}

// put adds a key that is not there.
func (t *numbers) put(key uint64, val uint32) {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		size := max(64, 2*len(old))
		t.slots = make([]slot, size)
		t.shift = 64
		for s := size; s > 1; s >>= 1 {
			t.shift--
		}
		t.n = 0
		for _, s := range old {
			if s.key != 0 {
				t.put(s.key, s.val)
			}
		}
	}
	mask := uint64(len(t.slots) - 1)
	i := key * 0xD6E8FEB86659FD93 >> t.shift
	for t.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot{key, val}
	t.n++
}

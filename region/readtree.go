package region

// addReads adds n to the difference at block b of the tree of read counts; a
// subtraction wraps.
func (k *KVBlocks) addReads(b uint32, n uint64) {
	for i := int(b) + 1; i < len(k.counts); i += i & -i {
		k.counts[i] += n
	}
}

// covered returns how many reads have covered block b so far.
func (k *KVBlocks) covered(b uint32) uint64 {
	var n uint64
	for i := min(int(b)+1, len(k.counts)-1); i > 0; i -= i & -i {
		n += k.counts[i]
	}
	return n
}

// stamp is the number of a read, from 1, and its time.
type stamp struct{ n, t uint64 }

// stampTree keeps the latest stamp of every block. Stamps only ever grow, so a
// range is stamped by its O(log n) covering nodes, and a block asks its way to
// the root for the latest.
type stampTree struct {
	leaves int // a power of two
	nodes  []stamp
}

func (s *stampTree) grow(n int) {
	leaves := max(s.leaves, 1)
	for leaves < n {
		leaves *= 2
	}
	if leaves == s.leaves {
		return
	}
	t := stampTree{leaves, make([]stamp, 2*leaves)}
	for i := range s.leaves {
		t.nodes[leaves+i] = s.get(uint32(i))
	}
	*s = t
}

// set stamps the blocks first up to, not including, last.
func (s *stampTree) set(first, last uint32, v stamp) {
	l, r := int(first)+s.leaves, int(last)+s.leaves
	for ; l < r; l, r = l/2, r/2 {
		if l&1 == 1 {
			s.nodes[l] = v
			l++
		}
		if r&1 == 1 {
			r--
			s.nodes[r] = v
		}
	}
}

func (s *stampTree) get(b uint32) (latest stamp) {
	for i := int(b) + s.leaves; i > 0; i /= 2 {
		if s.nodes[i].n > latest.n {
			latest = s.nodes[i]
		}
	}
	return latest
}

package region

// CellRun is a run of cells of one sequence; Seq is -1 for cells that hold
// nothing.
type CellRun struct {
	CellRange
	Seq int32
}

// Runs appends the cells [first, end) to runs, cut where the sequence changes. Cells
// beyond any that was ever taken hold nothing.
func (k *KVBlocks) Runs(first, end uint32, runs []CellRun) []CellRun {
	for c := first; c < end; {
		seq := k.seqOf(c)
		to := c + 1
		for to < end && k.seqOf(to) == seq {
			if int(to) >= len(k.cells) {
				to = end
				break
			}
			to++
		}
		runs = append(runs, CellRun{CellRange{c, to}, seq})
		c = to
	}
	return runs
}

func (k *KVBlocks) seqOf(c uint32) int32 {
	if int(c) >= len(k.cells) || !k.cells[c].used {
		return -1
	}
	return k.cells[c].seq
}

package observe

// Keep returns the rows of b whose numbers are given, in that order, as a batch
// with slices of its own; dictionaries are shared.
func (b *Batch) Keep(rows []int32) Batch {
	k := *b
	k.Len = len(rows)
	for _, c := range []*Column[uint64]{&k.SampleID, &k.Time, &k.Address, &k.AddressPage, &k.Offset, &k.Size, &k.Stride, &k.IP, &k.Weight} {
		c.keep(rows)
	}
	for _, c := range []*Column[uint32]{&k.RegionID, &k.Latency, &k.ThreadID, &k.TokenIndex, &k.ContextTokens, &k.Object, &k.Generation,
		&k.Count, &k.PID, &k.Step, &k.KVBlock} {
		c.keep(rows)
	}
	for _, c := range []*Strings{&k.RunID, &k.Phase, &k.OpType, &k.Symbol, &k.DSO, &k.RegionType, &k.CacheLevel, &k.Collector,
		&k.TimeQuality, &k.Op, &k.RequestID, &k.Space} {
		c.keep(rows)
	}
	k.NUMANode.keep(rows)
	k.CPU.keep(rows)
	k.Layer.keep(rows)
	k.SeqID.keep(rows)
	return k
}

// keep replaces the column by its rows of the given numbers.
func (c *Column[T]) keep(rows []int32) {
	if c.Form == Run || c.Form == Slice {
		v := make([]T, len(rows))
		for i, r := range rows {
			v[i] = c.At(int(r))
		}
		c.Form, c.Values = Slice, v
	}
	if c.Nulls != nil {
		n := make([]bool, len(rows))
		for i, r := range rows {
			n[i] = c.Nulls[r]
		}
		c.Nulls = n
	}
}

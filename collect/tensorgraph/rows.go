package tensorgraph

import (
	"github.com/tierscope/tierscope/observe"
)

// batchRows is the length of a batch: long enough to make its cost a row small, short
// enough to stay in a cache.
const batchRows = 1 << 14

// rows fills batches.
type rows struct {
	sink    observe.Sink
	b       observe.Batch
	n       int
	next    uint64 // sample id of the first row of the batch
	ops     *observe.Dict
	phases  *observe.Dict
	classes *observe.Dict
	names   *observe.Dict
	reqs    *observe.Dict
	spaces  *observe.Dict
	load    uint32
	save    uint32
}

func newRows(sink observe.Sink, runID string) *rows {
	r := &rows{sink: sink, ops: observe.NewDict(observe.Load, observe.Store), phases: observe.NewDict(), classes: observe.NewDict(),
		names: observe.NewDict(), reqs: observe.NewDict(), spaces: observe.NewDict()}
	r.load, r.save = r.ops.Code(observe.Load), r.ops.Code(observe.Store)
	b := &r.b
	text := func(s string) observe.Strings { return observe.ConstString(observe.NewDict(), s) }
	b.RunID, b.Symbol, b.DSO, b.Collector = text(runID), text(""), text(""), text(Name)
	b.TimeQuality = text(observe.TimeInterpolated)
	b.Weight = observe.ConstOf[uint64](1)
	col := func(d *observe.Dict) observe.Strings {
		return observe.Strings{Column: observe.SliceOf(make([]uint32, batchRows)), Dict: d}
	}
	b.Phase, b.OpType, b.RegionType, b.Op, b.RequestID, b.Space = col(r.phases), col(r.ops), col(r.classes), col(r.names), col(r.reqs), col(r.spaces)
	u64 := func() observe.Column[uint64] { return observe.SliceOf(make([]uint64, batchRows)) }
	u32 := func() observe.Column[uint32] { return observe.SliceOf(make([]uint32, batchRows)) }
	i32 := func() observe.Column[int32] { return observe.SliceOf(make([]int32, batchRows)) }
	b.Time, b.Address, b.AddressPage, b.Offset, b.Size, b.Stride = u64(), u64(), u64(), u64(), u64(), u64()
	b.RegionID, b.TokenIndex, b.ContextTokens, b.Object, b.Generation, b.Count, b.Step, b.KVBlock = u32(), u32(), u32(), u32(), u32(), u32(), u32(), u32()
	b.Layer, b.SeqID = i32(), i32()
	b.Layer.Nulls, b.KVBlock.Nulls, b.SeqID.Nulls, b.RequestID.Nulls = make([]bool, batchRows), make([]bool, batchRows), make([]bool, batchRows), make([]bool, batchRows)
	return r
}

// moment is what all rows of an evaluation share.
type moment struct {
	phase, request uint32
	noRequest      bool
	token, context uint32
	step           uint32
}

// row is what one row has of its own.
type row struct {
	object *observe.Object
	class  uint32
	space  uint32
	op     uint32
	layer  int32
	store  bool
	time   uint64
	seq    int32 // -1 = none
	block  int64 // -1 = none
}

// regionID is the number of an object's region in the compatible columns: 1 for
// all weights, else one an object.
func regionID(o *observe.Object) uint32 {
	switch o.Class {
	case observe.ClassWeight:
		return 1
	case observe.ClassUnknown:
		return 0
	}
	return o.ID + 1
}

func (r *rows) add(m *moment, x *row, p pieces) error {
	if r.n == batchRows {
		if err := r.flush(); err != nil {
			return err
		}
	}
	i, b := r.n, &r.b
	r.n++
	addr := x.object.Base + p.off
	b.Time.Values[i], b.Phase.Values[i] = x.time, m.phase
	b.Address.Values[i], b.AddressPage.Values[i] = addr, addr>>12
	if x.store {
		b.OpType.Values[i] = r.save
	} else {
		b.OpType.Values[i] = r.load
	}
	b.RegionType.Values[i], b.RegionID.Values[i] = x.class, regionID(x.object)
	b.TokenIndex.Values[i], b.ContextTokens.Values[i] = m.token, m.context
	b.Object.Values[i], b.Generation.Values[i], b.Offset.Values[i] = x.object.ID, x.object.Generation, p.off
	b.Size.Values[i], b.Count.Values[i], b.Stride.Values[i] = p.piece*p.count, uint32(p.count), p.stride
	b.Step.Values[i], b.Op.Values[i], b.Space.Values[i] = m.step, x.op, x.space
	b.Layer.Values[i], b.Layer.Nulls[i] = x.layer, x.layer == observe.NoLayer
	b.SeqID.Values[i], b.SeqID.Nulls[i] = x.seq, x.seq < 0
	b.KVBlock.Values[i], b.KVBlock.Nulls[i] = uint32(x.block), x.block < 0
	b.RequestID.Values[i], b.RequestID.Nulls[i] = m.request, m.noRequest
	return nil
}

func (r *rows) flush() error {
	if r.n == 0 {
		return nil
	}
	r.b.Len, r.b.SampleID = r.n, observe.RunOf(r.next, 1)
	r.next += uint64(r.n)
	r.n = 0
	b := r.b // the sink may narrow the columns of its copy
	return r.sink.Accesses(&b)
}

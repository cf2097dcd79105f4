package trace

import "github.com/tierscope/tierscope/observe"

// layout is trace.parquet: its columns in order, and where a batch holds them.
// The first 18 are those of mrm-trace.
var layout = [...]layoutColumn{
	text("run_id", observe.ColRunID, func(b *observe.Batch) *observe.Strings { return &b.RunID }),
	num("sample_id", observe.ColSampleID, func(b *observe.Batch) *observe.Column[uint64] { return &b.SampleID }),
	num("timestamp_ns", observe.ColTime, func(b *observe.Batch) *observe.Column[uint64] { return &b.Time }),
	text("phase", observe.ColPhase, func(b *observe.Batch) *observe.Strings { return &b.Phase }),
	num("address", observe.ColAddress, func(b *observe.Batch) *observe.Column[uint64] { return &b.Address }),
	num("address_page", observe.ColAddressPage, func(b *observe.Batch) *observe.Column[uint64] { return &b.AddressPage }),
	text("op_type", observe.ColOpType, func(b *observe.Batch) *observe.Strings { return &b.OpType }),
	text("symbol", observe.ColSymbol, func(b *observe.Batch) *observe.Strings { return &b.Symbol }),
	text("dso", observe.ColDSO, func(b *observe.Batch) *observe.Strings { return &b.DSO }),
	text("region_type", observe.ColRegionType, func(b *observe.Batch) *observe.Strings { return &b.RegionType }),
	num("region_id", observe.ColRegionID, func(b *observe.Batch) *observe.Column[uint32] { return &b.RegionID }),
	num("access_latency_ns", observe.ColLatency, func(b *observe.Batch) *observe.Column[uint32] { return &b.Latency }),
	text("cache_level", observe.ColCacheLevel, func(b *observe.Batch) *observe.Strings { return &b.CacheLevel }),
	num("numa_node", observe.ColNUMANode, func(b *observe.Batch) *observe.Column[uint8] { return &b.NUMANode }),
	num("cpu_id", observe.ColCPU, func(b *observe.Batch) *observe.Column[uint16] { return &b.CPU }),
	num("thread_id", observe.ColThreadID, func(b *observe.Batch) *observe.Column[uint32] { return &b.ThreadID }),
	num("token_index", observe.ColTokenIndex, func(b *observe.Batch) *observe.Column[uint32] { return &b.TokenIndex }),
	num("context_tokens", observe.ColContextTokens, func(b *observe.Batch) *observe.Column[uint32] { return &b.ContextTokens }),

	num("object", observe.ColObject, func(b *observe.Batch) *observe.Column[uint32] { return &b.Object }),
	num("generation", observe.ColGeneration, func(b *observe.Batch) *observe.Column[uint32] { return &b.Generation }),
	num("offset", observe.ColOffset, func(b *observe.Batch) *observe.Column[uint64] { return &b.Offset }),
	num("size", observe.ColSize, func(b *observe.Batch) *observe.Column[uint64] { return &b.Size }),
	num("count", observe.ColCount, func(b *observe.Batch) *observe.Column[uint32] { return &b.Count }),
	num("stride", observe.ColStride, func(b *observe.Batch) *observe.Column[uint64] { return &b.Stride }),
	num("pid", observe.ColPID, func(b *observe.Batch) *observe.Column[uint32] { return &b.PID }),
	num("ip", observe.ColIP, func(b *observe.Batch) *observe.Column[uint64] { return &b.IP }),
	num("weight", observe.ColWeight, func(b *observe.Batch) *observe.Column[uint64] { return &b.Weight }),
	text("collector", observe.ColCollector, func(b *observe.Batch) *observe.Strings { return &b.Collector }),
	text("time_quality", observe.ColTimeQuality, func(b *observe.Batch) *observe.Strings { return &b.TimeQuality }),
	num("step", observe.ColStep, func(b *observe.Batch) *observe.Column[uint32] { return &b.Step }),
	num("layer", observe.ColLayer, func(b *observe.Batch) *observe.Column[int32] { return &b.Layer }),
	text("op", observe.ColOp, func(b *observe.Batch) *observe.Strings { return &b.Op }),
	num("kv_block", observe.ColKVBlock, func(b *observe.Batch) *observe.Column[uint32] { return &b.KVBlock }),
	num("seq_id", observe.ColSeqID, func(b *observe.Batch) *observe.Column[int32] { return &b.SeqID }),
	text("request_id", observe.ColRequestID, func(b *observe.Batch) *observe.Strings { return &b.RequestID }),
	text("space", observe.ColSpace, func(b *observe.Batch) *observe.Strings { return &b.Space }),
}

// layoutColumn makes the writer and the reader of one column.
type layoutColumn struct {
	name   string
	bit    observe.Cols
	writer func() batchWriter
	reader func() batchReader
}

// batchWriter is a column that takes its rows from a batch.
type batchWriter interface {
	column
	takeFrom(b *observe.Batch, lo, hi int)
}

// batchReader is a column that puts its rows into a batch.
type batchReader interface {
	// begin attaches the reader to a chunk; nil = the file lacks the column.
	begin(*chunkReader) error
	// next sets the column to the following n rows, valid until the next call.
	next(b *observe.Batch, n int) error
	// skipped is how many values did not fit into the column's type so far.
	skipped() uint64
}

func num[T observe.Number](name string, bit observe.Cols, at func(*observe.Batch) *observe.Column[T]) layoutColumn {
	return layoutColumn{name, bit,
		func() batchWriter { return &batchNum[T]{newNumCol[T](name), at} },
		func() batchReader { return &batchNumReader[T]{newNumReader[T](), at} },
	}
}

func text(name string, bit observe.Cols, at func(*observe.Batch) *observe.Strings) layoutColumn {
	return layoutColumn{name, bit,
		func() batchWriter { return &batchText{newStrCol(name), at} },
		func() batchReader { return &batchTextReader{newStrReader(), at} },
	}
}

type batchNum[T observe.Number] struct {
	*numCol[T]
	at func(*observe.Batch) *observe.Column[T]
}

func (c *batchNum[T]) takeFrom(b *observe.Batch, lo, hi int) { c.take(c.at(b), lo, hi) }

type batchText struct {
	*strCol
	at func(*observe.Batch) *observe.Strings
}

func (c *batchText) takeFrom(b *observe.Batch, lo, hi int) { c.take(c.at(b), lo, hi) }

type batchNumReader[T observe.Number] struct {
	*numReader[T]
	at func(*observe.Batch) *observe.Column[T]
}

func (r *batchNumReader[T]) next(b *observe.Batch, n int) (err error) {
	*r.at(b), err = r.read(n)
	return err
}

type batchTextReader struct {
	*strReader
	at func(*observe.Batch) *observe.Strings
}

func (r *batchTextReader) next(b *observe.Batch, n int) error {
	c, err := r.read(n)
	*r.at(b) = observe.Strings{Column: c, Dict: r.dict}
	return err
}

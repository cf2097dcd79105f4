package observe

// Cols is a set of columns of a [Batch].
type Cols uint64

// One bit for each column, in the order in which trace.parquet holds them.
const (
	ColRunID Cols = 1 << iota
	ColSampleID
	ColTime
	ColPhase
	ColAddress
	ColAddressPage
	ColOpType
	ColSymbol
	ColDSO
	ColRegionType
	ColRegionID
	ColLatency
	ColCacheLevel
	ColNUMANode
	ColCPU
	ColThreadID
	ColTokenIndex
	ColContextTokens
	ColObject
	ColGeneration
	ColOffset
	ColSize
	ColCount
	ColStride
	ColPID
	ColIP
	ColWeight
	ColCollector
	ColTimeQuality
	ColStep
	ColLayer
	ColOp
	ColKVBlock
	ColSeqID
	ColRequestID
	ColSpace
	colEnd
)

const (
	// ColsCompat are the 18 columns that mrm-trace defined.
	ColsCompat = ColObject - 1
	// ColsAll are all columns.
	ColsAll = colEnd - 1
)

// Batch is a run of accesses, held by column. Rows are in the order in which
// the source met them, which need not be the order of time.
//
// An access touches Size bytes: Count pieces of Size/Count bytes, Stride bytes
// apart, the first at Address = base of the object + Offset. A contiguous
// access has Count 1 and Stride 0. Imported point samples may lack Size.
//
// A batch and its slices belong to the producer again when the sink's call
// returns.
type Batch struct {
	// Len is the number of rows.
	Len int

	RunID         Strings        // run the row belongs to
	SampleID      Column[uint64] // 0.. within a source
	Time          Column[uint64] // ns of the run's clock (file column timestamp_ns)
	Phase         Strings        // weight_load, prefill, decode, teardown; generation in old files
	Address       Column[uint64] // virtual address of the first byte
	AddressPage   Column[uint64] // Address >> 12
	OpType        Strings        // load, store
	Symbol        Strings        // function, "" if not known
	DSO           Strings        // file of the function
	RegionType    Strings        // weight, kv_cache, activation, runtime, unknown
	RegionID      Column[uint32] // 0 unknown, 1 all weights, else one a region
	Latency       Column[uint32] // file column access_latency_ns; perf's weight is in cycles
	CacheLevel    Strings        // L1 L2 L3 L4 LFB DRAM
	NUMANode      Column[uint8]  // 0 local, 1 remote (a flag, as the original has it)
	CPU           Column[uint16] // CPU number
	ThreadID      Column[uint32] // thread
	TokenIndex    Column[uint32] // tokens generated before this access, from 0 within a request
	ContextTokens Column[uint32] // tokens in the context when the access happened
	Object        Column[uint32] // id of the object
	Generation    Column[uint32] // which life of the object
	Offset        Column[uint64] // bytes from the object's base
	Size          Column[uint64] // bytes really touched
	Count         Column[uint32] // pieces
	Stride        Column[uint64] // bytes from piece to piece
	PID           Column[uint32] // process
	IP            Column[uint64] // code address
	Weight        Column[uint64] // real accesses a row stands for; 1 = exact
	Collector     Strings        // who saw it
	TimeQuality   Strings        // exact, interpolated, logical
	Step          Column[uint32] // graph evaluation, 0.. within a run
	Layer         Column[int32]  // layer from 0; null outside the layers
	Op            Strings        // mul_mat, set_rows, ...
	KVBlock       Column[uint32] // KV block, where the access lies in one
	SeqID         Column[int32]  // sequence, where the engine says so
	RequestID     Strings        // request
	Space         Strings        // host, cuda0, ...: addresses of different spaces never meet
}

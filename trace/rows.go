package trace

import (
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
)

// RegionRow is a row of region_map.parquet: what was seen of a region. Numbers
// are written as int64; those from 2^63 on wrap around there and back.
type RegionRow struct {
	RegionID    uint32
	RegionType  string
	NoType      bool   // the type is null, which mrm-trace keeps as a type
	PageMin     uint64 // address >> 12
	PageMax     uint64
	FirstSeenNS uint64 // time of the first row met
	LastSeenNS  uint64 // largest time
	AccessCount uint64
}

// KVBlockRow is a row of kv_block_lifecycle.parquet. Numbers are written as
// int64; those from 2^63 on wrap around there and back.
type KVBlockRow struct {
	BlockID     uint32 // region id
	Address     uint64 // of the first access
	AddressPage uint64
	WriteNS     uint64 // first store; 0 if none
	LastReadNS  uint64 // 0 if none
	EvictNS     uint64 // later store; holds if Evicted
	Evicted     bool
	TotalReads  uint64
	LifetimeNS  uint64
}

// always is a getter of a number that is never null.
func always[T any, V observe.Number](at func(*T) *V) (func(*T) (V, bool), func(*T, V, bool)) {
	return func(r *T) (V, bool) { return *at(r), false }, func(r *T, v V, _ bool) { *at(r) = v }
}

// signed is a column of file type int64, as mrm-trace has them.
func signed[V observe.Number, T any](name string, at func(*T) *V) cell[T] {
	get, set := always(at)
	return numCell[int64](name, get, set)
}

// typed is a column whose file type is that of the field.
func typed[V observe.Number, T any](name string, at func(*T) *V) cell[T] {
	get, set := always(at)
	return numCell[V](name, get, set)
}

// gapped is a column in which the value none is null.
func gapped[V observe.Number, T any](name string, none V, at func(*T) *V) cell[T] {
	return numCell[V](name,
		func(r *T) (V, bool) { return *at(r), *at(r) == none },
		func(r *T, v V, null bool) {
			if null {
				v = none
			}
			*at(r) = v
		})
}

// word is a column of strings that are never null.
func word[T any](name string, at func(*T) *string) cell[T] {
	return textCell(name,
		func(r *T) (string, bool) { return *at(r), false },
		func(r *T, s string, _ bool) { *at(r) = s })
}

var objectCells = []cell[observe.Object]{
	typed("id", func(o *observe.Object) *uint32 { return &o.ID }),
	typed("generation", func(o *observe.Object) *uint32 { return &o.Generation }),
	word("name", func(o *observe.Object) *string { return &o.Name }),
	word("class", func(o *observe.Object) *string { return &o.Class }),
	word("space", func(o *observe.Object) *string { return &o.Space }),
	typed("base", func(o *observe.Object) *uint64 { return &o.Base }),
	typed("size", func(o *observe.Object) *uint64 { return &o.Size }),
	gapped("layer", observe.NoLayer, func(o *observe.Object) *int32 { return &o.Layer }),
	typed("born", func(o *observe.Object) *uint64 { return &o.Born }),
	gapped("died", 0, func(o *observe.Object) *uint64 { return &o.Died }),
	word("kind", func(o *observe.Object) *string { return &o.Kind }),
	word("dtype", func(o *observe.Object) *string { return &o.DType }),
	word("buffer", func(o *observe.Object) *string { return &o.Buffer }),
}

var markCells = []cell[observe.Mark]{
	word("kind", func(m *observe.Mark) *string { return &m.Kind }),
	word("name", func(m *observe.Mark) *string { return &m.Name }),
	typed("index", func(m *observe.Mark) *uint64 { return &m.Index }),
	gapped("seq", -1, func(m *observe.Mark) *int32 { return &m.Seq }),
	typed("start", func(m *observe.Mark) *uint64 { return &m.Start }),
	typed("end", func(m *observe.Mark) *uint64 { return &m.End }),
	typed("value", func(m *observe.Mark) *uint64 { return &m.Value }),
}

var regionCells = []cell[RegionRow]{
	signed("region_id", func(r *RegionRow) *uint32 { return &r.RegionID }),
	textCell("region_type",
		func(r *RegionRow) (string, bool) { return r.RegionType, r.NoType },
		func(r *RegionRow, s string, null bool) { r.RegionType, r.NoType = s, null }),
	signed("page_min", func(r *RegionRow) *uint64 { return &r.PageMin }),
	signed("page_max", func(r *RegionRow) *uint64 { return &r.PageMax }),
	signed("first_seen_ns", func(r *RegionRow) *uint64 { return &r.FirstSeenNS }),
	signed("last_seen_ns", func(r *RegionRow) *uint64 { return &r.LastSeenNS }),
	signed("access_count", func(r *RegionRow) *uint64 { return &r.AccessCount }),
}

var kvCells = []cell[KVBlockRow]{
	signed("block_id", func(r *KVBlockRow) *uint32 { return &r.BlockID }),
	signed("address", func(r *KVBlockRow) *uint64 { return &r.Address }),
	signed("address_page", func(r *KVBlockRow) *uint64 { return &r.AddressPage }),
	signed("write_ns", func(r *KVBlockRow) *uint64 { return &r.WriteNS }),
	signed("last_read_ns", func(r *KVBlockRow) *uint64 { return &r.LastReadNS }),
	numCell[int64]("evict_ns",
		func(r *KVBlockRow) (uint64, bool) { return r.EvictNS, !r.Evicted },
		func(r *KVBlockRow, v uint64, null bool) { r.EvictNS, r.Evicted = v, !null }),
	signed("total_reads", func(r *KVBlockRow) *uint64 { return &r.TotalReads }),
	signed("lifetime_ns", func(r *KVBlockRow) *uint64 { return &r.LifetimeNS }),
}

// CreateObjects begins objects.parquet at path, which must not exist.
func CreateObjects(path string, opts Options) (*Table[observe.Object], error) {
	return createTable(path, SchemaObjects, opts, objectCells)
}

// NewObjects writes objects.parquet to out, which Close commits and Abort aborts.
func NewObjects(out *run.Atomic, opts Options) (*Table[observe.Object], error) {
	return newTable(out, SchemaObjects, opts, objectCells)
}

// ReadObjects calls fn for each object in file order; the pointer is valid
// during the call.
func ReadObjects(path string, fn func(*observe.Object) error) error {
	return readTable(path, SchemaObjects, objectCells, fn)
}

// CreateMarks begins marks.parquet at path, which must not exist.
func CreateMarks(path string, opts Options) (*Table[observe.Mark], error) {
	return createTable(path, SchemaMarks, opts, markCells)
}

// NewMarks writes marks.parquet to out, which Close commits and Abort aborts.
func NewMarks(out *run.Atomic, opts Options) (*Table[observe.Mark], error) {
	return newTable(out, SchemaMarks, opts, markCells)
}

// ReadMarks calls fn for each mark in file order; the pointer is valid during
// the call.
func ReadMarks(path string, fn func(*observe.Mark) error) error {
	return readTable(path, SchemaMarks, markCells, fn)
}

// CreateRegionMap begins region_map.parquet at path, which must not exist.
func CreateRegionMap(path string, opts Options) (*Table[RegionRow], error) {
	return createTable(path, SchemaRegionMap, opts, regionCells)
}

// NewRegionMap writes region_map.parquet to out, which Close commits and Abort aborts.
func NewRegionMap(out *run.Atomic, opts Options) (*Table[RegionRow], error) {
	return newTable(out, SchemaRegionMap, opts, regionCells)
}

// ReadRegionMap calls fn for each region in file order; the pointer is valid
// during the call.
func ReadRegionMap(path string, fn func(*RegionRow) error) error {
	return readTable(path, SchemaRegionMap, regionCells, fn)
}

// CreateKVBlocks begins kv_block_lifecycle.parquet at path, which must not
// exist.
func CreateKVBlocks(path string, opts Options) (*Table[KVBlockRow], error) {
	return createTable(path, SchemaKVLifecycle, opts, kvCells)
}

// NewKVBlocks writes kv_block_lifecycle.parquet to out, which Close commits and Abort aborts.
func NewKVBlocks(out *run.Atomic, opts Options) (*Table[KVBlockRow], error) {
	return newTable(out, SchemaKVLifecycle, opts, kvCells)
}

// ReadKVBlocks calls fn for each block in file order; the pointer is valid
// during the call.
func ReadKVBlocks(path string, fn func(*KVBlockRow) error) error {
	return readTable(path, SchemaKVLifecycle, kvCells, fn)
}

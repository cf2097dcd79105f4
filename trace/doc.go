// Package trace is the files of what was observed: accesses, objects, marks,
// the region map and the life of KV blocks as Parquet, and the compact graph
// log.
//
// # Parquet files
//
// All are flat, all columns are nullable, and a file exists also when it has no
// rows. The footer carries
//
//	mrm_trace_schema_version   1.0
//	tierscope_schema           <schema> 1.0, such as "trace 1.0"
//
// A reader accepts any version 1.x and files without version; another major
// version is an error, and so is a lack of one of [RequiredColumns].
//
// trace.parquet: the 18 columns of mrm-trace, same names, types and order, then
// ours. What they mean is said at [observe.Batch].
//
//	run_id            string     object         uint32
//	sample_id         uint64     generation     uint32
//	timestamp_ns      uint64     offset         uint64
//	phase             string     size           uint64
//	address           uint64     count          uint32
//	address_page      uint64     stride         uint64
//	op_type           string     pid            uint32
//	symbol            string     ip             uint64
//	dso               string     weight         uint64
//	region_type       string     collector      string
//	region_id         uint32     time_quality   string
//	access_latency_ns uint32     step           uint32
//	cache_level       string     layer          int32
//	numa_node         uint8      op             string
//	cpu_id            uint16     kv_block       uint32
//	thread_id         uint32     seq_id         int32
//	token_index       uint32     request_id     string
//	context_tokens    uint32     space          string
//
// objects.parquet: [observe.Object]; layer is null outside of the layers, died
// is null for what lived to the end.
//
//	id uint32, generation uint32, name string, class string, space string,
//	base uint64, size uint64, layer int32, born uint64, died uint64,
//	kind string, dtype string, buffer string
//
// marks.parquet: [observe.Mark]; seq is null for marks of no sequence.
//
//	kind string, name string, index uint64, seq int32, start uint64,
//	end uint64, value uint64
//
// region_map.parquet: [RegionRow], as mrm-trace has it.
//
//	region_id int64, region_type string, page_min int64, page_max int64,
//	first_seen_ns int64, last_seen_ns int64, access_count int64
//
// kv_block_lifecycle.parquet: [KVBlockRow], as mrm-trace has it; evict_ns is
// null for blocks that were never written again.
//
//	block_id int64, address int64, address_page int64, write_ns int64,
//	last_read_ns int64, evict_ns int64, total_reads int64, lifetime_ns int64
//
// # Encoding
//
// Data pages are of version 2 with a CRC-32, end at the same rows in all
// columns (32,768 a page, so that a page is a batch), and are compressed one by
// one only where that helps. Strings are dictionary codes, always. Integers are
// dictionary codes where a sample repeats itself and the row group has at most
// 32,768 distinct values, else DELTA_BINARY_PACKED: times, addresses and counts
// take the bits of their differences. Numbers of 64 bits that jump far, such as
// addresses of several mappings, are BYTE_STREAM_SPLIT where that saves a sixth
// (files without compression never have it; pyarrow before 17 cannot read it). A constant or absent column is one run a
// page: some 50 bytes for 32,768 rows. A row group has at most 1,000,000 rows
// and about 8 MiB, which bounds the memory of a writer.
//
// # Torn files
//
// A file has a temporary name until its footer is written and synchronised, so
// one with its final name is whole. Parquet without a footer cannot be read,
// therefore nothing is recovered from a temporary file: a killed run keeps the
// graph log, which is readable up to its last whole frame, and trace.parquet is
// written again from it. Each damaged page of a whole file is found by its CRC.
package trace

package experiment

// Engine is what runs a model.
type Engine string

// The engines.
const (
	LlamaCPP Engine = "llamacpp"
	VLLM     Engine = "vllm"
)

// CollectorName is a collector as mrm-trace names it, or tensorgraph.
type CollectorName string

// The collectors; TensorGraph is known in [Strict] only.
const (
	PerfMemCollector        CollectorName = "perf_mem"
	MemrayCollector         CollectorName = "memray"
	ProcessMonitorCollector CollectorName = "process_monitor"
	TensorGraphCollector    CollectorName = "tensorgraph"
)

// OwnCollector is a collector of tierscope's.
type OwnCollector string

// TensorGraph observes every tensor read and write of llama.cpp.
const TensorGraph OwnCollector = "tensorgraph"

// UnknownPolicy says what becomes of an access of unknown region.
type UnknownPolicy string

// The policies.
const (
	LogAndSkip    UnknownPolicy = "log_and_skip"
	AssignRuntime UnknownPolicy = "assign_runtime"
	AssignUnknown UnknownPolicy = "assign_unknown"
	FailRun       UnknownPolicy = "fail_run"
)

// Metric is a family of tables.
type Metric string

// The metrics.
const (
	RetentionDuration   Metric = "retention_duration"
	WriteOnceRatio      Metric = "write_once_ratio"
	ReadFrequency       Metric = "read_frequency"
	WorkingSetSize      Metric = "working_set_size"
	AccessLocality      Metric = "access_locality"
	InterAccessInterval Metric = "inter_access_interval"
)

// Compression is the codec of Parquet files.
type Compression string

// The codecs.
const (
	Zstd          Compression = "zstd"
	Snappy        Compression = "snappy"
	Gzip          Compression = "gzip"
	NoCompression Compression = "none"
)

// FlashAttn switches flash attention.
type FlashAttn string

// The switch's positions.
const (
	FlashAuto FlashAttn = "auto"
	FlashOn   FlashAttn = "on"
	FlashOff  FlashAttn = "off"
)

// KVType is an element type of the KV cache, as ggml names it.
type KVType string

// Quantised says whether elements share a scale, which the values of a KV cache
// may do only with flash attention.
func (t KVType) Quantised() bool { return t != "f16" && t != "f32" && t != "bf16" }

// choice is a type with a fixed list of values.
type choice interface{ values(Mode) []string }

func (Engine) values(Mode) []string { return []string{"llamacpp", "vllm"} }

func (CollectorName) values(m Mode) []string {
	v := []string{"perf_mem", "memray", "process_monitor"}
	if m == Strict {
		v = append(v, "tensorgraph")
	}
	return v
}

func (OwnCollector) values(Mode) []string { return []string{"tensorgraph"} }

func (UnknownPolicy) values(Mode) []string {
	return []string{"log_and_skip", "assign_runtime", "assign_unknown", "fail_run"}
}

func (Metric) values(Mode) []string {
	return []string{"retention_duration", "write_once_ratio", "read_frequency", "working_set_size",
		"access_locality", "inter_access_interval"}
}

func (Compression) values(Mode) []string { return []string{"zstd", "snappy", "gzip", "none"} }

func (FlashAttn) values(Mode) []string { return []string{"auto", "on", "off"} }

func (KVType) values(Mode) []string {
	return []string{"f16", "f32", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"}
}

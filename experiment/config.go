package experiment

import (
	"runtime"

	"github.com/tierscope/tierscope/run"
)

// Config is an experiment file with all defaults filled in. The JSON form has
// the keys of the file. A key tagged unused is read and checked but has no effect yet.
type Config struct {
	Experiment Meta      `json:"experiment" cfg:"required" jsonschema_description:"who does what, and why"`
	Models     []Model   `json:"models" cfg:"required,original" jsonschema:"minItems=1" jsonschema_description:"the models to observe, one after the other"`
	Sweep      Sweep     `json:"sweep" jsonschema_description:"lists whose product is the plan"`
	Prompts    *Prompts  `json:"prompts" jsonschema:"nullable" jsonschema_description:"where the prompts come from"`
	Collector  Collector `json:"collector" jsonschema_description:"collectors of mrm-trace; tierscope's own is chosen under tierscope"`
	Telemetry  Telemetry `json:"telemetry" cfg:"unused" jsonschema_description:"samplers beside the run"`
	Labeller   Labeller  `json:"labeller" jsonschema_description:"how addresses become regions"`
	Analyser   Analyser  `json:"analyser" jsonschema_description:"which figures are computed"`
	Output     Output    `json:"output" jsonschema_description:"where results go and in what form"`
	// Tierscope is nil in a config read in [Compat]; see [Config.Settings].
	Tierscope *Settings `json:"tierscope,omitempty" cfg:"strict" jsonschema_description:"tierscope's own settings"`
}

// Meta says what the experiment is.
type Meta struct {
	Name        string   `json:"name" cfg:"required" jsonschema:"minLength=1" jsonschema_description:"name of the experiment"`
	Description string   `json:"description" jsonschema_description:"free text"`
	Version     string   `json:"version" jsonschema_description:"version of the experiment, quoted"`
	DateCreated string   `json:"date_created" jsonschema_description:"date, quoted: a bare date is no string in YAML"`
	Authors     []string `json:"authors" jsonschema_description:"names"`
	Institution string   `json:"institution" jsonschema_description:"free text"`
	PaperRef    string   `json:"paper_ref" jsonschema_description:"free text"`
}

// Model is a model and the engine that runs it.
type Model struct {
	ID             string   `json:"id" cfg:"required,name" jsonschema:"minLength=1,maxLength=128" jsonschema_description:"unique name; part of run ids and directories, so no slash and no control character"`
	Engine         Engine   `json:"engine" cfg:"required" jsonschema_description:"engine that runs the model; vllm is planned but not run yet"`
	Path           *string  `json:"path" jsonschema:"nullable" jsonschema_description:"model file; needed for llamacpp"`
	HFRepo         *string  `json:"hf_repo" jsonschema:"nullable" jsonschema_description:"repository of the model; vllm needs it or a path"`
	Family         string   `json:"family" jsonschema_description:"free text"`
	ParamsBillions *float64 `json:"params_billions" jsonschema:"nullable,minimum=0" jsonschema_description:"number of parameters in 10^9"`
	Quantisation   *string  `json:"quantisation" jsonschema:"nullable" jsonschema_description:"free text; the file itself says what it is"`
	DType          string   `json:"dtype" jsonschema_description:"free text; the file itself says what it is"`
}

// Runnable returns nil if this version of tierscope runs the model's engine,
// else an error of class [run.Capability].
func (m *Model) Runnable() error {
	if m.Engine == LlamaCPP {
		return nil
	}
	return run.Errorf(run.Capability, "engine %s of model %q is planned but cannot be run by this version; use engine %s with a GGUF file", m.Engine, m.ID, LlamaCPP)
}

// Sweep holds the lists whose product is the plan. Positive, up to 2^31-1.
type Sweep struct {
	ContextLengths []int `json:"context_lengths" cfg:"original,distinct" jsonschema:"minItems=1,minimum=1,maximum=2147483647" jsonschema_description:"tokens of context"`
	BatchSizes     []int `json:"batch_sizes" cfg:"original,distinct" jsonschema:"minItems=1,minimum=1,maximum=2147483647" jsonschema_description:"sequences decoded together"`
	OutputTokens   []int `json:"output_tokens" cfg:"original,distinct" jsonschema:"minItems=1,minimum=1,maximum=2147483647" jsonschema_description:"tokens to generate for each prompt"`
	Repetitions    int   `json:"repetitions" cfg:"original" jsonschema:"minimum=1" jsonschema_description:"counted runs of each combination"`
	WarmupRuns     int   `json:"warmup_runs" cfg:"original" jsonschema:"minimum=0" jsonschema_description:"runs before them that are kept apart"`
}

// Prompts says where prompts come from; see the package comment for the file.
type Prompts struct {
	Source     string   `json:"source" cfg:"required" jsonschema:"minLength=1" jsonschema_description:"file of prompts: one a line, or .json, or .jsonl"`
	Categories []string `json:"categories" jsonschema_description:"take only prompts of these categories; empty: all"`
}

// Collector names the collectors of mrm-trace.
type Collector struct {
	Primary        CollectorName  `json:"primary" jsonschema_description:"tensorgraph is the one that is used"`
	Fallback       *CollectorName `json:"fallback" cfg:"unused" jsonschema:"nullable" jsonschema_description:"used if the primary is missing"`
	Fallback2      *CollectorName `json:"fallback_2" cfg:"unused" jsonschema:"nullable" jsonschema_description:"used if both are missing"`
	PerfMem        PerfMem        `json:"perf_mem" cfg:"unused" jsonschema_description:"settings of perf mem"`
	Memray         Memray         `json:"memray" cfg:"unused" jsonschema_description:"settings of memray"`
	ProcessMonitor ProcessMonitor `json:"process_monitor" cfg:"unused" jsonschema_description:"settings of the process monitor"`
}

// PerfMem is what mrm-trace means to ask of perf mem.
type PerfMem struct {
	SamplePeriod   int      `json:"sample_period" jsonschema:"minimum=1" jsonschema_description:"events between samples"`
	LdlatThreshold int      `json:"ldlat_threshold" jsonschema:"minimum=0" jsonschema_description:"least load latency in cycles"`
	Events         []string `json:"events" jsonschema_description:"perf events"`
	ExtraFlags     []string `json:"extra_flags" jsonschema_description:"more flags of perf"`
	RequireRoot    bool     `json:"require_root" jsonschema_description:"refuse to run without root"`
}

// Memray is what mrm-trace means to ask of memray.
type Memray struct {
	NativeTraces    bool `json:"native_traces" jsonschema_description:"record native stacks"`
	FollowFork      bool `json:"follow_fork" jsonschema_description:"follow children"`
	FileSizeLimitGB int  `json:"file_size_limit_gb" jsonschema:"minimum=1" jsonschema_description:"limit of the recording in GB"`
}

// ProcessMonitor is what mrm-trace samples of a process.
type ProcessMonitor struct {
	PollIntervalMS int      `json:"poll_interval_ms" jsonschema:"minimum=1" jsonschema_description:"milliseconds between samples"`
	Metrics        []string `json:"metrics" jsonschema_description:"names of memory figures"`
}

// Telemetry is what mrm-trace means to sample of the machine.
type Telemetry struct {
	Capture                  bool   `json:"capture" jsonschema_description:"sample at all"`
	ThermalSamplingIntervalS int    `json:"thermal_sampling_interval_s" jsonschema:"minimum=1" jsonschema_description:"seconds between temperatures"`
	ThermalSource            string `json:"thermal_source" jsonschema_description:"where temperatures come from"`
	InvalidateOnThrottle     bool   `json:"invalidate_on_throttle" jsonschema_description:"a throttled run is not valid"`
	SoftwareVersions         bool   `json:"software_versions" jsonschema_description:"record versions"`
	HardwareTopology         bool   `json:"hardware_topology" jsonschema_description:"record the topology"`
	RunFioBenchmark          bool   `json:"run_fio_benchmark" jsonschema_description:"run fio first"`
}

// Labeller says what is done with accesses of unknown regions.
type Labeller struct {
	RulesFile      string        `json:"rules_file" cfg:"unused" jsonschema_description:"file of rules"`
	UnknownPolicy  UnknownPolicy `json:"unknown_policy" cfg:"unused" jsonschema_description:"what becomes of an access that no rule knows"`
	MinSampleCount int           `json:"min_sample_count" cfg:"unused" jsonschema:"minimum=0" jsonschema_description:"least samples of a region"`
}

// Analyser says which tables and histograms are made.
type Analyser struct {
	Metrics       []Metric `json:"metrics" cfg:"distinct,unused" jsonschema:"minItems=1" jsonschema_description:"tables to compute"`
	HistogramBins int      `json:"histogram_bins" cfg:"unused" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"bins of histograms"`
	CDFResolution int      `json:"cdf_resolution" cfg:"unused" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"points of distribution functions"`
	GroupBy       []string `json:"group_by" cfg:"unused" jsonschema_description:"columns to group figures by"`
}

// Output says where results go.
type Output struct {
	BaseDir       string        `json:"base_dir" jsonschema:"minLength=1" jsonschema_description:"directory of all results"`
	Formats       OutputFormats `json:"formats" cfg:"unused" jsonschema_description:"formats by kind of file"`
	Compression   Compression   `json:"compression" jsonschema_description:"of Parquet files"`
	HFDatasetPush bool          `json:"hf_dataset_push" cfg:"unused" jsonschema_description:"publish the results"`
	HFRepo        *string       `json:"hf_repo" cfg:"unused" jsonschema:"nullable" jsonschema_description:"where to publish"`
}

// OutputFormats are free strings.
type OutputFormats struct {
	RawTraces string `json:"raw_traces" jsonschema_description:"traces"`
	Metrics   string `json:"metrics" jsonschema_description:"metrics"`
	Figures   string `json:"figures" jsonschema_description:"figures"`
	Metadata  string `json:"metadata" jsonschema_description:"metadata"`
}

// Settings are tierscope's own, the section tierscope of the file.
type Settings struct {
	Collector     OwnCollector `json:"collector" jsonschema_description:"how memory is observed"`
	Threads       int          `json:"threads" jsonschema:"minimum=0,maximum=4096" jsonschema_description:"engine threads; 0: one less than there are cores, at least 1"`
	Seed          uint32       `json:"seed" jsonschema:"minimum=0,maximum=4294967294" jsonschema_description:"seed of sampling; 4294967295 is refused, the engine takes it as random"`
	Temperature   float64      `json:"temperature" jsonschema:"minimum=0,maximum=10" jsonschema_description:"of sampling; 0: always the likeliest token, whatever the seed"`
	KVBlockTokens int          `json:"kv_block_tokens" jsonschema:"minimum=1,maximum=1048576" jsonschema_description:"tokens in a KV block"`
	Lib           string       `json:"lib" jsonschema_description:"your own libllama, a file or its directory; empty: the one that is fetched"`
	FlashAttn     FlashAttn    `json:"flash_attn" jsonschema_description:"flash attention"`
	KVTypeK       KVType       `json:"kv_type_k" jsonschema_description:"element type of keys in the KV cache"`
	KVTypeV       KVType       `json:"kv_type_v" jsonschema_description:"element type of values in the KV cache; quantised needs flash attention"`
	Callback      bool         `json:"callback" jsonschema_description:"use the evaluation callback for layer times; costs decode speed"`
	Experts       bool         `json:"experts" jsonschema_description:"read which experts were chosen; false: upper bound"`
	Prompts       []OwnPrompt  `json:"prompts" jsonschema_description:"prompts in this file, instead of prompts.source"`
	Calibration   bool         `json:"calibration" jsonschema_description:"measure what observation costs, paired, in a generation of its own"`
	RowLimit      int          `json:"row_limit" jsonschema:"minimum=0" jsonschema_description:"most rows of the expanded trace"`
}

// OwnPrompt is a prompt given in the experiment file.
type OwnPrompt struct {
	Text   string `json:"text" cfg:"required" jsonschema:"minLength=1" jsonschema_description:"the prompt"`
	Tokens int    `json:"tokens" jsonschema:"minimum=0,maximum=2147483647" jsonschema_description:"tokens to generate; 0: as the sweep says"`
	Keep   bool   `json:"keep" jsonschema_description:"go on with the conversation before, so that its KV cache is used again"`
}

// Settings returns tierscope's settings: those of the file, else the defaults.
func (c *Config) Settings() Settings {
	if c.Tierscope != nil {
		return *c.Tierscope
	}
	return defaultSettings()
}

// EngineThreads is the number of engine threads on this machine, at least 1.
func (s *Settings) EngineThreads() int {
	if s.Threads > 0 {
		return s.Threads
	}
	return max(1, runtime.NumCPU()-1)
}

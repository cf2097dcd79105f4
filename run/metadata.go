package run

import (
	"encoding/json"
	"math"
	"path/filepath"
	"reflect"
	"strings"
)

// Metadata is metadata.json. Pointers are figures that may be unknown; they are
// null or absent then, never 0. The keys that mrm-trace's dataset manifest reads
// have its names.
type Metadata struct {
	Version    string         `json:"schema_version"`        // 1.0
	Tool       string         `json:"tierscope_version"`     // [Version]
	State      string         `json:"state"`                 // complete or partial; "": set when written
	RunID      string         `json:"run_id"`                // set by the run directory
	MachineID  string         `json:"machine_id"`            // host name made a word
	StartedAt  string         `json:"started_at,omitempty"`  // UTC, RFC 3339
	FinishedAt string         `json:"finished_at,omitempty"` // UTC, RFC 3339
	Model      Model          `json:"model"`
	Collector  Collector      `json:"collector"`
	Generation Generation     `json:"generation"`
	Plan       any            `json:"plan,omitempty"`      // the validated plan
	PlanHash   string         `json:"plan_hash,omitempty"` // SHA-256 of its canonical JSON, hex
	Hardware   Hardware       `json:"hardware"`
	Software   Software       `json:"software"`
	Clocks     Clocks         `json:"clocks"`
	Phases     []Phase        `json:"phases,omitempty"`
	Thermal    Thermal        `json:"thermal"`
	Timing     Timing         `json:"timing"`
	Baseline   *Baseline      `json:"baseline,omitempty"`
	Observer   any            `json:"observer_effect,omitempty"` // paired difference and, for mrm-trace, [ObserverEffect]
	Validity   Validity       `json:"validity"`
	Extra      map[string]any `json:"-" extra:"true"` // sections by name, at the top level
}

// Model is the model that ran.
type Model struct {
	ID           string `json:"id"`
	HFRepo       string `json:"hf_repo,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Quantisation string `json:"quantisation,omitempty"`
	Bytes        uint64 `json:"bytes,omitempty"`  // size of the file
	SHA256       string `json:"sha256,omitempty"` // of the file, hex
	Parameters   uint64 `json:"parameters,omitempty"`
}

// Collector is what observed; Type names the one that wrote trace.parquet.
type Collector struct {
	Type string   `json:"type"`
	Also []string `json:"also,omitempty"`
}

// Generation is what was asked for and what came out.
type Generation struct {
	Engine          string   `json:"engine,omitempty"`
	ContextLength   *int64   `json:"context_length,omitempty"` // tokens
	BatchSize       *int64   `json:"batch_size,omitempty"`     // sequences
	OutputTokens    *int64   `json:"output_tokens,omitempty"`  // asked for, a prompt
	Repetition      *int64   `json:"rep_index,omitempty"`
	TokensPerSecond *float64 `json:"avg_tokens_per_second,omitempty"`
	PromptTokens    *int64   `json:"total_prompt_tokens,omitempty"`
	TotalTokens     *int64   `json:"total_output_tokens,omitempty"` // generated
	Threads         *int64   `json:"threads,omitempty"`
	Seed            *int64   `json:"seed,omitempty"`
	Warmup          bool     `json:"warmup,omitempty"`
}

// Hardware is the machine. What cannot be read is absent.
type Hardware struct {
	CPUModel    string   `json:"cpu_model"`
	CPUVendor   string   `json:"cpu_vendor,omitempty"`
	Sockets     int      `json:"sockets,omitempty"`
	Cores       int      `json:"cores,omitempty"`        // physical
	LogicalCPUs int      `json:"logical_cpus,omitempty"` // online
	FreqMaxMHz  *float64 `json:"cpu_freq_scaling_max_mhz"`
	FreqMinMHz  *float64 `json:"cpu_freq_scaling_min_mhz,omitempty"`
	FreqHWMHz   *float64 `json:"cpu_freq_hw_max_mhz,omitempty"`
	Governor    string   `json:"governor,omitempty"`
	Caches      []Cache  `json:"caches,omitempty"`
	CacheLine   int      `json:"cache_line_bytes,omitempty"`
	PageSize    int      `json:"page_bytes"`
	MemoryTotal uint64   `json:"memory_total_bytes"`
	SwapTotal   uint64   `json:"swap_total_bytes"`
	NUMANodes   int      `json:"numa_nodes,omitempty"`
	Virtual     bool     `json:"virtual_machine"`
	Hypervisor  string   `json:"hypervisor,omitempty"`
	GPUs        []string `json:"gpus,omitempty"`
}

// Cache is one level of the CPU's caches, as CPU 0 sees it.
type Cache struct {
	Name  string `json:"name"`           // L1d, L1i, L2, L3
	Bytes uint64 `json:"bytes"`          // of one instance
	CPUs  int    `json:"cpus,omitempty"` // logical CPUs that share it
}

// Software is what the machine runs.
type Software struct {
	OS           string            `json:"os"`     // Linux 6.1.0-1-amd64
	Kernel       string            `json:"kernel"` // 6.1.0-1-amd64
	Distribution string            `json:"distribution,omitempty"`
	Hostname     string            `json:"hostname,omitempty"`
	Go           string            `json:"go,omitempty"`
	Arch         string            `json:"arch,omitempty"`
	Libraries    map[string]string `json:"libraries,omitempty"` // engine libraries: name to version or checksum
}

// Phase is a phase of the run, by the run's clock.
type Phase struct {
	Name   string `json:"name"` // weight_load, prefill, decode, teardown
	Start  uint64 `json:"start_ns"`
	End    uint64 `json:"end_ns"`
	Tokens int64  `json:"tokens,omitempty"`
}

// Thermal is the noise class of the run under mrm-trace's name, and heat.
type Thermal struct {
	RunValidity string   `json:"run_validity,omitempty"`
	PeakTempC   *float64 `json:"peak_temp_c,omitempty"`
	Throttles   *int64   `json:"throttle_events,omitempty"`
}

// Timing is durations in seconds.
type Timing struct {
	Total  *float64           `json:"total_wall_duration_s,omitempty"`
	Phases map[string]float64 `json:"phases_s,omitempty"`
}

// Baseline is the machine before the run.
type Baseline struct {
	CPUPercent      float64  `json:"cpu_pct"`
	CPUPercentMax   float64  `json:"cpu_pct_max"`
	MemTotalMiB     float64  `json:"mem_total_mb"`
	MemAvailableMiB float64  `json:"mem_available_mb"`
	MemUsedPercent  float64  `json:"mem_used_pct"`
	Load1           *float64 `json:"load_avg_1m"`
	Time            float64  `json:"timestamp_s"` // the run's clock, seconds
}

// Validity says how far the figures can be trusted.
type Validity struct {
	// Valid is false only when figures are wrong or incomplete: some note is of
	// severity invalid.
	Valid bool `json:"valid"`
	// RunValidity is the noise class: clean, marginal, contaminated; "" if not
	// judged. It never fails a command.
	RunValidity    string   `json:"run_validity,omitempty"`
	FailureReasons []string `json:"failure_reasons,omitempty"`
	Notes          []Note   `json:"notes"`
}

// merge adds notes and settles Valid.
func (v *Validity) merge(more []Note) {
	var s Notes
	for _, n := range v.Notes {
		s.Add(n)
	}
	for _, n := range more {
		s.Add(n)
	}
	v.Notes = s.List()
	if v.Notes == nil {
		v.Notes = []Note{}
	}
	v.Valid = valid(v.Notes)
}

// NewMetadata returns metadata with its version, the tool's, and a first reading
// of the clocks.
func NewMetadata() *Metadata {
	m := &Metadata{Version: schemas[metadataName], Tool: Version}
	m.Clocks.Read()
	return m
}

// Known returns a pointer to v, or nil for a value that is not a number.
func Known[T int64 | float64](v T) *T {
	if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &v
}

const maxMetadata = 256 << 20

// ReadMetadata reads root/metadata.json, also one of mrm-trace, with bare NaN
// and Infinity taken as null. Sections that [Metadata] does not know are in
// Extra as [json.RawMessage]. Not JSON, or another major version, is an error of
// class [Corrupt].
func ReadMetadata(root string) (*Metadata, error) {
	data, err := readLimited(root, metadataName, maxMetadata)
	if err != nil {
		return nil, err
	}
	m, err := ParseMetadata(data)
	if err != nil {
		return nil, Errorf(Corrupt, "%s: %w", filepath.Join(root, metadataName), err)
	}
	return m, nil
}

// ParseMetadata parses metadata; see [ReadMetadata]. In a file of another program
// a section of another shape goes to Extra too.
func ParseMetadata(data []byte) (*Metadata, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(bareNaN(data), &all); err != nil {
		return nil, Errorf(Corrupt, "not metadata: %w", err)
	}
	_, ours := all["tierscope_version"]
	m := new(Metadata)
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := all[name]
		if !ok || name == "-" {
			continue
		}
		field := reflect.New(v.Field(i).Type())
		if err := json.Unmarshal(raw, field.Interface()); err == nil {
			v.Field(i).Set(field.Elem())
			delete(all, name)
		} else if ours {
			return nil, Errorf(Corrupt, "metadata section %s: %w", name, err)
		}
	}
	if major, _, _ := strings.Cut(m.Version, "."); m.Version != "" && major != "1" {
		return nil, Errorf(Corrupt, "metadata version %q: this program reads 1.x", m.Version)
	}
	if len(all) > 0 {
		m.Extra = make(map[string]any, len(all))
		for name, raw := range all {
			m.Extra[name] = raw
		}
	}
	return m, nil
}

// bareNaN replaces NaN, Infinity and -Infinity outside strings by null: Python
// writes them, JSON knows none of them.
func bareNaN(data []byte) []byte {
	var out []byte
	last, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == 'N' || c == 'I' || c == '-'):
			for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
				if strings.HasPrefix(string(data[i:min(len(data), i+len(word))]), word) {
					out = append(append(out, data[last:i]...), "null"...)
					last = i + len(word)
					i = last - 1
					break
				}
			}
		}
	}
	if last == 0 {
		return data
	}
	return append(out, data[last:]...)
}

package experiment

// Default returns a config with every default and no model, as a file in mode m
// starts out.
func Default(m Mode) *Config {
	memray, monitor := MemrayCollector, ProcessMonitorCollector
	c := &Config{
		Experiment: Meta{Version: "1.0.0", Authors: []string{}},
		Models:     []Model{},
		Sweep: Sweep{
			ContextLengths: []int{2048},
			BatchSizes:     []int{1},
			OutputTokens:   []int{128},
			Repetitions:    1,
		},
		Collector: Collector{
			Primary:   PerfMemCollector,
			Fallback:  &memray,
			Fallback2: &monitor,
			PerfMem: PerfMem{
				SamplePeriod:   4000,
				LdlatThreshold: 20,
				Events:         []string{"cpu/mem-loads,ldlat=20/P", "cpu/mem-stores/P"},
				ExtraFlags:     []string{},
				RequireRoot:    true,
			},
			Memray: Memray{NativeTraces: true, FollowFork: true, FileSizeLimitGB: 20},
			ProcessMonitor: ProcessMonitor{
				PollIntervalMS: 100,
				Metrics:        []string{"rss", "vms", "shared", "text", "data"},
			},
		},
		Telemetry: Telemetry{
			Capture:                  true,
			ThermalSamplingIntervalS: 5,
			ThermalSource:            "auto",
			InvalidateOnThrottle:     true,
			SoftwareVersions:         true,
			HardwareTopology:         true,
		},
		Labeller: Labeller{
			RulesFile:      "config/models.yaml",
			UnknownPolicy:  LogAndSkip,
			MinSampleCount: 10,
		},
		Analyser: Analyser{
			Metrics:       []Metric{RetentionDuration, WriteOnceRatio, ReadFrequency, WorkingSetSize},
			HistogramBins: 100,
			CDFResolution: 1000,
			GroupBy:       []string{"region_type", "context_length"},
		},
		Output: Output{
			BaseDir:     "results/",
			Formats:     OutputFormats{RawTraces: "parquet", Metrics: "csv", Figures: "pdf", Metadata: "json"},
			Compression: Zstd,
		},
	}
	if m == Strict {
		s := defaultSettings()
		c.Tierscope = &s
		c.Collector.Primary = TensorGraphCollector
		c.Collector.Fallback, c.Collector.Fallback2 = nil, nil
	}
	return c
}

func defaultSettings() Settings {
	return Settings{
		Collector:     TensorGraph,
		KVBlockTokens: 16,
		FlashAttn:     FlashAuto,
		KVTypeK:       "f16",
		KVTypeV:       "f16",
		Experts:       true,
		Prompts:       []OwnPrompt{},
		Calibration:   true,
		RowLimit:      50_000_000,
	}
}

// preset fills in the defaults of a list element or of a section that is null
// unless given.
func (m *Model) preset()   { m.DType = "float16" }
func (p *Prompts) preset() { p.Categories = []string{} }

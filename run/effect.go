package run

import (
	"math"
	"slices"
)

// EffectSample is one sample of an observer or of the target. The samples of
// several observers at one time are added up by the caller; mrm-trace mixes them.
type EffectSample struct {
	CPUPercent float64 // of one CPU
	RSSMiB     float64
	WriteBytes float64 // written so far
}

// ObserverEffect is mrm-trace's summary of what observing cost, under its names.
// CPUMax is its low 95 % quantile, not the largest value; CPUAbsMax is.
type ObserverEffect struct {
	CPUMax         float64 `json:"observer_cpu_overhead_pct_max"`
	CPUAbsMax      float64 `json:"observer_cpu_overhead_pct_abs_max"`
	CPUMean        float64 `json:"observer_cpu_overhead_pct_mean"`
	MemoryPeakMiB  float64 `json:"observer_memory_overhead_mb_peak"`
	MemoryFraction float64 `json:"observer_memory_overhead_frac"`
	TargetPeakMiB  float64 `json:"target_rss_mb_peak"`
	Throttles      int64   `json:"thermal_throttle_events"`
	BaselineCPU    float64 `json:"baseline_cpu_pct"`
	IOContention   bool    `json:"io_contention_detected"`
	Observers      int     `json:"n_observer_samples"`
	Targets        int     `json:"n_target_samples"`
}

// contention is how many bytes observers may write before that counts as I/O
// contention.
const contention = 10 << 20

// NewObserverEffect sums up samples in time order. Without samples the figures
// are 0.
func NewObserverEffect(observer, target []EffectSample, throttles int64, baselineCPU float64) ObserverEffect {
	e := ObserverEffect{Throttles: throttles, BaselineCPU: baselineCPU, Observers: len(observer), Targets: len(target)}
	for _, s := range target {
		e.TargetPeakMiB = max(e.TargetPeakMiB, s.RSSMiB)
	}
	if len(observer) == 0 {
		return e
	}
	cpu := make([]float64, len(observer))
	var sum, written float64
	for i, s := range observer {
		cpu[i] = s.CPUPercent
		sum += s.CPUPercent
		e.MemoryPeakMiB = max(e.MemoryPeakMiB, s.RSSMiB)
		if i > 0 {
			written += max(0, s.WriteBytes-observer[i-1].WriteBytes)
		}
	}
	slices.Sort(cpu)
	n := len(cpu)
	e.CPUMax = cpu[max(0, int(math.Floor(0.95*float64(n)))-1)]
	e.CPUAbsMax = cpu[n-1]
	e.CPUMean = sum / float64(n)
	e.IOContention = written > contention
	if e.TargetPeakMiB != 0 {
		e.MemoryFraction = e.MemoryPeakMiB / e.TargetPeakMiB
	}
	return e
}

// Noise returns what the noise class is judged by. The temperature is not part
// of the summary.
func (e ObserverEffect) Noise(peakTempC float64) Noise {
	return Noise{e.CPUMean, e.MemoryFraction, e.Throttles, e.BaselineCPU, e.IOContention, peakTempC}
}

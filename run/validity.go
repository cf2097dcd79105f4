package run

import (
	"fmt"
	"math"
)

// Noise classes of a run, mrm-trace's words.
const (
	Clean        = "clean"
	Marginal     = "marginal"
	Contaminated = "contaminated"
)

// Noise is what the noise class of a run is judged by.
type Noise struct {
	ObserverCPU    float64 // CPU of the observers, percent of one CPU
	ObserverMemory float64 // their peak memory over the target's
	Throttles      int64   // thermal throttle events
	BaselineCPU    float64 // CPU of the machine before the run, percent
	IOContention   bool
	PeakTempC      float64 // 0 where no sensor can be read
}

// The limits of mrm-trace: clean below the first (temperature: up to it),
// marginal below the second.
const (
	cleanCPU, marginalCPU           = 10, 20
	cleanMemory, marginalMemory     = 0.05, 0.15
	cleanThrottles, marginalThrottl = 0, 2
	cleanBaseline, marginalBaseline = 15, 30
	cleanTemp, marginalTemp         = 85, 90
)

// Classify returns the noise class by mrm-trace's limits and every clean limit
// that is broken, in its words. A measure that is not a number is a broken limit
// here, and the run is marginal at best; mrm-trace calls it clean, and so does
// compat.
func Classify(n Noise, compat bool) (class string, reasons []string) {
	class = Clean
	judge := func(value float64, cleanUpTo, marginalUpTo bool, what, reason string) {
		switch {
		case math.IsNaN(value):
			if !compat {
				reasons = append(reasons, what+" is not known")
				class = worse(class, Marginal)
			}
		case !cleanUpTo:
			reasons = append(reasons, reason)
			class = worse(class, Marginal)
			if !marginalUpTo {
				class = Contaminated
			}
		}
	}
	judge(n.ObserverCPU, n.ObserverCPU < cleanCPU, n.ObserverCPU < marginalCPU, "observer_cpu",
		fmt.Sprintf("observer_cpu %.1f%% ≥ %.1f%% (clean threshold)", n.ObserverCPU, float64(cleanCPU)))
	judge(n.ObserverMemory, n.ObserverMemory < cleanMemory, n.ObserverMemory < marginalMemory, "observer_mem_frac",
		fmt.Sprintf("observer_mem_frac %.3f ≥ %.2f (clean threshold)", n.ObserverMemory, cleanMemory))
	judge(float64(n.Throttles), n.Throttles <= cleanThrottles, n.Throttles <= marginalThrottl, "",
		fmt.Sprintf("thermal_throttle_events %d > 0", n.Throttles))
	judge(n.BaselineCPU, n.BaselineCPU < cleanBaseline, n.BaselineCPU < marginalBaseline, "baseline_cpu",
		fmt.Sprintf("baseline_cpu %.1f%% ≥ %.1f%%", n.BaselineCPU, float64(cleanBaseline)))
	judge(0, !n.IOContention, false, "", "io_contention_detected=True")
	hot := "thermal warning — at most marginal"
	if n.PeakTempC > marginalTemp {
		hot = "hard throttle likely — contaminated"
	}
	judge(n.PeakTempC, n.PeakTempC <= cleanTemp, n.PeakTempC <= marginalTemp, "peak_temp",
		fmt.Sprintf("peak_temp %.1f°C > %.1f°C (%s)", n.PeakTempC, float64(limitBroken(n.PeakTempC)), hot))
	return class, reasons
}

func limitBroken(temp float64) int {
	if temp > marginalTemp {
		return marginalTemp
	}
	return cleanTemp
}

func worse(a, b string) string {
	if a == Contaminated || b == Contaminated {
		return Contaminated
	}
	if a == Marginal || b == Marginal {
		return Marginal
	}
	return Clean
}

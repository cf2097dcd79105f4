// Package stats gives means and middles their intervals.
package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean with its confidence interval.
type Interval struct {
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Level float64 `json:"level"` // 0.95
	N     int     `json:"n"`
}

// Level is the confidence level of all intervals.
const Level = 0.95

// MinSamples is how many samples an interval needs.
const MinSamples = 6

// GeometricMean returns the geometric mean of positive ratios and its interval
// by Student's t on their logarithms. ok is false with fewer than [MinSamples]
// ratios, or one that is not positive.
func GeometricMean(ratios []float64) (iv Interval, ok bool) {
	iv = Interval{Level: Level, N: len(ratios)}
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		if !(r > 0) || math.IsInf(r, 0) {
			return iv, false
		}
		logs[i] = math.Log(r)
	}
	if len(logs) < MinSamples {
		return iv, false
	}
	mean, sd := stat.MeanStdDev(logs, nil)
	n := float64(len(logs))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.5 + Level/2)
	half := t * sd / math.Sqrt(n)
	iv.Mean, iv.Low, iv.High = math.Exp(mean), math.Exp(mean-half), math.Exp(mean+half)
	return iv, true
}

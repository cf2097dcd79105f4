package main

import (
	"encoding/json"
	"os"

	"github.com/tierscope/tierscope/internal/stats"
	"github.com/tierscope/tierscope/run"
)

// result is the JSON document.
type result struct {
	Mode    string   `json:"mode"` // full or quick
	Command string   `json:"command"`
	Started string   `json:"started"` // RFC 3339
	Seconds float64  `json:"seconds"`
	CPU     string   `json:"cpu"`
	Cores   int      `json:"cores"`
	Memory  uint64   `json:"memory_bytes"`
	OS      string   `json:"os"`
	Go      string   `json:"go"`
	Load    float64  `json:"load_before"` // processes that ran, mean of the minute before
	Figures []figure `json:"figures"`
}

// figure is one measured number.
type figure struct {
	ID      string   `json:"id"`
	What    string   `json:"what"`
	Unit    string   `json:"unit"`
	Goal    *goal    `json:"goal,omitempty"` // none: measured to compare with
	Value   float64  `json:"value"`
	Low     *float64 `json:"low,omitempty"` // 95 % interval; none: see How
	High    *float64 `json:"high,omitempty"`
	N       int      `json:"n"`
	Of      string   `json:"of"` // what n counts
	Verdict string   `json:"verdict,omitempty"`
	How     string   `json:"how"`
}

// goal is what a figure is held against.
type goal struct {
	AtLeast bool    `json:"at_least"` // else at most
	Value   float64 `json:"value"`
}

// Verdicts. A figure whose interval holds the goal decides nothing.
const (
	met       = "met"
	notMet    = "not met"
	undecided = "undecided: the interval holds the goal"
)

func atLeast(v float64) *goal { return &goal{true, v} }
func atMost(v float64) *goal  { return &goal{false, v} }

// judged fills in the verdict.
func (f figure) judged() figure {
	if f.Goal == nil {
		return f
	}
	low, high := f.Value, f.Value
	if f.Low != nil {
		low, high = *f.Low, *f.High
	}
	if !f.Goal.AtLeast {
		low, high = -high, -low
	}
	v := f.Goal.Value
	if !f.Goal.AtLeast {
		v = -v
	}
	switch {
	case low >= v:
		f.Verdict = met
	case high < v:
		f.Verdict = notMet
	default:
		f.Verdict = undecided
	}
	return f
}

// sampled is a figure from repeated measurements, all positive: their geometric
// mean and its interval, or with fewer than an interval needs their mean alone.
func sampled(f figure, samples []float64) figure {
	f.N = len(samples)
	if iv, ok := stats.GeometricMean(samples); ok {
		f.Value, f.Low, f.High = iv.Mean, &iv.Low, &iv.High
		return f.judged()
	}
	for _, v := range samples {
		f.Value += v / float64(len(samples))
	}
	return f.judged()
}

func readResult(path string) (*result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, run.Errorf(run.Misuse, "%w", err)
	}
	r := &result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, run.Errorf(run.Corrupt, "%s: %w", path, err)
	}
	if len(r.Figures) == 0 {
		return nil, run.Errorf(run.Corrupt, "%s holds no figures", path)
	}
	return r, nil
}

package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestIntervalCoversTheTruthAsOftenAsItSays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const rounds = 4000
	covered := 0
	for range rounds {
		ratios := make([]float64, 12)
		for i := range ratios {
			ratios[i] = 0.97 * math.Exp(0.03*rng.NormFloat64())
		}
		iv, ok := GeometricMean(ratios)
		if !ok {
			t.Fatal("no interval from 12 samples")
		}
		if iv.Low <= 0.97 && 0.97 <= iv.High {
			covered++
		}
	}
	if share := float64(covered) / rounds; share < 0.935 || share > 0.965 {
		t.Fatalf("the 95 %% interval covers the truth in %.1f %% of cases", 100*share)
	}
}

func TestTooFewSamplesGiveNoInterval(t *testing.T) {
	if _, ok := GeometricMean([]float64{1, 1, 1}); ok {
		t.Fatal("an interval from 3 samples")
	}
	if _, ok := GeometricMean([]float64{1, 1, 1, 1, 1, 0, 1}); ok {
		t.Fatal("an interval with a ratio of 0")
	}
}

package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPairedRatioCoversTheTruth(t *testing.T) {
	const truth, rounds = 0.97, 2000
	for _, c := range []struct {
		name  string
		n     int
		noise func(*rand.Rand) float64
		wide  float64 // mean width over that of Student's t, at most
	}{
		{"normal, few", 8, func(r *rand.Rand) float64 { return 0.03 * r.NormFloat64() }, 1.2},
		{"normal", 40, func(r *rand.Rand) float64 { return 0.03 * r.NormFloat64() }, 1.06},
		{"normal, many", 90, func(r *rand.Rand) float64 { return 0.03 * r.NormFloat64() }, 1.05},
		{"stolen time slices", 40, func(r *rand.Rand) float64 {
			v := 0.005 * r.NormFloat64()
			if r.IntN(8) == 0 {
				v += 0.3 * (r.Float64() - r.Float64())
			}
			return v
		}, 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 5))
			covered, wide, student := 0, 0.0, 0.0
			for range rounds {
				ratios := make([]float64, c.n)
				for i := range ratios {
					ratios[i] = truth * math.Exp(c.noise(rng))
				}
				iv, ok := PairedRatio(ratios)
				g, okG := GeometricMean(ratios)
				if !ok || !okG {
					t.Fatalf("no interval from %d samples", c.n)
				}
				if iv.Low > iv.Mean || iv.Mean > iv.High || iv.N != c.n {
					t.Fatalf("interval %+v", iv)
				}
				if iv.Low <= truth && truth <= iv.High {
					covered++
				}
				wide += iv.High - iv.Low
				student += g.High - g.Low
			}
			if share := float64(covered) / rounds; share < 0.935 || share > 0.985 {
				t.Errorf("the 95 %% interval covers the truth in %.1f %% of cases", 100*share)
			}
			if wide > c.wide*student {
				t.Errorf("%.2f times as wide as Student's, at most %.2f", wide/student, c.wide)
			}
		})
	}
}

// The table of Wilcoxon's signed rank test: critical values for a two-sided level of
// 5 %, the largest sum of ranks that is still significant.
func TestSignedRankIsThatOfTheTables(t *testing.T) {
	for n, want := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137, 50: 434} {
		if got := signedRank(n, 0.025) - 1; got != want {
			t.Errorf("n = %d: critical value %d, tables say %d", n, got, want)
		}
	}
}

func TestPairedRatioNeedsSamples(t *testing.T) {
	if _, ok := PairedRatio([]float64{1, 1, 1, 1, 1}); ok {
		t.Error("an interval from 5 samples")
	}
	if _, ok := PairedRatio([]float64{1, 1, 1, 1, 1, math.Inf(1)}); ok {
		t.Error("an interval with a ratio that is not finite")
	}
}

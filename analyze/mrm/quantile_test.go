package mrm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQuantile holds figures of pandas 3.1.1 for which the other way of going
// from one value to the next gives another last bit.
func TestQuantile(t *testing.T) {
	for _, c := range []struct{ a, b, want float64 }{
		{37.5958979403705, 39.57296883896091, 38.68328693459522},
		{35.693973468911025, 39.51856567890149, 37.79749918440577},
		{36.71475990087826, 38.62567767728431, 37.76576467790158},
		{38.77621353494806, 39.88728137153838, 39.38730084507274},
	} {
		v := make([]float64, 46)
		v[44], v[45] = c.a, c.b
		if got := quantile(v, 0.99); got != c.want {
			t.Errorf("between %v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// TestSums holds sums of 1/i by numpy 2.4.6.
func TestSums(t *testing.T) {
	v := make([]float64, 1000)
	var k kahan
	for i := range v {
		v[i] = 1 / float64(i+1)
		k.add(v[i])
	}
	for n, want := range map[int]float64{1000: 7.485470860550345, 137: 5.50084178584451, 7: 2.5928571428571425, 0: 0} {
		if got := pairwise(v[:n]); got != want {
			t.Errorf("sum of %d is %v, want %v", n, got, want)
		}
	}
	if k.sum != 7.485470860550345 || k.mean() != k.sum/1000 {
		t.Errorf("sum of means is %v, mean %v", k.sum, k.mean())
	}
}

func TestNth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 400 {
		n := 1 + r.IntN(3000)
		v := make([]uint64, n)
		for i := range v {
			switch round % 4 {
			case 0:
				v[i] = r.Uint64()
			case 1:
				v[i] = r.Uint64N(3)
			case 2:
				v[i] = uint64(i)
			default: // organ pipe
				v[i] = uint64(min(i, n-i))
			}
		}
		sorted := slices.Sorted(slices.Values(v))
		i := r.IntN(n)
		j := min(n-1, i+round/4%2)
		a, b := nth2(v, i, j)
		if a != sorted[i] || b != sorted[j] {
			t.Fatalf("ranks %d and %d of %d are %d and %d, want %d and %d", i, j, n, a, b, sorted[i], sorted[j])
		}
	}
}

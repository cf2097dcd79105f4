package hist

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBucketsTileTheNumbers(t *testing.T) {
	next := uint64(0)
	for i := range buckets {
		lo, hi := bounds(i)
		if lo != next {
			t.Fatalf("bucket %d begins at %d, want %d", i, lo, next)
		}
		if bucket(lo) != i || bucket(hi) != i {
			t.Fatalf("bucket %d holds %d to %d, which go to %d and %d", i, lo, hi, bucket(lo), bucket(hi))
		}
		next = hi + 1
	}
	if next != 0 {
		t.Fatalf("the last bucket ends at %d", next-1)
	}
}

func TestQuantilesKeepTheirError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Uint64Range(0, 1<<40), 1, 200).Draw(t, "values")
		cut := rapid.IntRange(0, len(v)).Draw(t, "cut")
		var a, b Hist
		for i, x := range v {
			if i < cut {
				a.Add(x, 1)
			} else {
				b.Add(x, 1)
			}
		}
		a.Join(&b)
		slices.Sort(v)
		for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
			want := v[min(int(q*float64(len(v))), len(v)-1)]
			got := a.Quantile(q)
			if diff := float64(got) - float64(want); diff > float64(want)*RelativeError+1 || -diff > float64(want)*RelativeError+1 {
				t.Fatalf("q %v is %d, want %d", q, got, want)
			}
		}
		if a.Total() != uint64(len(v)) || a.Max() != v[len(v)-1] {
			t.Fatalf("total %d, max %d", a.Total(), a.Max())
		}
	})
}

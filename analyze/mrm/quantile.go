package mrm

import (
	"math"
	"math/bits"
	"slices"
)

// rankOf returns the ranks between which quantile q of n sorted values lies and
// how far from the first, as numpy places it.
func rankOf(n uint64, q float64) (lo, hi uint64, frac float64) {
	at := float64(n-1) * q
	f := math.Floor(at)
	lo = uint64(f)
	return lo, min(lo+1, n-1), at - f
}

// between is numpy's way from a to b, to the bit: diff is b-a.
func between(a, b, diff, frac float64) float64 {
	// The conversions keep the compiler from fusing product and sum.
	if frac >= 0.5 {
		return b - float64(diff*(1-frac))
	}
	return a + float64(diff*frac)
}

// quantile returns quantile q of sorted values.
func quantile(sorted []float64, q float64) float64 {
	lo, hi, frac := rankOf(uint64(len(sorted)), q)
	a, b := sorted[lo], sorted[hi]
	return between(a, b, b-a, frac)
}

// pairwise is the sum of v in numpy's order of additions.
func pairwise(v []float64) float64 {
	n := len(v)
	switch {
	case n < 8:
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum
	case n <= 128:
		r := [8]float64(v[:8])
		i := 8
		for ; i+8 <= n; i += 8 {
			for k := range r {
				r[k] += v[i+k]
			}
		}
		sum := ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
		for ; i < n; i++ {
			sum += v[i]
		}
		return sum
	}
	half := n / 2
	half -= half % 8
	return pairwise(v[:half]) + pairwise(v[half:])
}

// kahan is a mean with compensated sum, as pandas takes it over groups.
type kahan struct {
	sum, lost float64
	n         uint64
}

func (k *kahan) add(v float64) {
	y := v - k.lost
	t := k.sum + y
	k.lost = t - k.sum - y
	if math.IsNaN(k.lost) {
		k.lost = 0
	}
	k.sum = t
	k.n++
}

func (k *kahan) mean() float64 { return k.sum / float64(k.n) }

// nth2 returns the values at ranks i and j = i or i+1. It reorders v.
func nth2(v []uint64, i, j int) (uint64, uint64) {
	a := nth(v, i)
	if j == i {
		return a, a
	}
	return a, slices.Min(v[j:])
}

// nth moves the value of rank k to its place, lower ones before it, higher ones
// behind.
func nth(v []uint64, k int) uint64 {
	lo, hi := 0, len(v)-1
	for budget := 2 * bits.Len(uint(len(v))); hi-lo > 16; budget-- {
		if budget == 0 {
			break
		}
		// The median of three goes to the middle.
		m := lo + (hi-lo)/2
		if v[m] < v[lo] {
			v[m], v[lo] = v[lo], v[m]
		}
		if v[hi] < v[lo] {
			v[hi], v[lo] = v[lo], v[hi]
		}
		if v[hi] < v[m] {
			v[hi], v[m] = v[m], v[hi]
		}
		p := v[m]
		i, j := lo, hi
		for i <= j {
			for v[i] < p {
				i++
			}
			for v[j] > p {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k]
		}
	}
	slices.Sort(v[lo : hi+1])
	return v[k]
}

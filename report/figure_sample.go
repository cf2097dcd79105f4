package report

import "math"

// bucket is the half-open range of points that one drawn point stands for.
type bucket struct{ from, to int }

// thin cuts n points into at most about limit runs of consecutive points of
// equal length. A run ends where the phase changes, so that a prefill among
// decode steps is not averaged away, unless phases change so often that this
// alone would break the limit.
func thin(phase []string, n, limit int) []bucket {
	if n <= limit {
		out := make([]bucket, n)
		for i := range out {
			out[i] = bucket{i, i + 1}
		}
		return out
	}
	changes := 0
	for i := 1; i < len(phase); i++ {
		if phase[i] != phase[i-1] {
			changes++
		}
	}
	cut := changes <= limit/4
	if cut {
		limit -= changes
	}
	size := (n + limit - 1) / limit
	out := make([]bucket, 0, limit+changes+1)
	for i := 0; i < n; {
		j := min(i+size, n)
		if cut {
			for k := i + 1; k < j && k < len(phase); k++ {
				if phase[k] != phase[i] {
					j = k
				}
			}
		}
		out = append(out, bucket{i, j})
		i = j
	}
	return out
}

// widest returns the number of points that the widest bucket stands for.
func widest(b []bucket) int {
	n := 0
	for _, k := range b {
		n = max(n, k.to-k.from)
	}
	return n
}

// means averages each bucket of v, leaving out NaN; a bucket of NaN only is NaN.
// For amounts per step.
func means(v []float64, b []bucket) []float64 {
	out := make([]float64, len(b))
	for i, k := range b {
		sum, n := 0.0, 0
		for _, x := range v[k.from:k.to] {
			if !math.IsNaN(x) {
				sum += x
				n++
			}
		}
		out[i] = math.NaN()
		if n == 1 {
			out[i] = sum
		} else if n > 1 {
			out[i] = sum / float64(n)
		}
	}
	return out
}

// lasts takes the last value of each bucket that is not NaN. For levels.
func lasts(v []float64, b []bucket) []float64 {
	out := make([]float64, len(b))
	for i, k := range b {
		out[i] = math.NaN()
		for _, x := range v[k.from:k.to] {
			if !math.IsNaN(x) {
				out[i] = x
			}
		}
	}
	return out
}

// firsts takes the first of each bucket.
func firsts[T any](v []T, b []bucket) []T {
	out := make([]T, len(b))
	for i, k := range b {
		out[i] = v[k.from]
	}
	return out
}

// phases names the phase of each bucket; "mixed" where a bucket has several.
func phases(v []string, b []bucket) []string {
	out := make([]string, len(b))
	for i, k := range b {
		out[i] = v[k.from]
		for _, p := range v[k.from:k.to] {
			if p != out[i] {
				out[i] = "mixed"
				break
			}
		}
	}
	return out
}

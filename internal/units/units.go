// Package units reads and prints sizes and times as people write them.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var sizes = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// ParseBytes reads a size such as 64MiB, 1.5 GB, 4k or 4096: K, KiB and so on
// count in 1024s, KB and so on in 1000s, a bare number is bytes.
func ParseBytes(s string) (int64, error) {
	text := strings.TrimSpace(s)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit, ok := sizes[strings.ToLower(strings.TrimSpace(text[end:]))]
	n, err := strconv.ParseFloat(text[:end], 64)
	if !ok || err != nil || n < 0 || n*unit >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q: want a number and a unit, such as 64MiB, 1.5GB or 4096", s)
	}
	return int64(n * unit), nil
}

// Bytes prints a number of bytes in the largest binary unit that it fills.
func Bytes(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if math.Abs(n) >= u.size {
			return short(n/u.size) + " " + u.name
		}
	}
	return short(n) + " B"
}

// Seconds prints a time, from ns to s.
func Seconds(s float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}} {
		if math.Abs(s) >= u.size {
			return short(s/u.size) + " " + u.name
		}
	}
	if s == 0 {
		return "0 s"
	}
	return short(s/1e-9) + " ns"
}

// short prints a number with four digits or all that stand before the point.
func short(v float64) string {
	digits := 3
	for a := math.Abs(v); a >= 10 && digits > 0; a /= 10 {
		digits--
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Number prints a figure without unit.
func Number(v float64) string { return short(v) }

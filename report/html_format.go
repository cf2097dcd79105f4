package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/analyze"
)

const missing = "–"

// raw returns the machine-readable form of a cell: all digits, "" for missing.
func raw(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	}
	return ""
}

// number returns a cell as a number; false for missing, text and NaN.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	}
	return 0, false
}

// Format returns a cell as the page writes it, with the unit where one is given.
// Unit is as in [analyze.TableColumn].
func Format(v any, unit string) string {
	s := human(v, unit)
	if _, ok := number(v); ok && unit != "" && !unitInText(unit) {
		s += " " + unit
	}
	return s
}

// human returns a cell as people write it: sizes and times with the unit that
// fits, counts with separators, other figures to four digits.
func human(v any, unit string) string {
	x, ok := number(v)
	if !ok {
		switch v := v.(type) {
		case bool:
			if v {
				return "yes"
			}
			return "no"
		case string:
			if v != "" {
				return v
			}
		case float64:
			return "not a number"
		}
		return missing
	}
	if math.IsInf(x, 0) {
		if x < 0 {
			return "−∞"
		}
		return "∞"
	}
	base, per, _ := strings.Cut(unit, "/")
	if per != "" {
		per = "/" + per
	}
	switch base {
	case "B", "bytes":
		return bytesText(x) + per
	case "s":
		return secondsText(x) + per
	case "ms":
		return secondsText(x/1e3) + per
	case "us", "µs":
		return secondsText(x/1e6) + per
	case "ns":
		return secondsText(x/1e9) + per
	}
	if _, float := v.(float64); float && x != math.Trunc(x) {
		return digits(x, 4)
	}
	if _, float := v.(float64); float && math.Abs(x) >= 1e15 {
		return digits(x, 4)
	}
	return thousands(raw(v))
}

// unitInText says whether human writes the unit itself.
func unitInText(unit string) bool {
	base, _, _ := strings.Cut(unit, "/")
	switch base {
	case "B", "bytes", "s", "ms", "us", "µs", "ns":
		return true
	}
	return false
}

func bytesText(x float64) string {
	const names = "KMGTPE"
	if math.Abs(x) < 1024 {
		if x == math.Trunc(x) {
			return thousands(raw(x)) + " B"
		}
		return digits(x, 3) + " B"
	}
	for i, n := range names {
		x /= 1024
		// 1023.95 would be written 1020 or 1,024: it belongs to the next unit.
		if math.Abs(x) < 1023.5 || i == len(names)-1 {
			return digits(x, 3) + " " + string(n) + "iB"
		}
	}
	return ""
}

func secondsText(x float64) string {
	a := math.Abs(x)
	switch {
	case a == 0:
		return "0 s"
	case a < 999.5e-9:
		return digits(x*1e9, 3) + " ns"
	case a < 999.5e-6:
		return digits(x*1e6, 3) + " µs"
	case a < 999.5e-3:
		return digits(x*1e3, 3) + " ms"
	case a < 120:
		return digits(x, 3) + " s"
	case a < 7200:
		return digits(x/60, 3) + " min"
	}
	return digits(x/3600, 3) + " h"
}

// digits writes x to n significant digits, but all digits before the point.
func digits(x float64, n int) string {
	a, sign := math.Abs(x), ""
	if x < 0 {
		sign = "-"
	}
	s := strconv.FormatFloat(a, 'e', n-1, 64)
	if x != 0 && a < 1e-4 || a >= 1e15 {
		return exponent.Replace(sign + s)
	}
	frac := 0
	if x != 0 {
		_, e, _ := strings.Cut(s, "e")
		power, _ := strconv.Atoi(e) // it is a number: FormatFloat wrote it
		frac = max(0, n-1-power)
	}
	// The page's scripts round a tie up: lift an exact one a little.
	twice := 2 * math.Pow10(frac)
	if y := a * twice; math.Mod(y, 2) == 1 && math.FMA(a, twice, -y) == 0 {
		a = math.Nextafter(a, math.Inf(1))
	}
	return thousands(sign + strconv.FormatFloat(a, 'f', frac, 64))
}

// exponent turns 1.23e-05 into 1.23e−5.
var exponent = strings.NewReplacer("e-0", "e−", "e+0", "e+", "-", "−")

// thousands puts separators between the digits before the point, and a real
// minus.
func thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "−", s[1:]
	}
	whole, frac, dot := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + frac
	}
	return sign + whole
}

// unitOf returns a column's unit; where a table gives none, names such as
// retention_p50_s and total_bytes say it.
func unitOf(c analyze.TableColumn) string {
	if c.Unit != "" {
		return c.Unit
	}
	for _, u := range []struct{ mark, unit string }{{"_ns", "ns"}, {"_s", "s"}, {"_bytes", "B"}} {
		if strings.HasSuffix(c.Name, u.mark) {
			return u.unit
		}
	}
	if strings.HasPrefix(c.Name, "bytes_") {
		return "B"
	}
	return ""
}

var acronyms = map[string]string{"kv": "KV", "id": "id", "iai": "IAI", "p50": "p50", "mrm": "MRM", "dso": "DSO"}

// words turns bytes_read into "Bytes read", without the unit suffixes that the
// cells write themselves.
func words(name string) string {
	parts := strings.Split(name, "_")
	if n := len(parts); n > 1 && (parts[n-1] == "s" || parts[n-1] == "ns") {
		parts = parts[:n-1]
	}
	if len(parts) > 1 && parts[0] == "n" {
		parts = append([]string{"number", "of"}, parts[1:]...)
	}
	if n := len(parts); n > 2 {
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "mb" }) // a unit too
	}
	for i, p := range parts {
		if a, ok := acronyms[p]; ok {
			parts[i] = a
		}
	}
	s := strings.Join(parts, " ")
	if s == "" {
		return name
	}
	if s[0] >= 'a' && s[0] <= 'z' && !strings.HasPrefix(s, "p5") && !strings.HasPrefix(s, "p9") {
		s = string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

var regionNames = map[string]string{
	"weight": "weights", "kv_cache": "KV cache", "activation": "activations", "runtime": "runtime", "unknown": "unknown",
}

// regionText returns a region type as people say it.
func regionText(r string) string {
	if n, ok := regionNames[r]; ok {
		return n
	}
	return strings.ReplaceAll(r, "_", " ")
}

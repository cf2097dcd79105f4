package mrm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Float returns v as Python prints it: the shortest digits that give v again,
// with a point or an exponent.
func Float(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	e := strconv.FormatFloat(v, 'e', -1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return e
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// HasCSV reports whether the metrics that were asked for make a metrics.csv.
func (r *Result) HasCSV() bool { return r.want&forCSV == forCSV }

// CSV returns metrics.csv: a row for each region type, a header also if there is
// none. It needs the metrics of [Result.HasCSV].
func (r *Result) CSV() string {
	var b strings.Builder
	b.WriteString("region_type,n_regions,retention_p50_s,retention_p90_s,retention_p99_s,retention_mean_s," +
		"write_once_ratio_mean,reads_per_write_mean,working_set_mb_total,unique_pages_total,suitability\n")
	for i := range r.types {
		t := &r.types[i]
		if t.regions == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s,%d,%s,%s,%s,%s,%s,%s,%s,%d,%s\n", quote(t.name), t.regions,
			Float(t.p50), Float(t.p90), Float(t.p99), Float(t.retention), t.writeOnce.text(), t.readsPerWrite.text(),
			Float(float64(t.pages*pageBytes)/(1<<20)), t.pages, t.suitability)
	}
	return b.String()
}

func (k *kahan) text() string {
	if k.n == 0 {
		return ""
	}
	return Float(k.mean())
}

// quote puts a CSV field into quotes if it needs them.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// WriteJSON writes the tables and metrics.csv as one JSON document:
//
//	{"<table>": {"columns": [...], "rows": [[...], ...]}, ..., "metrics_csv": "..."}
//
// Integers are written in full, what is missing as null.
func (r *Result) WriteJSON(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	b.WriteString("{")
	sep := "\n"
	for i := range tables {
		t := &tables[i]
		if r.want&t.needs != t.needs {
			continue
		}
		names := make([]string, len(t.columns))
		for k, c := range t.columns {
			names[k] = c.Name
		}
		head, err := json.Marshal(names)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s \"%s\": {\"columns\": %s, \"rows\": [", sep, t.name, head)
		sep = ",\n"
		inner := ""
		var buf []byte
		err = r.each(t, func(row []any) error {
			buf = append(append(buf[:0], inner...), '[')
			inner = ", "
			for k, v := range row {
				if k > 0 {
					buf = append(buf, ", "...)
				}
				if buf, err = appendJSON(buf, v); err != nil {
					return err
				}
			}
			_, err := b.Write(append(buf, ']'))
			return err
		})
		if err != nil {
			return err
		}
		b.WriteString("]}")
	}
	if r.HasCSV() {
		text, err := json.Marshal(r.CSV())
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s \"metrics_csv\": %s", sep, text)
	}
	b.WriteString("\n}\n")
	return b.Flush()
}

// WriteText prints the tables for people, the first limit rows (-1: all) of each.
func (r *Result) WriteText(w io.Writer, limit int) error {
	b := bufio.NewWriter(w)
	for i := range tables {
		t := &tables[i]
		if r.want&t.needs != t.needs {
			continue
		}
		a, left := r.head(t, limit)
		if err := a.WriteText(b, left); err != nil {
			return err
		}
	}
	return b.Flush()
}

func appendJSON(buf []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(buf, "null"...), nil
	case uint32:
		return strconv.AppendUint(buf, uint64(v), 10), nil
	case uint64:
		return strconv.AppendUint(buf, v, 10), nil
	case int64:
		return strconv.AppendInt(buf, v, 10), nil
	case float64:
		return append(buf, Float(v)...), nil
	}
	text, err := json.Marshal(v)
	return append(buf, text...), err
}

// Notes says, a line each, which rows could not count everywhere.
func (r *Result) Notes() []string {
	var out []string
	for _, n := range []struct {
		n    uint64
		text string
	}{
		{r.notes.noRegion, "have no region id and count for inter-access intervals only"},
		{r.notes.noType, "have no region type and count for no type's inter-access intervals"},
		{r.notes.otherOp, "are neither load nor store and count as neither read nor write"},
		{r.notes.noOp, "have no operation and count as neither read nor write"},
		{r.notes.noTime, "have no time and count for neither retention, intervals nor locality"},
		{r.notes.noAddress, "have no address and count for neither write-once, intervals nor locality"},
	} {
		if n.n > 0 {
			out = append(out, fmt.Sprintf("%d of %d rows %s", n.n, r.rows, n.text))
		}
	}
	return out
}

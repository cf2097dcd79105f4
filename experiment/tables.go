package experiment

import (
	"cmp"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/observe"
)

// biggest returns the n objects with the most bytes, mappings left out: they
// hold the others.
func biggest(objects []observe.Object, n int) []observe.Object {
	all := slices.DeleteFunc(slices.Clone(objects), func(o observe.Object) bool { return o.Kind == "mapping" })
	slices.SortStableFunc(all, func(a, b observe.Object) int { return cmp.Compare(b.Size, a.Size) })
	return all[:min(n, len(all))]
}

// metricUnits are the units of the columns of metrics.csv.
var metricUnits = map[string]string{
	"retention_p50_s": "s", "retention_p90_s": "s", "retention_p99_s": "s", "retention_mean_s": "s", "working_set_mb_total": "MiB", "unique_pages_total": "pages",
}

// metricsTable makes a table of metrics.csv.
func metricsTable(text string) (analyze.Table, error) {
	t := analyze.Table{Name: "metrics"}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		return t, err
	}
	for _, name := range rows[0] {
		t.Columns = append(t.Columns, analyze.TableColumn{Name: name, Unit: metricUnits[name], Exactness: analyze.Exact})
	}
	for _, r := range rows[1:] {
		row := make([]any, len(r))
		for i, s := range r {
			row[i] = cell(s)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func cell(s string) any {
	if s == "" {
		return nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	return s
}

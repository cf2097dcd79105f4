package experiment

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/observe"
)

// busiest returns the n objects whose bytes were moved most.
func (f *figures) busiest(n int) []observe.Object {
	moved := func(o observe.Object) uint64 {
		read, written, _ := f.traffic.ObjectFlow(o.ID)
		return read + written
	}
	all := slices.DeleteFunc(slices.Clone(f.objects), func(o observe.Object) bool { return moved(o) == 0 })
	slices.SortStableFunc(all, func(a, b observe.Object) int { return cmp.Compare(moved(b), moved(a)) })
	return all[:min(n, len(all))]
}

// blockTable lists the lives of KV blocks: times in seconds since the first access
// of the trace.
func blockTable(caches []tensorgraph.CacheBlocks, start uint64) analyze.Table {
	t := analyze.Table{Name: "kv_blocks"}
	for _, c := range [][2]string{
		{"layers", ""}, {"block", ""}, {"life", ""}, {"first_cell", ""}, {"cells", ""}, {"bytes", "B"}, {"sequence", ""}, {"first_position", ""}, {"last_position", ""},
		{"allocated_s", "s"}, {"first_write_s", "s"}, {"last_write_s", "s"}, {"cells_written", ""}, {"cells_rewritten", ""},
		{"first_read_s", "s"}, {"last_read_s", "s"}, {"reads", ""}, {"freed_s", "s"},
	} {
		exact := analyze.Exact
		if c[1] == "s" {
			exact = analyze.Interpolated
		}
		t.Columns = append(t.Columns, analyze.TableColumn{Name: c[0], Unit: c[1], Exactness: exact})
	}
	since := func(ns uint64, known bool) any {
		if !known || ns < start {
			return nil
		}
		return float64(ns-start) / 1e9
	}
	for _, c := range caches {
		layers := fmt.Sprintf("%d layers", len(c.Layers))
		for _, b := range c.Blocks {
			t.Rows = append(t.Rows, []any{
				layers, uint64(b.Block), uint64(b.Life), uint64(b.FirstCell), uint64(b.Cells), uint64(b.Cells) * c.CellBytes, int64(b.Seq), int64(b.FirstPos), int64(b.LastPos),
				since(b.Allocated, true), since(b.FirstWrite, b.Writes > 0), since(b.LastWrite, b.Writes > 0), b.Writes, b.Rewritten,
				since(b.FirstRead, b.Reads > 0), since(b.LastRead, b.Reads > 0), b.Reads, since(b.Freed, !b.Live),
			})
		}
	}
	return t
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

// bound marks what tables say about bytes read as an upper bound: rows or experts
// were not read, so all of them are counted.
func bound(tables []analyze.Table) {
	for i := range tables {
		for j := range tables[i].Columns {
			if c := &tables[i].Columns[j]; strings.Contains(c.Name, "bytes_read") {
				c.Exactness = analyze.UpperBound
			}
		}
	}
}

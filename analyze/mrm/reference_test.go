package mrm_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
)

// row is one access; a nil field is missing.
type row struct {
	time, addr, page *uint64
	id               *uint32
	typ, op          *string
}

// reference is the definitions of the tables, written for being right and
// nothing else: all rows in memory, a map for everything.
func reference(rows []row) document {
	rows = slices.Clone(rows)
	for i, r := range rows {
		if r.page == nil && r.addr != nil {
			p := *r.addr >> 12
			rows[i].page = &p
		}
	}
	type regionID = uint32
	of := map[regionID][]row{}
	for _, r := range rows {
		if r.id != nil {
			of[*r.id] = append(of[*r.id], r)
		}
	}
	ids := slices.Sorted(maps.Keys(of))
	firstType := func(rows []row) any {
		for _, r := range rows {
			if r.typ != nil {
				return *r.typ
			}
		}
		return nil
	}
	is := func(r row, op string) bool { return r.op != nil && *r.op == op }
	timed := func(rows []row, op string) (min, max uint64, ok bool) {
		for _, r := range rows {
			if r.time == nil || op != "" && !is(r, op) {
				continue
			}
			if !ok || *r.time < min {
				min = *r.time
			}
			if !ok || *r.time > max {
				max = *r.time
			}
			ok = true
		}
		return
	}

	tables := map[string]*tableDoc{}
	add := func(name string, cells ...any) { tables[name].Rows = append(tables[name].Rows, cells) }
	for name, columns := range map[string][]string{
		"retention_per_region":   {"region_id", "region_type", "first_write_ns", "last_read_ns", "retention_ns", "retention_s"},
		"retention_summary":      {"region_type", "n_regions", "retention_p50_s", "retention_p90_s", "retention_p99_s", "retention_mean_s"},
		"write_once":             {"region_id", "region_type", "n_written_addresses", "n_write_once_addresses", "write_once_ratio"},
		"read_freq":              {"region_id", "region_type", "total_reads", "total_writes", "total_accesses", "read_fraction", "reads_per_write"},
		"working_set_per_region": {"region_id", "unique_pages", "region_type", "working_set_bytes"},
		"working_set_summary":    {"region_type", "n_regions", "total_pages", "total_bytes", "mean_pages_per_region", "max_pages_per_region"},
		"locality_per_region":    {"region_id", "region_type", "n_accesses", "mean_stride_bytes", "median_stride_bytes", "same_page_fraction"},
		"locality_summary":       {"region_type", "mean_stride_bytes", "median_stride_bytes", "same_page_fraction"},
		"iai":                    {"region_type", "n_intervals", "iai_p50_ns", "iai_p90_ns", "iai_p99_ns", "iai_mean_ns"},
		"suitability":            {"region_type", "write_once_ratio_mean", "retention_p99_s", "retention_p50_s", "suitability"},
	} {
		tables[name] = &tableDoc{Columns: columns, Rows: [][]any{}}
	}

	// Retention: doubles as soon as one region lacks a store or a load.
	gapStore, gapLoad := false, false
	for _, id := range ids {
		_, _, ok := timed(of[id], "store")
		gapStore = gapStore || !ok
		_, _, ok = timed(of[id], "load")
		gapLoad = gapLoad || !ok
	}
	retention := map[any][]float64{}
	for _, id := range ids {
		typ := firstType(of[id])
		first, _, ok := timed(of[id], "")
		if !ok {
			add("retention_per_region", id, typ, nil, nil, nil, nil)
			continue
		}
		if v, _, ok := timed(of[id], "store"); ok {
			first = v
		}
		last := first
		if _, v, ok := timed(of[id], "load"); ok {
			last = v
		}
		ns := max(0, int64(last)-int64(first))
		if gapStore || gapLoad {
			ns = int64(max(0, float64(last)-float64(first)))
		}
		if gapStore {
			first = uint64(float64(first))
		}
		if gapLoad {
			last = uint64(float64(last))
		}
		s := float64(ns) / 1e9
		add("retention_per_region", id, typ, first, last, ns, s)
		retention[typ] = append(retention[typ], s)
	}

	writeOnce, readsPerWrite := map[any][]float64{}, map[any][]float64{}
	pages := map[any][]float64{}
	locality := map[any][3][]float64{}
	for _, id := range ids {
		typ := firstType(of[id])
		stores := map[uint64]int{}
		distinct := map[uint64]bool{}
		var loads, writes, others int
		var order []row
		for _, r := range of[id] {
			switch {
			case is(r, "load"):
				loads++
			case is(r, "store"):
				writes++
				if r.addr != nil {
					stores[*r.addr]++
				}
			case r.op != nil:
				others++
			}
			if r.page != nil {
				distinct[*r.page] = true
			}
			if r.time != nil && r.addr != nil {
				order = append(order, r)
			}
		}
		once := 0
		for _, n := range stores {
			if n == 1 {
				once++
			}
		}
		if len(stores) > 0 {
			ratio := float64(once) / float64(len(stores))
			add("write_once", id, typ, len(stores), once, ratio)
			writeOnce[typ] = append(writeOnce[typ], ratio)
		}
		if loads+writes+others > 0 {
			var fraction, per float64
			if loads+writes > 0 {
				fraction = float64(loads) / float64(loads+writes)
			}
			if writes > 0 {
				per = float64(loads) / float64(writes)
			}
			add("read_freq", id, typ, loads, writes, loads+writes, fraction, per)
			readsPerWrite[typ] = append(readsPerWrite[typ], per)
		}
		add("working_set_per_region", id, len(distinct), typ, len(distinct)*4096)
		pages[typ] = append(pages[typ], float64(len(distinct)))

		var earliest any
		begun, at := false, uint64(0)
		for _, r := range of[id] {
			if r.time != nil && (!begun || *r.time < at) {
				begun, at, earliest = true, *r.time, nil
				if r.typ != nil {
					earliest = *r.typ
				}
			}
		}
		slices.SortStableFunc(order, func(a, b row) int { return cmp.Compare(*a.time, *b.time) })
		sum, same := new(big.Int), 0
		var strides []float64
		for i := 1; i < len(order); i++ {
			a, b := order[i-1], order[i]
			d := int64(*b.addr - *a.addr)
			if d < 0 {
				d = -d
			}
			sum.Add(sum, big.NewInt(d))
			strides = append(strides, float64(d))
			if a.page != nil && b.page != nil && *a.page == *b.page {
				same++
			}
		}
		var mean, median, frac float64
		if n := len(strides); n > 0 {
			f, _ := new(big.Float).SetInt(sum).Float64()
			mean = f / float64(n)
			slices.Sort(strides)
			median = (strides[(n-1)/2] + strides[n/2]) / 2
			frac = float64(same) / float64(n)
		}
		add("locality_per_region", id, earliest, len(order), mean, median, frac)
		l := locality[earliest]
		l[0], l[1], l[2] = append(l[0], mean), append(l[1], median), append(l[2], frac)
		locality[earliest] = l
	}

	names := func(m map[any]bool) (out []string) {
		for k := range m {
			if s, ok := k.(string); ok {
				out = append(out, s)
			}
		}
		slices.Sort(out)
		return out
	}
	keys := map[any]bool{}
	for k := range retention {
		keys[k] = true
	}
	for k := range pages {
		keys[k] = true
	}
	for k := range locality {
		keys[k] = true
	}
	mean := func(v []float64) float64 {
		sum := new(big.Float).SetPrec(400)
		for _, x := range v {
			sum.Add(sum, new(big.Float).SetFloat64(x))
		}
		f, _ := sum.Quo(sum, big.NewFloat(float64(len(v)))).Float64()
		return f
	}
	csv := "region_type,n_regions,retention_p50_s,retention_p90_s,retention_p99_s,retention_mean_s,write_once_ratio_mean,reads_per_write_mean,working_set_mb_total,unique_pages_total,suitability\n"
	text := func(v []float64) string {
		if len(v) == 0 {
			return ""
		}
		return plainFloat(mean(v))
	}
	for _, name := range names(keys) {
		total, most := 0.0, 0.0
		for _, n := range pages[name] {
			total += n
			most = max(most, n)
		}
		if n := len(pages[name]); n > 0 {
			add("working_set_summary", name, n, int(total), int(total)*4096, total/float64(n), int(most))
		}
		if l := locality[name]; len(l[0]) > 0 {
			add("locality_summary", name, mean(l[0]), mean(l[1]), mean(l[2]))
		}
		r := retention[name]
		if len(r) == 0 {
			continue
		}
		average := mean(r)
		slices.Sort(r)
		p50, p90, p99 := plainQuantile(r, 0.5), plainQuantile(r, 0.9), plainQuantile(r, 0.99)
		add("retention_summary", name, len(r), p50, p90, p99, average)
		w := 0.0
		if len(writeOnce[name]) > 0 {
			w = mean(writeOnce[name])
		}
		verdict := "low_mrm"
		if w >= 0.8 && p99 >= 10 {
			verdict = "high_mrm"
		} else if w >= 0.5 && p50 >= 1 {
			verdict = "medium_mrm"
		}
		add("suitability", name, w, p99, p50, verdict)
		csv += fmt.Sprintf("\"%s\",%d,%s,%s,%s,%s,%s,%s,%s,%d,%s\n", strings.ReplaceAll(name, `"`, `""`), len(r), plainFloat(p50), plainFloat(p90), plainFloat(p99),
			plainFloat(average), text(writeOnce[name]), text(readsPerWrite[name]), plainFloat(total/256), int(total), verdict)
	}

	// Intervals by address and the row's own type.
	type key struct {
		addr uint64
		typ  string
	}
	times := map[key][]uint64{}
	for _, r := range rows {
		if r.addr != nil && r.typ != nil && r.time != nil {
			k := key{*r.addr, *r.typ}
			times[k] = append(times[k], *r.time)
		}
	}
	pooled := map[string][]float64{}
	for k, ts := range times {
		slices.Sort(ts)
		for i := 1; i < len(ts); i++ {
			if d := int64(ts[i] - ts[i-1]); d > 0 {
				pooled[k.typ] = append(pooled[k.typ], float64(d))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pooled)) {
		v := pooled[name]
		slices.Sort(v)
		add("iai", name, len(v), int64(plainQuantile(v, 0.5)), int64(plainQuantile(v, 0.9)), int64(plainQuantile(v, 0.99)), mean(v))
	}

	// Through JSON, so that both sides are compared in one form.
	d := document{tables: map[string]*tableDoc{}, csv: csv}
	for name, table := range tables {
		for _, r := range table.Rows {
			for i, v := range r {
				switch v := v.(type) {
				case float64:
					r[i] = json.Number(plainFloat(v))
				case nil, string:
				default:
					r[i] = json.Number(fmt.Sprint(v))
				}
			}
		}
		d.tables[name] = table
	}
	return d
}

func plainQuantile(sorted []float64, q float64) float64 {
	at := float64(len(sorted)-1) * q
	lo := int(math.Floor(at))
	hi := min(lo+1, len(sorted)-1)
	g := at - float64(lo)
	a, b := sorted[lo], sorted[hi]
	if g >= 0.5 {
		return b - (b-a)*(1-g)
	}
	return a + (b-a)*g
}

// plainFloat is any form with an exponent that JSON reads as a double.
func plainFloat(v float64) string { return fmt.Sprintf("%.17e", v) }

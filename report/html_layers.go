package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/tierscope/tierscope/analyze"
)

// layersName is the name of the wide table that the page makes of
// traffic_by_layer.
const layersName = "layers"

// wideLayers turns traffic_by_layer, a row a layer and region, into a row a
// layer: what a decode token reads by region and in all, and the sums of the run.
// Nil where t lacks a column or rows.
func wideLayers(t *analyze.Table) (*analyze.Table, []string) {
	if t == nil || len(t.Rows) == 0 {
		return nil, nil
	}
	layer, region := t.Index("layer"), t.Index("region_type")
	read, written, decode := t.Index("bytes_read"), t.Index("bytes_written"), t.Index("decode_bytes_read_per_token")
	if min(layer, region, read, written, decode) < 0 {
		return nil, nil
	}
	var names []string
	for _, row := range t.Rows {
		r, _ := row[region].(string)
		names = append(names, r)
	}
	regions := orderRegions(names)
	wide := &analyze.Table{Name: layersName, Columns: []analyze.TableColumn{{Name: "layer"}}}
	quality := t.Columns[decode].Exactness
	for _, r := range regions {
		wide.Columns = append(wide.Columns, analyze.TableColumn{Name: r, Unit: t.Columns[decode].Unit, Exactness: quality})
	}
	all := len(wide.Columns)
	wide.Columns = append(wide.Columns, analyze.TableColumn{Name: "decode_bytes_read_per_token", Unit: t.Columns[decode].Unit, Exactness: quality},
		t.Columns[read], t.Columns[written])
	at := map[any]int{}
	for i, row := range t.Rows {
		k, ok := at[row[layer]]
		if !ok {
			k = len(wide.Rows)
			at[row[layer]] = k
			wide.Rows = append(wide.Rows, make([]any, len(wide.Columns)))
			wide.Rows[k][0] = row[layer]
		}
		w := wide.Rows[k]
		col := 1 + slices.Index(regions, names[i])
		w[col] = plus(w[col], row[decode])
		w[all] = plus(w[all], row[decode])
		w[all+1] = plus(w[all+1], row[read])
		w[all+2] = plus(w[all+2], row[written])
	}
	slices.SortStableFunc(wide.Rows, func(a, b []any) int {
		return cmp.Compare(layerKey(a[0]), layerKey(b[0]))
	})
	return wide, regions
}

// layerKey sorts what is outside the layers last.
func layerKey(v any) float64 {
	if x, ok := number(v); ok {
		return x
	}
	return math.Inf(1)
}

// plus adds two cells: integers stay integers while they fit, missing is nothing.
func plus(a, b any) any {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	if x, ok := a.(uint64); ok {
		if y, ok := b.(uint64); ok && x+y >= x {
			return x + y
		}
	}
	x, _ := number(a)
	y, _ := number(b)
	return x + y
}

// layerTable is the view of the wide table, with a stacked bar in the column of
// the sum.
func (p *page) layerTable(t *analyze.Table) *tableView {
	const title = "Decode reads per token, by layer"
	wide, regions := wideLayers(t)
	v := p.tableOf(wide, layersName, title,
		"Bytes that a decode token reads in each layer, by region, with sums over the whole run at the right. The bars compare the layers.")
	if wide == nil {
		v = p.tableOf(t, "traffic_by_layer", title, "")
		return v
	}
	top, all := 0.0, wide.Index("decode_bytes_read_per_token")
	for _, row := range wide.Rows {
		if x, _ := number(row[all]); row[0] != nil {
			top = max(top, x)
		}
	}
	v.Columns[all].Label, v.Columns[all].Unit = "All regions", "per token"
	for i, r := range regions {
		v.Columns[1+i].Label = words(regionText(r))
	}
	for i, cells := range v.Rows {
		if cells[0].Missing {
			cells[0].Text = "outside the layers"
			continue // often far more than a layer has: it would dwarf their bars
		}
		x := 0.0
		for k, r := range regions {
			if y, _ := number(wide.Rows[i][1+k]); y > 0 && top > 0 {
				cells[all].Bar = append(cells[all].Bar, barPart{p.color(r), percent(x, top), percent(y, top)})
				x += y
			}
		}
	}
	return v
}

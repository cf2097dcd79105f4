package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// tally adds to a figure of a naive table.
func tally(m map[string]*[3]uint64, a *access, key ...any) {
	k := fmt.Sprint(key...)
	if m[k] == nil {
		m[k] = &[3]uint64{}
	}
	i := 0
	switch {
	case a.store:
		i = 1
	case a.class == observe.ClassKVCache && a.padding:
		i = 2
	}
	a.bytes(func(uint64) { m[k][i]++ })
}

func TestTrafficIsSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStream(t)
		byToken, byLayer, byObject, byRegion, decode := map[string]*[3]uint64{}, map[string]*[3]uint64{}, map[string]*[3]uint64{}, map[string]*[3]uint64{}, map[string]*[3]uint64{}
		steps := map[uint32]bool{}
		for i := range list {
			a := &list[i]
			var layer any = int64(a.layer)
			if a.layer == observe.NoLayer {
				layer = nil
			}
			tally(byToken, a, uint64(a.step), uint64(a.token), a.phase, a.class)
			tally(byLayer, a, layer, a.class)
			tally(byObject, a, uint64(a.object), a.class)
			tally(byRegion, a, a.class)
			if a.phase == observe.PhaseDecode {
				tally(decode, a, a.class)
				tally(decode, a, layer, a.class)
				steps[a.step] = true
			}
		}
		// Counts commute: parts of the stream, joined in any order.
		parts := make([]*Traffic, rapid.IntRange(1, 4).Draw(t, "parts"))
		for i := range parts {
			parts[i] = NewTraffic()
		}
		for rest := list; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "rows")
			if err := parts[rapid.IntRange(0, len(parts)-1).Draw(t, "part")].Observe(batchOf(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		sum := parts[0]
		for _, p := range parts[1:] {
			if err := sum.Join(p); err != nil {
				t.Fatal(err)
			}
		}
		for id := range uint32(5) {
			want := byObject[fmt.Sprint(uint64(id), classes[id%3])]
			if want == nil {
				want = &[3]uint64{}
			}
			if r, w, p := sum.ObjectFlow(id); [3]uint64{r, w, p} != *want {
				t.Fatalf("object %d: %d, %d, %d, want %v", id, r, w, p, *want)
			}
		}
		if sum.DecodeTokens() != len(steps) {
			t.Fatalf("%d decode tokens, want %d", sum.DecodeTokens(), len(steps))
		}
		tables, err := sum.Tables()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			name  string
			want  map[string]*[3]uint64
			key   []int
			bytes int
		}{
			{"traffic_by_token", byToken, []int{0, 1, 2, 4}, 5}, {"traffic_by_layer", byLayer, []int{0, 1}, 2},
			{"traffic_by_region", byRegion, []int{0}, 1}, {"traffic_by_object", byObject, []int{0, 1}, 2},
		} {
			if tables[i].Name != c.name || len(tables[i].Rows) != len(c.want) {
				t.Fatalf("%s with %d rows, want %s with %d", tables[i].Name, len(tables[i].Rows), c.name, len(c.want))
			}
			for _, row := range tables[i].Rows {
				var key []any
				for _, k := range c.key {
					key = append(key, row[k])
				}
				want := c.want[fmt.Sprint(key...)]
				if want == nil || row[c.bytes] != want[0] || row[c.bytes+1] != want[1] || row[c.bytes+2] != want[2] {
					t.Fatalf("%s: %v, want %v", c.name, row, want)
				}
				if c.bytes > 2 || c.name == "traffic_by_object" {
					continue
				}
				var perToken any
				if len(steps) > 0 {
					d := decode[fmt.Sprint(key...)]
					if d == nil {
						d = &[3]uint64{}
					}
					perToken = float64(d[0]) / float64(len(steps))
				}
				if got := row[c.bytes+3]; got != perToken {
					t.Fatalf("%s: %v bytes a token, want %v", c.name, got, perToken)
				}
			}
		}
	})
}

func TestRegionsAreHulls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStream(t)
		want := map[uint32]*trace.RegionRow{}
		for i := range list {
			a := &list[i]
			if a.region == 0 {
				continue
			}
			w := want[a.region]
			if w == nil {
				w = &trace.RegionRow{RegionID: a.region, RegionType: a.class, PageMin: ^uint64(0), FirstSeenNS: a.time}
				want[a.region] = w
			}
			a.bytes(func(b uint64) {
				w.PageMin, w.PageMax = min(w.PageMin, (a.base+b)>>12), max(w.PageMax, (a.base+b)>>12)
			})
			w.LastSeenNS = max(w.LastSeenNS, a.time)
			w.AccessCount++
		}
		cut := rapid.IntRange(0, len(list)).Draw(t, "cut")
		one, two := NewRegions(), NewRegions()
		batches(t, list[:cut], one)
		batches(t, list[cut:], two)
		if rapid.Bool().Draw(t, "the other way round") {
			one, two = two, one
		}
		if err := one.Join(two); err != nil {
			t.Fatal(err)
		}
		rows := slices.SortedFunc(maps.Values(want), func(a, b *trace.RegionRow) int { return cmp.Compare(a.RegionID, b.RegionID) })
		got := one.Rows()
		if len(got) != len(rows) {
			t.Fatalf("%d regions, want %d", len(got), len(rows))
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], *rows[i]) {
				t.Fatalf("%+v, want %+v", got[i], *rows[i])
			}
		}
	})
}

func TestGrowthJoinsMarksAndTraffic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStream(t)
		traffic, growth := NewTraffic(), NewGrowth()
		batches(t, list, traffic)
		want := map[uint64]*[3]uint64{}
		phases := map[uint64]string{}
		for i := range list {
			a := &list[i]
			s := uint64(a.step)
			phases[s] = a.phase
			if want[s] == nil {
				want[s] = &[3]uint64{}
			}
			if a.class == observe.ClassKVCache {
				m := map[string]*[3]uint64{"": want[s]}
				tally(m, a, "")
			}
		}
		steps := uint64(list[len(list)-1].step) + 2 // two more, of which no row is known
		start := list[0].time
		for s := uint64(1); s <= steps; s++ {
			growth.Cells(s, s*3, start+s*1000)
			growth.Bytes(s, s*300)
		}
		table := growth.Table(traffic)
		if len(table.Rows) != int(steps) {
			t.Fatalf("%d rows, want %d", len(table.Rows), steps)
		}
		col := func(row []any, name string) any { return row[table.Index(name)] }
		for i, row := range table.Rows {
			s := uint64(i + 1)
			if col(row, "step") != s || col(row, "cells_in_use") != s*3 || col(row, "bytes_in_use") != s*300 {
				t.Fatalf("row %d: %v", i, row)
			}
			w := want[s]
			if w == nil {
				if col(row, "phase") != nil || col(row, "bytes_read") != uint64(0) {
					t.Fatalf("a step without rows: %v", row)
				}
				continue
			}
			if col(row, "phase") != phases[s] || col(row, "time_s") != float64(s*1000)/1e9 || col(row, "bytes_read") != w[0] || col(row, "bytes_written") != w[1] || col(row, "padding_bytes_read") != w[2] {
				t.Fatalf("row %d: %v, want %s and %v", i, row, phases[s], *w)
			}
		}
	})
}

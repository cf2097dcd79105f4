package mrm_test

import (
	"testing"

	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/observe"
)

// TestLarge is enough rows for what short traces never reach: regions with a log
// of their own, selection in several passes, a page that no hash can cut.
func TestLarge(t *testing.T) {
	const n = 150_000
	x := uint64(7)
	next := func(n uint64) uint64 {
		x += 0x9E3779B97F4A7C15
		h := (x ^ x>>30) * 0xBF58476D1CE4E5B9
		return (h ^ h>>27) % n
	}
	for _, c := range []struct {
		name     string
		time     func(i uint64) uint64
		addr     func(i uint64) uint64
		region   func(a uint64) uint32
		oddPages bool
	}{
		{name: "one region, many addresses, in order",
			time: func(i uint64) uint64 { return i*1000 + next(1000) }, addr: func(uint64) uint64 { return next(1<<40) &^ 63 },
			region: func(uint64) uint32 { return 1 }},
		{name: "two regions, few addresses, out of order",
			time: func(i uint64) uint64 { return i*1000 + next(5000) }, addr: func(uint64) uint64 { return next(50) * 512 },
			region: func(a uint64) uint32 { return uint32(a >> 9 & 1) }},
		{name: "one address, out of order",
			time: func(i uint64) uint64 { return next(1 << 33) }, addr: func(uint64) uint64 { return 0x7000 },
			region: func(uint64) uint32 { return 3 }, oddPages: true},
		{name: "a region for each page, in order",
			time: func(i uint64) uint64 { return i * 7 }, addr: func(uint64) uint64 { return next(20000) * 1024 },
			region: func(a uint64) uint32 { return uint32(a >> 12) }},
		{name: "regions of 65536 distances, equal intervals",
			time: func(i uint64) uint64 { return i * 1_000_000_007 }, addr: func(i uint64) uint64 { return i % 4 * 4096 },
			region: func(a uint64) uint32 { return uint32(a >> 12) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := make([]row, n)
			types, ops := []string{"weight", "kv_cache", "activation"}, []string{"load", "store", "load"}
			for i := range rows {
				time, addr := c.time(uint64(i)), c.addr(uint64(i))
				id, page := c.region(addr), addr>>12
				if c.oddPages {
					page += next(3)
				}
				rows[i] = row{&time, &addr, &page, &id, &types[id%3], &ops[next(3)]}
			}
			want := reference(rows)
			var in []*observe.Batch
			td, od := observe.NewDict(), observe.NewDict()
			for at := 0; at < n; at += 1 << 15 {
				in = append(in, batchOf(rows[at:min(n, at+1<<15)], td, od))
			}
			for _, memory := range []int64{0, 1 << 20, 1} {
				s := mrm.New(mrm.Options{Memory: memory, TempDir: t.TempDir()})
				observeAll(t, s, in)
				if (s.Spilled() > 0) != (memory != 0) {
					t.Errorf("memory limit %d: %d bytes spilled while observing", memory, s.Spilled())
				}
				sameAsReference(t, finish(t, s), want)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			a, b := mrm.New(mrm.Options{}), mrm.New(mrm.Options{FirstRow: 3 << 15, Memory: 1 << 20, TempDir: t.TempDir()})
			defer a.Close()
			observeAll(t, a, in[:3])
			observeAll(t, b, in[3:])
			if err := a.Follow(b); err != nil {
				t.Fatal(err)
			}
			sameAsReference(t, finish(t, a), want)
		})
	}
}

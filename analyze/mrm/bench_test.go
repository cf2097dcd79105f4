package mrm_test

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/analyze/mrm"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// points makes batches of point accesses in order of time: a weight region, KV
// blocks of 4 KiB each a region of its own, activations; addresses of 64 bytes.
func points(rows, addresses int) []*observe.Batch {
	types := observe.NewDict("weight", "kv_cache", "activation")
	ops := observe.NewDict(observe.Load, observe.Store)
	const size = 1 << 16
	var out []*observe.Batch
	x, now := uint64(1), uint64(1)<<40
	for done := 0; done < rows; done += size {
		n := min(size, rows-done)
		time, addr, page := make([]uint64, n), make([]uint64, n), make([]uint64, n)
		id, typ, op := make([]uint32, n), make([]uint32, n), make([]uint32, n)
		for i := range n {
			x += 0x9E3779B97F4A7C15
			h := x
			h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
			h = (h ^ h>>27) * 0x94D049BB133111EB
			h ^= h >> 31
			now += h >> 50
			time[i] = now
			a := h % uint64(addresses)
			switch k := a % 8; {
			case k < 4:
				typ[i], id[i] = 0, 1
				addr[i] = 0x7f0000000000 + a*64
			case k < 7:
				typ[i] = 1
				addr[i] = 0x7f8000000000 + a*64
				id[i] = uint32(2 + a>>12)
			default:
				typ[i] = 2
				addr[i] = 0x7fc000000000 + a*64
				id[i] = uint32(1_000_000 + a%100)
			}
			page[i] = addr[i] >> 12
			if typ[i] != 0 && h>>60 < 4 {
				op[i] = 1
			}
		}
		out = append(out, &observe.Batch{
			Len: n, Time: observe.SliceOf(time), Address: observe.SliceOf(addr), AddressPage: observe.SliceOf(page),
			RegionID:   observe.SliceOf(id),
			RegionType: observe.Strings{Column: observe.SliceOf(typ), Dict: types},
			OpType:     observe.Strings{Column: observe.SliceOf(op), Dict: ops},
		})
	}
	return out
}

// BenchmarkTables is all ten tables, from batches to JSON.
func BenchmarkTables(b *testing.B) {
	const rows = 10_000_000
	for _, addresses := range []int{8 << 20, 1 << 20, 1 << 14} {
		b.Run(fmt.Sprintf("addresses=%d", addresses), func(b *testing.B) {
			in := points(rows, addresses)
			b.ResetTimer()
			for range b.N {
				s := mrm.New(mrm.Options{})
				for _, batch := range in {
					if err := s.Observe(batch); err != nil {
						b.Fatal(err)
					}
				}
				r, err := s.Result()
				if err != nil {
					b.Fatal(err)
				}
				if err := r.WriteJSON(io.Discard); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkFile is the same from a trace file: decoding included.
func BenchmarkFile(b *testing.B) {
	const rows = 10_000_000
	for _, addresses := range []int{8 << 20, 1 << 14} {
		b.Run(fmt.Sprintf("addresses=%d", addresses), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "trace.parquet")
			writeTrace(b, path, trace.Options{}, points(rows, addresses))
			b.ResetTimer()
			for range b.N {
				tablesOfFile(b, path, mrm.Options{})
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkHard is what costs more: rows out of order of time, and a memory limit
// far below the rows.
func BenchmarkHard(b *testing.B) {
	const rows = 4_000_000
	for _, c := range []struct {
		name   string
		memory int64
		jitter uint64
	}{{"unordered", 0, 1 << 20}, {"memory=32MiB", 32 << 20, 0}, {"unordered,memory=32MiB", 32 << 20, 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			in := points(rows, 1<<20)
			x := uint64(3)
			for _, batch := range in {
				for i := range batch.Time.Values {
					x = x*6364136223846793005 + 1442695040888963407
					batch.Time.Values[i] += (x >> 33) % (c.jitter + 1)
				}
			}
			b.ResetTimer()
			for range b.N {
				s := mrm.New(mrm.Options{Memory: c.memory, TempDir: b.TempDir()})
				for _, batch := range in {
					if err := s.Observe(batch); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := s.Result(); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func tablesOfFile(b *testing.B, path string, o mrm.Options) {
	in, err := trace.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	s := mrm.New(o)
	defer s.Close()
	if err := in.Read(s.Columns(), s.Observe); err != nil {
		b.Fatal(err)
	}
	r, err := s.Result()
	if err != nil {
		b.Fatal(err)
	}
	if err := r.WriteJSON(io.Discard); err != nil {
		b.Fatal(err)
	}
}

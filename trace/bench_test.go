package trace

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierscope/tierscope/observe"
)

// points returns n sampled accesses: random addresses in a working set of
// bytes, rising times, most columns constant or absent.
func points(n int, bytes uint64, seed uint64) *observe.Batch {
	rnd := rand.New(rand.NewPCG(seed, 1))
	d := observe.NewDict("load", "store")
	addr, page, time := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	op, typ, region := make([]uint32, n), make([]uint32, n), make([]uint32, n)
	types := []uint32{d.Code("weight"), d.Code("kv_cache"), d.Code("activation"), d.Code("runtime")}
	now := uint64(1_000_000_000)
	for i := range n {
		off := rnd.Uint64N(bytes) &^ 7
		addr[i] = 0x7f12_3450_0000 + off
		page[i] = addr[i] >> 12
		now += rnd.Uint64N(2000)
		time[i] = now
		if rnd.Uint64N(10) == 0 {
			op[i] = 1
		}
		k := off * 40 / bytes
		region[i] = uint32(k) + 1
		typ[i] = types[k/10]
	}
	return &observe.Batch{
		Len:         n,
		RunID:       observe.ConstString(d, "bench_ctx2048_batch1_out128_rep0"),
		SampleID:    observe.RunOf[uint64](0, 1),
		Time:        observe.SliceOf(time),
		Phase:       observe.ConstString(d, observe.PhaseDecode),
		Address:     observe.SliceOf(addr),
		AddressPage: observe.SliceOf(page),
		OpType:      observe.Strings{Column: observe.SliceOf(op), Dict: d},
		Symbol:      observe.ConstString(d, ""),
		DSO:         observe.ConstString(d, ""),
		RegionType:  observe.Strings{Column: observe.SliceOf(typ), Dict: d},
		RegionID:    observe.SliceOf(region),
		ThreadID:    observe.ConstOf[uint32](4242),
		PID:         observe.ConstOf[uint32](4242),
		Weight:      observe.ConstOf[uint64](4000),
		Collector:   observe.ConstString(d, "perfmem"),
		TimeQuality: observe.ConstString(d, observe.TimeExact),
		Space:       observe.ConstString(d, observe.SpaceHost),
	}
}

// scatter spreads the addresses of b over four distant mappings.
func scatter(b *observe.Batch) *observe.Batch {
	rnd := rand.New(rand.NewPCG(7, uint64(b.Len)))
	for i, a := range b.Address.Values {
		a += [...]uint64{0, 0xffff_d642_cbb0_0000, 0xaa_0000_0000, 0xea_1234_5000}[rnd.IntN(4)]
		b.Address.Values[i], b.AddressPage.Values[i] = a, a>>12
	}
	return b
}

const benchBatch = 1 << 15

func writePoints(tb testing.TB, path string, opts Options, batches int, bytes uint64, change ...func(*observe.Batch) *observe.Batch) int64 {
	var in []*observe.Batch
	for i := range 8 {
		p := points(benchBatch, bytes, uint64(i))
		for _, f := range change {
			p = f(p)
		}
		in = append(in, p)
	}
	if b, ok := tb.(*testing.B); ok {
		b.ResetTimer()
	}
	w, err := Create(path, opts)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range batches {
		b := *in[i%len(in)]
		b.SampleID.First = uint64(i) * benchBatch
		if err := w.Accesses(&b); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}

func BenchmarkWritePoints(b *testing.B) {
	for _, c := range []struct {
		name        string
		compression string
		change      []func(*observe.Batch) *observe.Batch
	}{
		{"zstd", "zstd", nil}, {"snappy", "snappy", nil}, {"none", "none", nil},
		{"zstd_scattered", "zstd", []func(*observe.Batch) *observe.Batch{scatter}},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "trace.parquet")
			size := writePoints(b, path, Options{Compression: c.compression}, b.N, 1<<30, c.change...)
			n := float64(b.N) * benchBatch
			b.ReportMetric(n/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(size)/n, "B/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}

const colsAnalysis = observe.ColTime | observe.ColAddress | observe.ColAddressPage | observe.ColOpType |
	observe.ColRegionType | observe.ColRegionID

func BenchmarkReadCompatColumns(b *testing.B) {
	path := filepath.Join(b.TempDir(), "trace.parquet")
	writePoints(b, path, Options{}, 64, 1<<30)
	r, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct {
		name string
		cols observe.Cols
	}{{"six", colsAnalysis}, {"all", observe.ColsAll}} {
		b.Run(c.name, func(b *testing.B) {
			var rows, sum uint64
			for b.Loop() {
				err := r.Read(c.cols, func(b *observe.Batch) error {
					rows += uint64(b.Len)
					sum += b.Address.At(b.Len-1) + uint64(b.RegionType.At(0))
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			if sum == 0 {
				b.Fatal("nothing was read")
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

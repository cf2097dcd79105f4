package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

const (
	batchRows  = 1 << 15
	workingSet = 1 << 30 // bytes
)

// points makes n batches of sampled accesses: random words of a working set of 40
// regions in four mappings, one store in ten, times rising by 1 us on average.
func points(n int) []*observe.Batch {
	rnd := rand.New(rand.NewPCG(7, 1))
	d := observe.NewDict(observe.Load, observe.Store)
	types := []uint32{d.Code(observe.ClassWeight), d.Code(observe.ClassKVCache), d.Code(observe.ClassActivation), d.Code(observe.ClassRuntime)}
	now := uint64(1_000_000_000)
	var out []*observe.Batch
	for k := range n {
		addr, page, time := make([]uint64, batchRows), make([]uint64, batchRows), make([]uint64, batchRows)
		op, typ, region := make([]uint32, batchRows), make([]uint32, batchRows), make([]uint32, batchRows)
		for i := range batchRows {
			off := rnd.Uint64N(workingSet) &^ 7
			addr[i] = 0x7f12_3450_0000 + off
			page[i] = addr[i] >> 12
			now += rnd.Uint64N(2000)
			time[i] = now
			if rnd.Uint64N(10) == 0 {
				op[i] = 1
			}
			r := off * 40 / workingSet
			region[i], typ[i] = uint32(r)+1, types[r/10]
		}
		out = append(out, &observe.Batch{
			Len: batchRows, RunID: observe.ConstString(d, "bench_ctx2048_batch1_out128_rep0"), SampleID: observe.RunOf(uint64(k)*batchRows, 1),
			Time: observe.SliceOf(time), Phase: observe.ConstString(d, observe.PhaseDecode), Address: observe.SliceOf(addr), AddressPage: observe.SliceOf(page),
			OpType: observe.Strings{Column: observe.SliceOf(op), Dict: d}, Symbol: observe.ConstString(d, ""), DSO: observe.ConstString(d, ""),
			RegionType: observe.Strings{Column: observe.SliceOf(typ), Dict: d}, RegionID: observe.SliceOf(region),
			ThreadID: observe.ConstOf[uint32](4242), PID: observe.ConstOf[uint32](4242), Weight: observe.ConstOf[uint64](4000),
			Collector: observe.ConstString(d, "perfmem"), TimeQuality: observe.ConstString(d, observe.TimeExact), Space: observe.ConstString(d, observe.SpaceHost),
		})
	}
	return out
}

// writeTrace writes batches as a trace and returns its size in bytes.
func writeTrace(path string, in []*observe.Batch) (int64, error) {
	w, err := trace.Create(path, trace.Options{})
	if err != nil {
		return 0, err
	}
	for _, batch := range in {
		if err := w.Accesses(batch); err != nil {
			w.Abort()
			return 0, err
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// raw is what no format can do without: the columns that vary, as bytes.
func raw(in []*observe.Batch) [][]byte {
	cols := make([][]byte, 5)
	for _, p := range in {
		for i := range p.Len {
			cols[0] = binary.LittleEndian.AppendUint64(cols[0], p.Time.Values[i])
			cols[1] = binary.LittleEndian.AppendUint64(cols[1], p.Address.Values[i])
			cols[2] = append(cols[2], byte(p.OpType.Values[i]))
			cols[3] = append(cols[3], byte(p.RegionType.Values[i]))
			cols[4] = binary.LittleEndian.AppendUint32(cols[4], p.RegionID.Values[i])
		}
	}
	return cols
}

func (b *bed) rows() error {
	in := points(pick(b, 12, 64))
	n, rounds := len(in)*batchRows, pick(b, 2, 8)
	var size int64
	var round int
	written, err := b.rate(n, rounds, func() (err error) {
		path := filepath.Join(b.dir, fmt.Sprintf("points-%d.parquet", round))
		round++
		size, err = writeTrace(path, in)
		return err
	})
	if err != nil {
		return err
	}
	cols := raw(in)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer enc.Close()
	const piece = 1 << 20
	var packed int
	var buf []byte
	zipped, err := b.rate(n, rounds, func() error {
		packed = 0
		for _, c := range cols {
			for at := 0; at < len(c); at += piece {
				buf = enc.EncodeAll(c[at:min(len(c), at+piece)], buf[:0])
				packed += len(buf)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	to := make([]byte, piece)
	copied, err := b.rate(n*100, rounds, func() error {
		for range 100 {
			for _, c := range cols {
				for at := 0; at < len(c); at += piece {
					copy(to, c[at:min(len(c), at+piece)])
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d points: random words of 1 GiB in 40 regions, written as trace.parquet with all its columns, zstd; ", n)
	b.add(
		figure{ID: "row_bytes", What: "a row of points in trace.parquet", Unit: "B", Goal: atMost(12), Value: float64(size) / float64(n), N: n, Of: "rows", How: what + "size of the file over its rows; exact."},
		figure{ID: "row_bytes_zstd", What: "beside: zstd of the raw columns that vary", Unit: "B", Value: float64(packed) / float64(n), N: n, Of: "rows", How: "The same rows' time, address, operation, region and its type, 22 B a row, in pieces of 1 MiB through zstd at its fastest."},
		sampled(figure{ID: "row_write", What: "rows of points written", Unit: "rows/s a core", Goal: atLeast(3e6), Of: "files", How: what + "rows over processor time, footer and fsync included."}, written),
		sampled(figure{ID: "row_write_zstd", What: "beside: zstd alone", Unit: "rows/s a core", Of: "passes", How: "The zstd of the raw columns, by processor time: what the codec alone would cost without any encoding before it."}, zipped),
		sampled(figure{ID: "row_write_copy", What: "beside: memcpy of the raw columns", Unit: "rows/s a core", Of: "passes", How: "The raw columns copied once, the limit of any writer."}, copied))
	return nil
}

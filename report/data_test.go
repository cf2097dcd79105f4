package report

import (
	"math"
	"math/rand/v2"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

// A small llama of 30 layers, as it is observed: figures of this size and shape.
const (
	layers     = 30
	weightRead = 96_600_000
	cellBytes  = 23_040
	actBytes   = 20_000_000
	padTo      = 256
)

// request is a prompt of so many tokens and an answer; kept says that the cache
// of the one before is reused.
type request struct {
	prompt, answer int
	kept           bool
}

var smallRun = []request{{41, 60, false}, {380, 120, false}, {24, 120, true}}

func cols(names ...string) []analyze.TableColumn {
	var out []analyze.TableColumn
	units := map[string]string{"time_s": "s", "bytes_read": "B", "bytes_written": "B", "bytes_in_use": "B", "padding_bytes_read": "B",
		"decode_bytes_read_per_token": "B/token", "decode_bytes_written_per_token": "B/token", "bytes_total": "B",
		"p50_s": "s", "p90_s": "s", "p99_s": "s", "max_s": "s", "lower_s": "s", "upper_s": "s", "bytes": "B",
		"never_read_bytes": "B", "open_bytes": "B", "size": "B"}
	for _, n := range names {
		c := analyze.TableColumn{Name: n, Unit: units[n], Exactness: analyze.Exact}
		switch n {
		case "p50_s", "p90_s", "p99_s":
			c.Exactness = analyze.Sketched
		case "time_s":
			c.Exactness = analyze.Interpolated
		}
		out = append(out, c)
	}
	return out
}

// sample makes the tables of a run of the given requests.
func sample(requests []request) *Data {
	rng := rand.New(rand.NewPCG(7, 11))
	d := &Data{
		Title: "SmolLM2-135M-Instruct Q4_1, three prompts",
		Summary: []string{
			"The model generated 300 tokens for three prompts in 3.4 s; nothing was lost on the way.",
			"Each generated token read 96.6 MB of weights, which is every weight that decoding needs, once.",
			"The KV cache grew by 23,040 B a token, to 565 cells and 12.4 MiB at its largest.",
			"Of all bytes read, 76 % were weights, 19 % activations and 5 % KV cache.",
			"Half of the bytes of activations were needed for less than 40 µs; weights were needed for the whole run.",
			"A third of the bytes read of the cache was padding to 256 cells.",
		},
		Method: []string{
			"Every graph evaluation was seen by name, object and bytes through the engine's own tensor tables; no tensor data was copied.",
			"Start and end of a graph are exact; times in between are interpolated.",
			"Bytes are operand bytes: what operations name, not what passes a cache.",
		},
	}
	traffic := analyze.Table{Name: "traffic_by_token", Columns: cols("step", "token", "phase", "time_s", "region_type", "bytes_read", "bytes_written")}
	growth := analyze.Table{Name: "kv_growth", Columns: cols("step", "time_s", "phase", "cells_in_use", "bytes_in_use", "bytes_read", "padding_bytes_read")}
	var step, token, cells uint64
	t, decodeSteps := 0.21, 0
	sum := map[string][2]uint64{}
	decode := map[string][2]uint64{}
	one := func(phase string, n uint64) {
		cells += n
		padded := (cells + padTo - 1) / padTo * padTo
		act := uint64(float64(actBytes*n) * (0.98 + 0.04*rng.Float64()))
		for _, r := range []struct {
			region      string
			read, write uint64
		}{{"weight", weightRead, 0}, {"kv_cache", padded * cellBytes, n * cellBytes},
			{"activation", act, act * 6 / 10}, {"runtime", 4096 + n*64, 2048}} {
			traffic.Rows = append(traffic.Rows, []any{step, token, phase, t, r.region, r.read, r.write})
			s := sum[r.region]
			sum[r.region] = [2]uint64{s[0] + r.read, s[1] + r.write}
			if phase == "decode" {
				s := decode[r.region]
				decode[r.region] = [2]uint64{s[0] + r.read, s[1] + r.write}
			}
		}
		growth.Rows = append(growth.Rows, []any{step, t, phase, cells, cells * cellBytes, cells * cellBytes, (padded - cells) * cellBytes})
		step++
		t += 0.009 + 0.0004*float64(n)
		if phase == "decode" {
			decodeSteps++
		}
	}
	for _, r := range requests {
		if !r.kept {
			cells = 0
		}
		token = 0
		one("prefill", uint64(r.prompt))
		for range r.answer {
			one("decode", 1)
			token++
		}
	}
	d.Tables = append(d.Tables, traffic, growth)
	regions := []string{"weight", "kv_cache", "activation", "runtime"}
	d.Tables = append(d.Tables, byRegion(regions, sum, decode, decodeSteps), byLayer(rng, sum, decode, decodeSteps), lifetimeTable(t), distribution(rng, t), objects(rng), metricsTable())
	d.Facts = []Fact{{"tokens generated", uint64(decodeSteps), ""}, {"weight bytes read per token", uint64(weightRead), "B"},
		{"KV bytes written per token", uint64(cellBytes), "B"}, {"KV cache at its largest", uint64(565 * cellBytes), "B"},
		{"decode speed", 98.4137, "tokens/s"}, {"time", t, "s"}, {"traffic not attributed", 0.0, "%"}, {"last-level misses", nil, ""}}
	d.Machine = []Fact{{"CPU", "AMD EPYC, 2 vCPU", ""}, {"memory", uint64(24 << 30), "B"}, {"kernel", "6.18.5", ""}, {"engine", "llama.cpp b7350", ""},
		{"threads", int64(1), ""}, {"clock", "monotonic", ""}}
	d.Notes = []run.Note{
		{Code: "quantile_error", Severity: run.Info, Text: "Quantiles of lifetimes are within 1 % of the true value.", Figures: []string{"lifetime_by_region"}},
		{Code: "cpu_throttled", Severity: run.Warning, Text: "The CPU was throttled during the run: speeds and times are not those of a cool machine.", Figures: []string{"decode speed", "time_s"}, Count: 1234},
		{Code: "no_pmu", Severity: run.Info, Text: "This machine has no performance counters: cache levels are not known."},
	}
	return d
}

func byRegion(regions []string, sum, decode map[string][2]uint64, steps int) analyze.Table {
	t := analyze.Table{Name: "traffic_by_region", Columns: cols("region_type", "bytes_read", "bytes_written", "decode_bytes_read_per_token", "decode_bytes_written_per_token", "objects")}
	for i, r := range regions {
		t.Rows = append(t.Rows, []any{r, sum[r][0], sum[r][1], float64(decode[r][0]) / float64(steps), float64(decode[r][1]) / float64(steps), []uint64{272, 60, 611, 9}[i]})
	}
	return t
}

func byLayer(rng *rand.Rand, sum, decode map[string][2]uint64, steps int) analyze.Table {
	t := analyze.Table{Name: "traffic_by_layer", Columns: cols("layer", "region_type", "bytes_read", "bytes_written", "decode_bytes_read_per_token")}
	put := func(layer any, region string, share float64) {
		t.Rows = append(t.Rows, []any{layer, region, uint64(share * float64(sum[region][0])), uint64(share * float64(sum[region][1])), share * float64(decode[region][0]) / float64(steps)})
	}
	for l := range int64(layers) {
		put(l, "weight", 0.69/layers)
		put(l, "kv_cache", 1.0/layers)
		put(l, "activation", (0.9+0.05*rng.Float64())/layers)
	}
	put(nil, "weight", 0.31)
	put(nil, "activation", 0.08)
	put(nil, "runtime", 1)
	return t
}

func lifetimeTable(end float64) analyze.Table {
	return analyze.Table{Name: "lifetime_by_region", Columns: cols("region_type", "bytes_total", "p50_s", "p90_s", "p99_s", "max_s", "never_read_bytes", "open_bytes"),
		Rows: [][]any{
			{"weight", uint64(98_362_432), end * 0.93, end * 0.93, end * 0.93, end * 0.93, uint64(0), uint64(98_362_432)},
			{"kv_cache", uint64(16_934_400), 0.62, 1.31, 1.52, 1.55, uint64(0), uint64(12_000_000)},
			{"activation", uint64(7_900_000_000), 38e-6, 0.00041, 0.0082, 0.19, uint64(812_000), uint64(0)},
			{"runtime", uint64(1_234_567), 0.0021, 0.009, 0.011, nil, uint64(4096), uint64(2048)},
		}}
}

// distribution is lognormal per region, in four buckets an octave of ten.
func distribution(rng *rand.Rand, end float64) analyze.Table {
	t := analyze.Table{Name: "lifetime_distribution", Columns: cols("region_type", "lower_s", "upper_s", "bytes")}
	for _, r := range []struct {
		region             string
		median, sigma, all float64
	}{{"weight", end * 0.93, 0.01, 98_362_432}, {"kv_cache", 0.62, 0.7, 16_934_400}, {"activation", 38e-6, 1.6, 7.9e9}, {"runtime", 0.0021, 0.8, 1_234_567}} {
		cdf := func(x float64) float64 {
			return 0.5 * math.Erfc(-(math.Log(x)-math.Log(r.median))/(r.sigma*math.Sqrt2))
		}
		for k := -28; k < 4; k++ {
			lo, hi := math.Pow(10, float64(k)/4), math.Pow(10, float64(k+1)/4)
			if b := uint64(r.all * (cdf(hi) - cdf(lo)) * (0.99 + 0.02*rng.Float64())); b > 0 {
				t.Rows = append(t.Rows, []any{r.region, lo, hi, b})
			}
		}
	}
	return t
}

func objects(rng *rand.Rand) analyze.Table {
	t := analyze.Table{Name: "objects", Columns: cols("name", "region_type", "size", "bytes_read", "bytes_written")}
	for _, n := range []string{"token_embd.weight", "blk.0.ffn_down.weight", "blk.0.ffn_up.weight", "blk.0.ffn_gate.weight"} {
		t.Rows = append(t.Rows, []any{n, "weight", 30_081_024 / uint64(1+rng.IntN(60)), uint64(rng.Uint32()), uint64(0)})
	}
	return withRows(t, []any{"cache_k_l0 <&\"' 層>", "kv_cache", uint64(393_216), uint64(rng.Uint32()), uint64(115_200)})
}

func withRows(t analyze.Table, rows ...[]any) analyze.Table {
	t.Rows = append(t.Rows, rows...)
	return t
}

// metricsTable has the columns of metrics.csv; they carry no units.
func metricsTable() analyze.Table {
	t := analyze.Table{Name: "metrics", Rows: [][]any{
		{"activation", int64(611), 0.000038, 0.019, 0.31, 1.94, uint64(24_576_000), "low_mrm"},
		{"kv_cache", int64(60), 0.62, 1.52, 0.998, 611.5, uint64(16_934_400), "medium_mrm"},
		{"runtime", int64(9), nil, nil, nil, math.Inf(1), uint64(36_864), "low_mrm"},
		{"weight", int64(1), 3.1, 3.1, 1.0, 301.0, uint64(98_365_440), "low_mrm"}}}
	for _, n := range []string{"region_type", "n_regions", "retention_p50_s", "retention_p99_s", "write_once_ratio_mean", "reads_per_write_mean", "working_set_bytes", "suitability"} {
		t.Columns = append(t.Columns, analyze.TableColumn{Name: n})
	}
	return t
}

package tensorgraph_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/run"
	"github.com/tierscope/tierscope/trace"
)

var update = flag.Bool("update", false, "record testdata/small.log anew, and what it says")

// logRecord is one record of a graph log.
type logRecord struct {
	kind    uint8
	payload []byte
}

// smallLog is a log of a tiny model with experts, a transposed cache and two
// sequences; its paths are made neutral.
const smallLog = "testdata/small.log"

func readLog(t testing.TB, path string) (out []logRecord) {
	t.Helper()
	r, err := trace.OpenGraphLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		kind, p, err := r.Next()
		if err != nil {
			return out
		}
		out = append(out, logRecord{kind, slices.Clone(p)})
	}
}

func writeLog(t testing.TB, path string, list []logRecord) {
	t.Helper()
	w, err := trace.CreateGraphLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if err := w.Append(r.kind, r.payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// neutral takes the paths of this machine out of a log.
func neutral(t *testing.T, list []logRecord, model string) {
	t.Helper()
	for i := range list {
		switch r := &list[i]; r.kind {
		case trace.KindMaps:
			var keep []string
			for line := range strings.Lines(string(r.payload)) {
				if strings.Contains(line, model) || len(strings.Fields(line)) < 6 {
					keep = append(keep, strings.ReplaceAll(line, model, "/models/small.gguf"))
				}
			}
			r.payload = []byte(strings.Join(keep, ""))
		case trace.KindModel:
			var m trace.Model
			unmarshal(t, r.payload, &m)
			m.Path = "/models/small.gguf"
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			r.payload = b
		}
	}
}

// sums is a sink that adds up, holds rows against their objects, and gives up on
// endless streams.
type sums struct {
	objects map[uint32]observe.Object
	bytes   map[string]uint64
	rows    int
	marks   int
	limit   int
}

var errEnough = errors.New("enough rows")

func newSums(limit int) *sums {
	return &sums{objects: map[uint32]observe.Object{}, bytes: map[string]uint64{}, limit: limit}
}

func (s *sums) Object(o observe.Object) error {
	s.objects[o.ID] = o
	return nil
}

func (s *sums) Mark(observe.Mark) error {
	s.marks++
	return nil
}

func (s *sums) Accesses(b *observe.Batch) error {
	for i := range b.Len {
		o, ok := s.objects[b.Object.At(i)]
		if !ok || b.Count.At(i) == 0 || b.Address.At(i) != o.Base+b.Offset.At(i) || b.RegionType.Text(i) != o.Class {
			return fmt.Errorf("row %d names object %d, %d pieces at %#x, class %s", s.rows+i, b.Object.At(i), b.Count.At(i), b.Address.At(i), b.RegionType.Text(i))
		}
		s.bytes[strings.Join([]string{b.Phase.Text(i), b.OpType.Text(i), o.Class}, " ")] += b.Size.At(i)
	}
	if s.rows += b.Len; s.rows > s.limit {
		return errEnough
	}
	return nil
}

func (s *sums) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rows %d\nmarks %d\nobjects %d\n", s.rows, s.marks, len(s.objects))
	for _, k := range slices.Sorted(maps.Keys(s.bytes)) {
		fmt.Fprintf(&b, "%s %d\n", k, s.bytes[k])
	}
	return b.String()
}

// TestSmallLog expands a log as it was once recorded: what a newer tierscope makes of
// an older run stays the same.
func TestSmallLog(t *testing.T) {
	const want = "testdata/small.txt"
	if *update {
		f := synth(t, func(s *gguf.Spec) {
			*s = gguf.Spec{Layers: 2, Heads: 2, KVHeads: 1, Width: 32, FFN: 32, Vocab: 40, Context: 256, Experts: 4, ExpertsUsed: 2, Seed: 3}
		})
		job := llamacpp.Job{Model: f.Path, Context: 256, Sequences: 2, FlashAttn: "off", Experts: true, NodeTimes: true, Observe: true, Prompts: prompts(
			llamacpp.Prompt{Tokens: 7, Output: 5}, llamacpp.Prompt{Tokens: 4, Output: 3}, llamacpp.Prompt{Tokens: 3, Output: 3, Keep: true})}
		log, _ := record(t, job)
		list := readLog(t, log)
		neutral(t, list, f.Path)
		os.Remove(smallLog)
		writeLog(t, smallLog, list)
	}
	s := newSums(1 << 30)
	if _, err := tensorgraph.Replay(smallLog, tensorgraph.Options{RunID: "small"}, s); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(want, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(want)
	if err != nil || string(b) != s.String() {
		t.Errorf("%v; the log says\n%s\nwant\n%s", err, s, b)
	}
}

// TestEveryCut expands what is left of a log when its end is missing: never an
// error, and said.
func TestEveryCut(t *testing.T) {
	b, err := os.ReadFile(smallLog)
	if err != nil {
		t.Fatal(err)
	}
	path, whole := filepath.Join(t.TempDir(), "cut.log"), 0
	for cut := 8; cut < len(b); cut += 1 + len(b)/400 {
		if err := os.WriteFile(path, b[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		res, err := tensorgraph.Replay(path, tensorgraph.Options{}, newSums(1<<30))
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", cut, err)
		}
		if res.End != nil || res.LogBytes > int64(cut) || (res.Torn == nil) != (res.LogBytes == int64(cut)) {
			t.Fatalf("cut to %d bytes: end %v, torn %v, %d bytes read", cut, res.End, res.Torn, res.LogBytes)
		}
		if res.Torn == nil {
			whole++
		} else if run.ClassOf(res.Torn) != run.Corrupt {
			t.Fatalf("cut to %d bytes: %v", cut, res.Torn)
		}
	}
	for _, cut := range []int{0, 7} {
		if err := os.WriteFile(path, b[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := tensorgraph.Replay(path, tensorgraph.Options{}, newSums(1)); run.ClassOf(err) != run.Corrupt {
			t.Errorf("%d bytes of a magic: %v", cut, err)
		}
	}
}

// expand replays records and holds what must hold whatever they say.
func expand(t testing.TB, dir string, list []logRecord) error {
	t.Helper()
	path := filepath.Join(dir, "x.log")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	writeLog(t, path, list)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tensorgraph.Replay(path, tensorgraph.Options{BlockCells: 16}, newSums(1<<20))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 3<<30 {
		t.Fatalf("%d bytes allocated", n)
	}
	if err != nil && !errors.Is(err, errEnough) && run.ClassOf(err) != run.Corrupt {
		t.Fatalf("class %d: %v", run.ClassOf(err), err)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// odd are numbers that break arithmetic.
var odd = []int64{-1, 0, 1, 2, 3, 16, 31, 255, 256, 1 << 16, 1<<24 - 1, 1 << 24, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 56, 1<<63 - 1, -1 << 63}

// TestHostileLogs damages single fields of a real log, in templates,
// evaluations and all else: the log is expanded or refused as corrupt, in
// bounded memory.
func TestHostileLogs(t *testing.T) {
	list := readLog(t, smallLog)
	dir := t.TempDir()
	refused, passed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		hurt := slices.Clone(list)
		for range rapid.IntRange(1, 3).Draw(rt, "damages") {
			i := rapid.IntRange(0, len(hurt)-1).Draw(rt, "record")
			// Most records are steps and evaluations: give the others their turn.
			kind := rapid.SampledFrom([]uint8{trace.KindTemplate, trace.KindTemplate, trace.KindTemplate, trace.KindEval, trace.KindEval, trace.KindStep, trace.KindTables, trace.KindKV, 0}).Draw(rt, "kind")
			for k := range hurt {
				if j := (i + k) % len(hurt); kind == 0 || hurt[j].kind == kind {
					i = j
					break
				}
			}
			hurt[i].payload = damage(rt, hurt[i])
		}
		if expand(t, dir, hurt) != nil {
			refused++
		} else {
			passed++
		}
	})
	if refused == 0 || passed == 0 {
		t.Errorf("%d logs were refused, %d expanded", refused, passed)
	}
}

func damage(t *rapid.T, r logRecord) []byte {
	n := rapid.SampledFrom(odd).Draw(t, "number")
	switch r.kind {
	case trace.KindTemplate:
		x, err := ggml.DecodeTemplate(r.payload)
		if err != nil {
			return r.payload
		}
		y := &x.Tensors[rapid.IntRange(0, len(x.Tensors)-1).Draw(t, "tensor")]
		if rapid.Bool().Draw(t, "cache") {
			for i := range x.Tensors {
				if z := &x.Tensors[i]; strings.HasPrefix(z.Name, "cache_") && rapid.IntRange(0, 3).Draw(t, "this") == 0 {
					y = z
				}
			}
		}
		dim := rapid.IntRange(0, 3).Draw(t, "dimension")
		switch rapid.SampledFrom([]string{"ne", "ne", "nb", "nb", "type", "op", "source", "view", "offset", "data", "buffer", "name", "flags", "params", "nodes", "index"}).Draw(t, "field") {
		case "ne":
			y.Ne[dim] = n
		case "nb":
			y.Nb[dim] = uint64(n)
		case "type":
			y.Type = int32(n)
		case "op":
			y.Op = rapid.Int32Range(0, 110).Draw(t, "op")
		case "source":
			y.Src[rapid.IntRange(0, ggml.MaxSrc-1).Draw(t, "which")] = rapid.Int32Range(-1, int32(len(x.Tensors))-1).Draw(t, "source")
		case "view":
			y.ViewSrc = rapid.Int32Range(-1, int32(len(x.Tensors))-1).Draw(t, "view")
		case "offset":
			y.ViewOffs = uint64(n)
		case "data":
			y.Data = uint64(n)
		case "buffer":
			y.Buffer = int32(n)
		case "name":
			y.Name = rapid.SampledFrom([]string{"", "cache_", "cache_k_l0", "cache_v_l70000", "blk.", "blk.9.x.weight", "-", "x-99999999999"}).Draw(t, "name")
		case "flags":
			y.Flags = int32(n)
		case "params":
			y.Params[dim] = int32(n)
		case "nodes":
			x.Nodes = x.Nodes[:len(x.Nodes)/2]
		case "index":
			x.Index, x.Chosen = x.Chosen, x.Index
		}
		return x.Append(nil)
	case trace.KindEval:
		e, err := ggml.DecodeEval(r.payload)
		if err != nil {
			return r.payload
		}
		lists := e.Index
		if rapid.Bool().Draw(t, "chosen") && len(e.Chosen) > 0 {
			lists = e.Chosen
		}
		i := rapid.IntRange(0, len(lists)-1).Draw(t, "list")
		switch rapid.SampledFrom([]string{"value", "value", "more", "none", "template", "time", "node"}).Draw(t, "field") {
		case "value":
			if len(lists[i]) > 0 {
				lists[i][rapid.IntRange(0, len(lists[i])-1).Draw(t, "value")] = n
			}
		case "more":
			lists[i] = append(lists[i], n)
		case "none":
			lists[i] = nil
		case "template":
			e.Template = uint32(n)
		case "time":
			e.End = uint64(n)
		case "node":
			if len(e.Times) > 0 {
				e.Times[len(e.Times)-1].Node = uint32(n)
			}
		}
		return e.Append(nil)
	case trace.KindStep:
		s, err := trace.DecodeStep(r.payload)
		if err != nil {
			return r.payload
		}
		switch rapid.IntRange(0, 3).Draw(t, "field") {
		case 0:
			s.Seq = uint32(n)
		case 1:
			s.Context = uint32(n)
		case 2:
			s.Tokens = uint32(n)
		case 3:
			s.Start = uint64(n)
		}
		return s.Append(nil)
	case trace.KindTables:
		var x ggml.Tables
		if json.Unmarshal(r.payload, &x) != nil || len(x.Types) == 0 {
			return r.payload
		}
		y := &x.Types[rapid.IntRange(0, len(x.Types)-1).Draw(t, "type")]
		if rapid.Bool().Draw(t, "block") {
			y.Block = n
		} else {
			y.Size = uint64(n)
		}
		b, _ := json.Marshal(x)
		return b
	case trace.KindKV:
		b, _ := json.Marshal(trace.KVOp{Op: rapid.SampledFrom([]string{trace.KVClear, trace.KVRemove, trace.KVShift, "other"}).Draw(t, "op"),
			Seq: int32(n), P0: rapid.Int32().Draw(t, "p0"), P1: rapid.Int32().Draw(t, "p1"), Delta: rapid.Int32().Draw(t, "delta")})
		return b
	}
	p := slices.Clone(r.payload)
	if len(p) > 0 {
		p[rapid.IntRange(0, len(p)-1).Draw(t, "byte")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
	}
	return p
}

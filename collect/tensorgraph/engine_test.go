package tensorgraph_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierscope/tierscope/collect/tensorgraph"
	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/region"
	"github.com/tierscope/tierscope/trace"
)

// The engine runs in a child: this binary, started again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == llamacpp.ChildCommand {
		os.Exit(llamacpp.Child(os.Stdin))
	}
	os.Exit(m.Run())
}

// row is one access, as the sink saw it.
type row struct {
	object         uint32
	gen            uint32
	name           string
	class          string
	op             string
	phase          string
	request        string
	store          bool
	layer          int32
	step           uint32
	token, context uint32
	seq            int32 // -1: null
	block          int64 // -1: null
	addr, off      uint64
	size           uint64
	count          uint32
	stride         uint64
	time           uint64
}

// end is the offset behind the last byte touched.
func (r *row) end() uint64 { return r.off + uint64(r.count-1)*r.stride + r.size/uint64(r.count) }

// flow is what one evaluation did to one object.
type flow struct{ load, store, padding uint64 }

// step is one graph evaluation.
type step struct {
	prefill        bool
	token, context uint32
	objects        map[string]*flow // by name
}

// class sums the flows of the objects of a class.
func (s *step) class(v *view, class string) (f flow) {
	for name, o := range s.objects {
		if v.classes[name] == class {
			f.load += o.load
			f.store += o.store
			f.padding += o.padding
		}
	}
	return f
}

// view is a sink that keeps count.
type view struct {
	objects []observe.Object // by id - 1
	classes map[string]string
	marks   []observe.Mark
	rows    []row // all but those of the load of the weights, if kept
	load    []row
	steps   []*step // by number - 1
	res     *tensorgraph.Result
	maps    *region.Maps
	log     string
	keep    bool
	evals   []*ggml.Eval
}

func (v *view) Object(o observe.Object) error {
	if int(o.ID) == len(v.objects)+1 {
		v.objects = append(v.objects, o)
		v.classes[o.Name] = o.Class
	}
	v.objects[o.ID-1] = o
	return nil
}

func (v *view) Mark(m observe.Mark) error {
	v.marks = append(v.marks, m)
	return nil
}

func (v *view) Accesses(b *observe.Batch) error {
	for i := range b.Len {
		r := row{
			object: b.Object.At(i), gen: b.Generation.At(i), class: b.RegionType.Text(i), op: b.Op.Text(i), phase: b.Phase.Text(i),
			request: b.RequestID.Text(i), store: b.OpType.Text(i) == observe.Store, layer: b.Layer.At(i), step: b.Step.At(i),
			token: b.TokenIndex.At(i), context: b.ContextTokens.At(i), seq: b.SeqID.At(i), block: int64(b.KVBlock.At(i)),
			addr: b.Address.At(i), off: b.Offset.At(i), size: b.Size.At(i), count: b.Count.At(i), stride: b.Stride.At(i), time: b.Time.At(i),
		}
		r.name = v.objects[r.object-1].Name
		if b.SeqID.Null(i) {
			r.seq = -1
		}
		if b.KVBlock.Null(i) {
			r.block = -1
		}
		if b.Layer.Null(i) {
			r.layer = observe.NoLayer
		}
		if r.step == 0 {
			v.load = append(v.load, r)
			continue
		}
		for len(v.steps) < int(r.step) {
			v.steps = append(v.steps, &step{objects: map[string]*flow{}})
		}
		s := v.steps[r.step-1]
		s.prefill, s.token, s.context = r.phase == observe.PhasePrefill, r.token, r.context
		f := s.objects[r.name]
		if f == nil {
			f = &flow{}
			s.objects[r.name] = f
		}
		switch {
		case r.store:
			f.store += r.size
		case r.class == observe.ClassKVCache && r.seq < 0:
			f.padding += r.size
		default:
			f.load += r.size
		}
		if v.keep {
			v.rows = append(v.rows, r)
		}
	}
	return nil
}

// decodes are the evaluations that generated a token.
func (v *view) decodes() (d []*step) {
	for _, s := range v.steps {
		if !s.prefill {
			d = append(d, s)
		}
	}
	return d
}

func libs(t *testing.T) string {
	t.Helper()
	dir, err := fetch.Libs(t.Context(), nil)
	if err != nil {
		t.Fatalf("llama.cpp libraries: %v", err)
	}
	return dir
}

func smollm2(t *testing.T) *gguf.File {
	t.Helper()
	path, err := fetch.Model(t.Context(), nil)
	if err != nil {
		t.Fatalf("model: %v", err)
	}
	return open(t, path)
}

func open(t *testing.T, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// small is the shape that synthetic models of these tests start from.
var small = gguf.Spec{Layers: 3, Heads: 4, KVHeads: 2, Width: 128, HeadDim: 32, FFN: 160, Vocab: 300, Context: 2048, Seed: 5}

func synth(t *testing.T, with func(*gguf.Spec)) *gguf.File {
	t.Helper()
	s := small
	if with != nil {
		with(&s)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := gguf.Synth(path, s); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// record runs a job and leaves its graph log.
func record(t *testing.T, job llamacpp.Job) (log string, end trace.End) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "graph.log")
	w, err := trace.CreateGraphLog(log)
	if err != nil {
		t.Fatal(err)
	}
	words, err := os.Create(filepath.Join(dir, "engine.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer words.Close()
	if job.LibDir == "" {
		job.LibDir = libs(t)
	}
	job.Threads, job.IgnoreEnd = 1, true
	if job.Seed == 0 {
		job.Seed = 11
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	end, err = llamacpp.Run(ctx, &job, w, words)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, llamacpp.LastWords(words.Name(), 20))
	}
	if end.Lost != 0 {
		t.Errorf("%d records found no room", end.Lost)
	}
	return log, end
}

// replay expands a graph log of a model.
func replay(t *testing.T, log string, f *gguf.File, keep bool) *view {
	t.Helper()
	v := &view{classes: map[string]string{}, keep: keep, log: log}
	opt := tensorgraph.Options{RunID: "test"}
	var err error
	if v.res, err = tensorgraph.Replay(log, opt, v); err != nil {
		t.Fatal(err)
	}
	if v.res.Torn != nil || v.res.End == nil || v.res.OutOfOrder != 0 {
		t.Errorf("torn %v, end %v, %d evaluations outside of steps", v.res.Torn, v.res.End, v.res.OutOfOrder)
	}
	v.maps = mapsOf(t, log)
	return v
}

// mapsOf reads the engine's mappings out of a log.
func mapsOf(t *testing.T, log string) *region.Maps {
	t.Helper()
	var m *region.Maps
	records(t, log, func(kind uint8, p []byte) {
		if kind == trace.KindMaps {
			var err error
			if m, err = region.ReadMaps(strings.NewReader(string(p))); err != nil {
				t.Fatal(err)
			}
		}
	})
	if m == nil {
		t.Fatal("the log has no mappings")
	}
	return m
}

// records calls f for every record of a log.
func records(t *testing.T, log string, f func(kind uint8, p []byte)) {
	t.Helper()
	r, err := trace.OpenGraphLog(log)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		kind, p, err := r.Next()
		if err != nil {
			break
		}
		f(kind, p)
	}
	if r.Torn() != nil {
		t.Fatal(r.Torn())
	}
}

// watch runs an observed job on a model and expands what it did.
func watch(t *testing.T, f *gguf.File, job llamacpp.Job) *view {
	t.Helper()
	job.Model, job.Observe = f.Path, true
	log, _ := record(t, job)
	return replay(t, log, f, true)
}

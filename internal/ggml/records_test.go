package ggml

import (
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawTemplate makes templates that a live graph may have.
func drawTemplate(t *rapid.T) *Template {
	n := rapid.IntRange(0, 12).Draw(t, "tensors")
	x := &Template{ID: rapid.Uint32().Draw(t, "id"), Tensors: make([]Tensor, n)}
	ref := rapid.Int32Range(-1, int32(n)-1)
	for i := range x.Tensors {
		y := &x.Tensors[i]
		y.Name = rapid.String().Draw(t, "name")
		y.Type, y.Op, y.Flags, y.Buffer = rapid.Int32().Draw(t, "type"), rapid.Int32().Draw(t, "op"), rapid.Int32().Draw(t, "flags"), rapid.Int32().Draw(t, "buffer")
		y.Data, y.ViewOffs = rapid.Uint64Range(0, 1<<48).Draw(t, "data"), rapid.Uint64Range(0, 1<<40).Draw(t, "offset")
		y.ViewSrc = -1
		if i > 0 && i <= maxViews && rapid.Bool().Draw(t, "view") {
			y.ViewSrc = int32(i - 1)
		}
		for j := range 4 {
			y.Params[j] = rapid.Int32().Draw(t, "parameter")
			y.Ne[j] = rapid.Int64Range(0, 1<<12).Draw(t, "ne")
			y.Nb[j] = rapid.Uint64Range(0, 1<<40).Draw(t, "nb")
		}
		for j := range y.Src {
			y.Src[j] = ref.Draw(t, "source")
		}
	}
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	for _, list := range []*[]int32{&x.Nodes, &x.Index, &x.Chosen} {
		*list = append([]int32{}, rapid.Permutation(all).Draw(t, "list")[:rapid.IntRange(0, n).Draw(t, "length")]...)
	}
	return x
}

func TestTemplateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawTemplate(t)
		b := x.Append([]byte("before"))
		got, err := DecodeTemplate(b[len("before"):])
		if err != nil || !reflect.DeepEqual(got, x) {
			t.Fatalf("%v\n%+v\nbecame\n%+v", err, x, got)
		}
		cut := rapid.IntRange(0, len(b)-len("before")-1).Draw(t, "cut")
		if got, err := DecodeTemplate(b[len("before"):][:cut]); err == nil {
			t.Fatalf("cut to %d bytes it is %+v", cut, got)
		}
		if _, err := DecodeTemplate(append(b, 0)[len("before"):]); err == nil {
			t.Fatal("a byte too many is no error")
		}
	})
}

func drawEval(t *rapid.T) *Eval {
	e := &Eval{Template: rapid.Uint32().Draw(t, "template"), Start: rapid.Uint64Range(0, 1<<62).Draw(t, "start"), Thread: rapid.Uint32().Draw(t, "thread")}
	e.End = e.Start + rapid.Uint64Range(0, 1<<40).Draw(t, "duration")
	for _, lists := range []*[][]int64{&e.Index, &e.Chosen} {
		*lists = make([][]int64, rapid.IntRange(0, 4).Draw(t, "lists"))
		for i := range *lists {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0: // not read
			case 1:
				(*lists)[i] = append([]int64{}, rapid.SliceOf(rapid.Int64()).Draw(t, "values")...)
			default: // as cells and transposed cells are
				step, v := rapid.Int64Range(-3, 512).Draw(t, "step"), rapid.Int64Range(0, 1<<30).Draw(t, "first")
				(*lists)[i] = []int64{}
				for range rapid.IntRange(0, 100).Draw(t, "n") {
					(*lists)[i] = append((*lists)[i], v)
					v += step
				}
			}
		}
	}
	e.Times = []NodeTime{}
	node, at := uint32(0), e.Start
	for range rapid.IntRange(0, 5).Draw(t, "times") {
		node += rapid.Uint32Range(0, 1000).Draw(t, "node")
		at += rapid.Uint64Range(0, 1<<20).Draw(t, "took")
		e.Times = append(e.Times, NodeTime{node, at})
	}
	return e
}

func TestEvalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEval(t)
		b := e.Append(nil)
		got, err := DecodeEval(b)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%v\n%+v\nbecame\n%+v", err, e, got)
		}
		if EvalTemplate(b) != e.Template {
			t.Fatalf("template %d, want %d", EvalTemplate(b), e.Template)
		}
		values := 0
		for _, l := range slices.Concat(e.Index, e.Chosen) {
			values += len(l)
		}
		if _, err := DecodeEvalUpTo(b, values); err != nil {
			t.Fatalf("up to its own %d values: %v", values, err)
		}
		if _, err := DecodeEvalUpTo(b, values-1); err == nil && values > 0 {
			t.Fatalf("%d values pass where %d may", values, values-1)
		}
		if got, err := DecodeEval(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]); err == nil {
			t.Fatalf("cut off it is %+v", got)
		}
	})
}

// TestRunsAreSmall holds the sizes that the compact form is for.
func TestRunsAreSmall(t *testing.T) {
	tokens, transposed := make([]int64, 512), make([]int64, 1024)
	for i := range tokens {
		tokens[i] = int64(7000 + i)
	}
	for j := range transposed {
		transposed[j] = int64(j*131072 + 77)
	}
	for _, v := range [][]int64{tokens, transposed, {}, {1 << 40}} {
		if b := appendRuns(nil, v); len(b) > 12 {
			t.Errorf("%d values from %v on take %d bytes", len(v), v[:min(len(v), 2)], len(b))
		}
	}
}

func TestDamagedTemplates(t *testing.T) {
	good := func() *Template {
		x := &Template{Tensors: make([]Tensor, 2), Nodes: []int32{1}, Index: []int32{0}, Chosen: []int32{}}
		for i := range x.Tensors {
			x.Tensors[i] = Tensor{Name: "x", Ne: [4]int64{8, 2, 1, 1}, Nb: [4]uint64{4, 32, 64, 64}, Buffer: -1, ViewSrc: -1}
			for j := range x.Tensors[i].Src {
				x.Tensors[i].Src[j] = -1
			}
		}
		return x
	}
	if _, err := DecodeTemplate(good().Append(nil)); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(*Template){
		"source out of range":    func(x *Template) { x.Tensors[1].Src[3] = 2 },
		"source below none":      func(x *Template) { x.Tensors[1].Src[0], x.Tensors[1].Src[1] = -2, 0 },
		"node out of range":      func(x *Template) { x.Nodes[0] = 2 },
		"node twice":             func(x *Template) { x.Nodes = []int32{1, 1} },
		"index twice":            func(x *Template) { x.Index = []int32{0, 0} },
		"chosen out of range":    func(x *Template) { x.Chosen = []int32{9} },
		"view of itself":         func(x *Template) { x.Tensors[1].ViewSrc = 1 },
		"views in a circle":      func(x *Template) { x.Tensors[1].ViewSrc, x.Tensors[0].ViewSrc = 0, 1 },
		"view out of range":      func(x *Template) { x.Tensors[1].ViewSrc = 2 },
		"view beyond all":        func(x *Template) { x.Tensors[1].ViewOffs = 1 << 60 },
		"negative size":          func(x *Template) { x.Tensors[0].Ne[1] = -1 },
		"more than an address":   func(x *Template) { x.Tensors[0].Ne[2], x.Tensors[0].Nb[2] = 1<<40, 1<<40 },
		"size that overflows":    func(x *Template) { x.Tensors[0].Ne = [4]int64{1 << 32, 1 << 32, 1, 1} },
		"stride beyond all":      func(x *Template) { x.Tensors[0].Nb[3] = 1 << 60 },
		"elements behind a hole": func(x *Template) { x.Tensors[0].Ne = [4]int64{0, 1 << 62, 1 << 62, 1} },
	} {
		x := good()
		damage(x)
		if got, err := DecodeTemplate(x.Append(nil)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	long := good()
	for range maxViews + 1 {
		y := long.Tensors[1]
		y.ViewSrc = int32(len(long.Tensors) - 1)
		long.Tensors = append(long.Tensors, y)
	}
	if _, err := DecodeTemplate(long.Append(nil)); err == nil {
		t.Error("a view of a view of a view and so on passes")
	}
}

func TestTables(t *testing.T) {
	x := Tables{Ops: []string{"NONE", "ADD"}, Types: []Type{{"f32", 1, 4}}}
	for op, want := range map[int32]string{0: "NONE", 1: "ADD", 2: "op 2", -1: "op -1"} {
		if got := x.OpName(op); got != want {
			t.Errorf("operation %d is %q, want %q", op, got, want)
		}
	}
	if x.TypeOf(0).Name != "f32" || x.TypeOf(1) != (Type{}) || x.TypeOf(-1) != (Type{}) {
		t.Error("types out of range are not zero")
	}
}

// memory bounds what decoding n bytes may allocate.
func memory(t *testing.T, limit uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > limit {
		t.Fatalf("%d bytes allocated, at most %d expected", got, limit)
	}
}

func FuzzDecodeTemplate(f *testing.F) {
	for seed := range 8 {
		f.Add(rapid.Custom(drawTemplate).Example(seed).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var x *Template
		var err error
		memory(t, 1<<20+uint64(len(b))*64, func() { x, err = DecodeTemplate(b) })
		if err != nil {
			return
		}
		again, err := DecodeTemplate(x.Append(nil))
		if err != nil || !reflect.DeepEqual(again, x) {
			t.Fatalf("%v\n%+v\nbecame\n%+v", err, x, again)
		}
		for i := range x.Tensors {
			for hops := 0; x.Tensors[i].ViewSrc >= 0; i = int(x.Tensors[i].ViewSrc) {
				if hops++; hops > maxViews {
					t.Fatal("views have no end")
				}
			}
		}
	})
}

func FuzzDecodeEval(f *testing.F) {
	for seed := range 8 {
		f.Add(rapid.Custom(drawEval).Example(seed).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 12
		var e *Eval
		var err error
		memory(t, 1<<20+limit*64+uint64(len(b))*64, func() { e, err = DecodeEvalUpTo(b, limit) })
		if err != nil {
			return
		}
		again, err := DecodeEval(e.Append(nil))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%v\n%+v\nbecame\n%+v", err, e, again)
		}
	})
}

package analyze

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tierscope/tierscope/observe"
)

// Traffic counts operand bytes: what operations read and write, by evaluation, region
// class, layer and object. Operand bytes are not memory traffic, caches absorb some
// of them. A KV load without a sequence touches cells that hold nothing; it counts
// as padding and not as read.
type Traffic struct {
	steps   map[uint32]*stepBytes
	layers  map[layerKey]*flow
	objects map[uint32]*objectFlow
	first   uint64 // earliest time seen
	codes   codes
	tokens  map[uint32]uint64 // of the decode calls that told them
}

// Tokens tells how many tokens an evaluation worked on; 1 unless told.
func (t *Traffic) Tokens(step uint32, n uint64) { t.tokens[step] = n }

// flow is bytes by direction.
type flow struct{ read, written, padding uint64 }

func (f *flow) join(o *flow) {
	f.read += o.read
	f.written += o.written
	f.padding += o.padding
}

type stepBytes struct {
	phase string
	token uint32
	time  uint64
	class map[string]*flow
}

type layerKey struct {
	layer  int32
	class  string
	decode bool
}

type objectFlow struct {
	class string
	flow
	decode flow
}

// NewTraffic returns an empty count.
func NewTraffic() *Traffic {
	return &Traffic{steps: map[uint32]*stepBytes{}, layers: map[layerKey]*flow{}, objects: map[uint32]*objectFlow{}, first: ^uint64(0), tokens: map[uint32]uint64{}}
}

// codes remembers what a batch's dictionary codes mean, as long as the
// dictionaries stay the same.
type codes struct {
	ops, phases *observe.Dict
	op          []uint8
	phase       []uint8
}

const (
	codeOther = iota
	codeLoad
	codeStore
	codeDecode = 1
)

func (c *codes) learn(b *observe.Batch) {
	if c.ops != b.OpType.Dict {
		c.ops, c.op = b.OpType.Dict, nil
	}
	if c.phases != b.Phase.Dict {
		c.phases, c.phase = b.Phase.Dict, nil
	}
	for b.OpType.Dict != nil && len(c.op) < c.ops.Len() {
		k := uint8(codeOther)
		switch c.ops.String(uint32(len(c.op))) {
		case observe.Load:
			k = codeLoad
		case observe.Store:
			k = codeStore
		}
		c.op = append(c.op, k)
	}
	for b.Phase.Dict != nil && len(c.phase) < c.phases.Len() {
		k := uint8(codeOther)
		if c.phases.String(uint32(len(c.phase))) == observe.PhaseDecode {
			k = codeDecode
		}
		c.phase = append(c.phase, k)
	}
}

func (c *codes) opOf(b *observe.Batch, i int) uint8 {
	if b.OpType.Null(i) {
		return codeOther
	}
	return c.op[b.OpType.At(i)]
}

func (c *codes) decodes(b *observe.Batch, i int) bool {
	return !b.Phase.Null(i) && c.phase[b.Phase.At(i)] == codeDecode
}

// Columns implements [Analysis].
func (t *Traffic) Columns() observe.Cols {
	return observe.ColTime | observe.ColPhase | observe.ColOpType | observe.ColRegionType | observe.ColTokenIndex | observe.ColSize |
		observe.ColStep | observe.ColLayer | observe.ColSeqID | observe.ColObject
}

// Observe implements [Analysis]. Neighbouring rows mostly share step, layer and object, so
// what they go to is looked up only when one of these changes.
func (t *Traffic) Observe(b *observe.Batch) error {
	t.codes.learn(b)
	var sf, lf *flow
	var of *objectFlow
	lastStep, lastClass, lastLayer, lastObject := ^uint32(0), ^uint32(0), int32(-2), ^uint32(0)
	var decode bool
	for i := range b.Len {
		step, class, object := b.Step.At(i), b.RegionType.At(i), b.Object.At(i)
		layer := observe.NoLayer
		if !b.Layer.Null(i) {
			layer = b.Layer.At(i)
		}
		if step != lastStep || class != lastClass || sf == nil {
			name := b.RegionType.Text(i)
			decode = t.codes.decodes(b, i)
			sf = t.step(b, i, step, name)
			lastLayer = -2
		}
		if layer != lastLayer {
			k := layerKey{layer, b.RegionType.Text(i), decode}
			if lf = t.layers[k]; lf == nil {
				lf = &flow{}
				t.layers[k] = lf
			}
		}
		if object != lastObject || of == nil {
			if of = t.objects[object]; of == nil {
				of = &objectFlow{class: b.RegionType.Text(i)}
				t.objects[object] = of
			}
		}
		lastStep, lastClass, lastLayer, lastObject = step, class, layer, object
		n := b.Size.At(i)
		var d flow
		switch t.codes.opOf(b, i) {
		case codeLoad:
			if b.SeqID.Null(i) && of.class == observe.ClassKVCache {
				d.padding = n
			} else {
				d.read = n
			}
		case codeStore:
			d.written = n
		}
		sf.join(&d)
		lf.join(&d)
		of.join(&d)
		if decode {
			of.decode.join(&d)
		}
	}
	return nil
}

func (t *Traffic) step(b *observe.Batch, i int, step uint32, class string) *flow {
	s := t.steps[step]
	if s == nil {
		s = &stepBytes{phase: b.Phase.Text(i), token: b.TokenIndex.At(i), time: b.Time.At(i), class: map[string]*flow{}}
		t.steps[step] = s
		t.first = min(t.first, s.time)
	}
	f := s.class[class]
	if f == nil {
		f = &flow{}
		s.class[class] = f
	}
	return f
}

// Join implements [Commuting].
func (t *Traffic) Join(o *Traffic) error {
	for k, s := range o.steps {
		mine := t.steps[k]
		if mine == nil {
			t.steps[k] = s
			continue
		}
		mine.time = min(mine.time, s.time)
		for c, f := range s.class {
			if mine.class[c] == nil {
				mine.class[c] = &flow{}
			}
			mine.class[c].join(f)
		}
	}
	for k, f := range o.layers {
		if t.layers[k] == nil {
			t.layers[k] = &flow{}
		}
		t.layers[k].join(f)
	}
	for k, f := range o.objects {
		if t.objects[k] == nil {
			t.objects[k] = &objectFlow{class: f.class}
		}
		t.objects[k].join(&f.flow)
		t.objects[k].decode.join(&f.decode)
	}
	maps.Copy(t.tokens, o.tokens)
	t.first = min(t.first, o.first)
	return nil
}

// ObjectFlow returns the bytes that an object's accesses read and wrote, and what of
// the reads touched padding.
func (t *Traffic) ObjectFlow(id uint32) (read, written, padding uint64) {
	if f := t.objects[id]; f != nil {
		return f.read, f.written, f.padding
	}
	return 0, 0, 0
}

// Start is the time of the first evaluation seen, ns; 0 before any.
func (t *Traffic) Start() uint64 {
	if len(t.steps) == 0 {
		return 0
	}
	return t.first
}

// DecodeTokens is the number of tokens that decode evaluations worked on.
func (t *Traffic) DecodeTokens() int {
	n := uint64(0)
	for step, s := range t.steps {
		if s.phase != observe.PhaseDecode {
			continue
		}
		if told, ok := t.tokens[step]; ok {
			n += told
		} else {
			n++
		}
	}
	return int(n)
}

// Tables implements [Analysis]: traffic_by_token, traffic_by_layer,
// traffic_by_region and traffic_by_object.
func (t *Traffic) Tables() ([]Table, error) {
	return []Table{t.byToken(), t.byLayer(), t.byRegion(), t.byObject()}, nil
}

func (t *Traffic) byToken() Table {
	out := Table{Name: "traffic_by_token", Columns: columns("step", "", "token", "", "phase", "", "time_s", "s", "region_type", "", "bytes_read", "B", "bytes_written", "B", "padding_bytes_read", "B")}
	for _, k := range slices.Sorted(maps.Keys(t.steps)) {
		s := t.steps[k]
		for _, c := range slices.Sorted(maps.Keys(s.class)) {
			f := s.class[c]
			out.Rows = append(out.Rows, []any{uint64(k), uint64(s.token), s.phase, float64(s.time-t.first) / 1e9, c, f.read, f.written, f.padding})
		}
	}
	return out
}

func (t *Traffic) byLayer() Table {
	out := Table{Name: "traffic_by_layer", Columns: columns("layer", "", "region_type", "", "bytes_read", "B", "bytes_written", "B", "padding_bytes_read", "B", "decode_bytes_read_per_token", "B/token")}
	type key struct {
		layer int32
		class string
	}
	sum, dec := map[key]*flow{}, map[key]uint64{}
	for k, f := range t.layers {
		c := key{k.layer, k.class}
		if sum[c] == nil {
			sum[c] = &flow{}
		}
		sum[c].join(f)
		if k.decode {
			dec[c] += f.read
		}
	}
	keys := slices.SortedFunc(maps.Keys(sum), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.class, b.class))
	})
	n := t.DecodeTokens()
	for _, k := range keys {
		var layer any
		if k.layer != observe.NoLayer {
			layer = int64(k.layer)
		}
		f := sum[k]
		out.Rows = append(out.Rows, []any{layer, k.class, f.read, f.written, f.padding, per(dec[k], n)})
	}
	return out
}

// per is bytes a token, nil without tokens.
func per(bytes uint64, tokens int) any {
	if tokens == 0 {
		return nil
	}
	return float64(bytes) / float64(tokens)
}

func (t *Traffic) byRegion() Table {
	out := Table{Name: "traffic_by_region", Columns: columns("region_type", "", "bytes_read", "B", "bytes_written", "B", "padding_bytes_read", "B", "decode_bytes_read_per_token", "B/token", "decode_bytes_written_per_token", "B/token", "objects", "")}
	type sum struct {
		flow
		decode  flow
		objects uint64
	}
	all := map[string]*sum{}
	for _, o := range t.objects {
		s := all[o.class]
		if s == nil {
			s = &sum{}
			all[o.class] = s
		}
		s.join(&o.flow)
		s.decode.join(&o.decode)
		s.objects++
	}
	n := t.DecodeTokens()
	for _, c := range slices.Sorted(maps.Keys(all)) {
		s := all[c]
		out.Rows = append(out.Rows, []any{c, s.read, s.written, s.padding, per(s.decode.read, n), per(s.decode.written, n), s.objects})
	}
	return out
}

func (t *Traffic) byObject() Table {
	out := Table{Name: "traffic_by_object", Columns: columns("object", "", "region_type", "", "bytes_read", "B", "bytes_written", "B", "padding_bytes_read", "B")}
	for _, id := range slices.Sorted(maps.Keys(t.objects)) {
		o := t.objects[id]
		out.Rows = append(out.Rows, []any{uint64(id), o.class, o.read, o.written, o.padding})
	}
	return out
}

// columns makes exact columns of names and units in turn.
func columns(nameUnit ...string) []TableColumn {
	out := make([]TableColumn, 0, len(nameUnit)/2)
	for i := 0; i+1 < len(nameUnit); i += 2 {
		out = append(out, TableColumn{nameUnit[i], nameUnit[i+1], Exact})
	}
	return out
}

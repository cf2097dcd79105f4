package tensorgraph

import (
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/internal/ggml"
	"github.com/tierscope/tierscope/observe"
)

// placement is what makes two tensors of different templates the same object.
type placement struct {
	name       string
	buffer     int32
	base, size uint64
}

// anyBuffer stands for the buffer of a weight: its name and place are enough.
const anyBuffer = -2

// registry deals object ids.
type registry struct {
	sink    observe.Sink
	buffers map[int32]ggml.Buffer
	ids     map[placement]uint32
	lives   map[string]uint32 // placements by name so far
	all     []observe.Object  // by id - 1
	now     uint64            // when a tensor of a graph told now was born
	loaded  uint64            // when weights and caches were
}

func newRegistry(sink observe.Sink) *registry {
	return &registry{sink: sink, buffers: map[int32]ggml.Buffer{}, ids: map[placement]uint32{}, lives: map[string]uint32{}}
}

func (r *registry) add(o observe.Object) (uint32, error) {
	o.ID = uint32(len(r.all) + 1)
	o.Generation = r.lives[o.Name]
	r.lives[o.Name]++
	r.all = append(r.all, o)
	return o.ID, r.sink.Object(o)
}

// object returns the object of a tensor that holds memory itself.
func (r *registry) object(t *ggml.Tensor, types *ggml.Tables) (uint32, error) {
	unit, dims := dimsOf(t.Ne, t.Nb, types.TypeOf(t.Type))
	size := unit
	for _, d := range dims {
		size += (d.n - 1) * d.stride
	}
	name := t.Name
	if name == "" {
		name = "tensor at " + strconv.FormatUint(t.Data, 16)
	}
	buf, known := r.buffers[t.Buffer]
	class, kind, layer := classify(t, buf, known)
	p := placement{name, t.Buffer, t.Data, size}
	if class == observe.ClassWeight {
		p.buffer = anyBuffer
	}
	if id, ok := r.ids[p]; ok {
		if o := &r.all[id-1]; o.Kind == kindUnused {
			o.Kind, o.Buffer = kind, buf.Name
		}
		return id, nil
	}
	o := observe.Object{
		Name: name, Class: class, Kind: kind, Space: observe.SpaceHost, Base: t.Data, Size: size, Layer: layer,
		Born: r.now, DType: types.TypeOf(t.Type).Name, Buffer: buf.Name,
	}
	if class == observe.ClassWeight || class == observe.ClassKVCache {
		o.Born = r.loaded
	}
	if known && !buf.Host {
		o.Space = strings.ToLower(buf.Name)
	}
	id, err := r.add(o)
	r.ids[p] = id
	return id, err
}

// classify says what a tensor is, from the engine's own tables: the use of its
// buffer, its flags, and the names that llama.cpp gives to its caches.
func classify(t *ggml.Tensor, b ggml.Buffer, known bool) (class, kind string, layer int32) {
	switch {
	case !known:
		return observe.ClassUnknown, "", layerOf(t.Name)
	case b.Usage == ggml.UsageWeights:
		return observe.ClassWeight, "", layerOf(t.Name)
	case t.Op == 0 && strings.HasPrefix(t.Name, "cache_"): // not a copy of one, which is named after it
		kind, _, _ = strings.Cut(strings.TrimPrefix(t.Name, "cache_"), "_")
		return observe.ClassKVCache, kind, layerOf(t.Name)
	case t.Flags&ggml.FlagInput != 0:
		return observe.ClassActivation, "input", observe.NoLayer
	case t.Flags&ggml.FlagOutput != 0:
		return observe.ClassActivation, "output", layerOf(t.Name)
	}
	return observe.ClassActivation, "", layerOf(t.Name)
}

// layerOf reads the layer out of a tensor's name: blk.3.attn_k.weight,
// cache_k_l3, ffn_out-3, "Kcur-3 (view)".
func layerOf(name string) int32 {
	name, _, _ = strings.Cut(name, " ")
	var digits string
	switch {
	case strings.HasPrefix(name, "blk."):
		digits, _, _ = strings.Cut(name[4:], ".")
	case strings.HasPrefix(name, "cache_"):
		digits = name[strings.LastIndex(name, "_l")+2:]
	default:
		i := strings.LastIndexByte(name, '-')
		if i < 0 {
			return observe.NoLayer
		}
		digits = name[i+1:]
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return observe.NoLayer
	}
	return int32(n)
}

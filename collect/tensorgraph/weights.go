package tensorgraph

import (
	"strings"

	"github.com/tierscope/tierscope/observe"
	"github.com/tierscope/tierscope/trace"
)

// kindUnused is the kind of a weight that no graph named.
const kindUnused = "unused"

// loadWeights tells the load of the weights that have been told since the last
// call: each is stored once, where it lies, at the end of the load. A mapped
// file's pages come in when they are first read; the load is when their bytes
// began to exist for this process.
func (r *replayer) loadWeights() error {
	if !r.loaded {
		r.loaded = true
		if err := r.fileTensors(); err != nil {
			return err
		}
	}
	m := &moment{phase: r.rows.phases.Code(observe.PhaseWeightLoad), noRequest: true}
	r.rows.b.ThreadID, r.rows.b.PID = observe.ConstOf(r.res.Engine.Thread), observe.ConstOf(r.res.Engine.PID)
	for ; r.stored < len(r.objects.all); r.stored++ {
		o := &r.objects.all[r.stored]
		if o.Class != observe.ClassWeight || o.Base == 0 {
			continue
		}
		x := &row{
			object: o, class: r.rows.classes.Code(o.Class), space: r.rows.spaces.Code(o.Space), op: r.rows.names.Code("load"),
			layer: o.Layer, store: true, time: r.loadEnd, seq: -1, block: -1,
		}
		if err := r.rows.add(m, x, pieces{0, o.Size, 1, 0}); err != nil {
			return err
		}
	}
	return nil
}

// fileTensors tells the tensors of the model file that the first graph does not
// name, at the address where the file's mapping holds them. A later graph may
// name them there, and they are these objects then.
func (r *replayer) fileTensors() error {
	known := map[string]bool{}
	for i := range r.objects.all {
		known[r.objects.all[i].Name] = true
	}
	for _, t := range r.model.Tensors {
		base := r.mapped(&t)
		if known[t.Name] || base == 0 {
			continue
		}
		id, err := r.objects.add(observe.Object{
			Name: t.Name, Class: observe.ClassWeight, Kind: kindUnused, Space: observe.SpaceHost, Base: base, Size: t.Size, Layer: layerOf(t.Name),
			Born: r.loadEnd, DType: strings.ToLower(t.DType), Buffer: "file",
		})
		if err != nil {
			return err
		}
		r.objects.ids[placement{t.Name, anyBuffer, base, t.Size}] = id
	}
	return nil
}

// mapped is the address of a tensor in the mapping of the model file, 0 if it is
// not mapped.
func (r *replayer) mapped(t *trace.ModelTensor) uint64 {
	if r.maps == nil {
		return 0
	}
	for i := range r.maps.All {
		p := &r.maps.All[i]
		if p.Path == r.model.Path && t.Offset >= p.Offset && t.Size <= p.End-p.Start && t.Offset-p.Offset <= p.End-p.Start-t.Size {
			return p.Start + t.Offset - p.Offset
		}
	}
	return 0
}

package experiment

import (
	"fmt"

	"github.com/tierscope/tierscope/engine/gguf"
	"github.com/tierscope/tierscope/internal/units"
	"github.com/tierscope/tierscope/run"
)

// modelFacts is what the model file says, kept in the metadata so that a report
// can be drawn without the file.
type modelFacts struct {
	Name          string `json:"name"`
	Architecture  string `json:"architecture"`
	Layers        int    `json:"layers"`
	Width         int    `json:"width"`
	Vocab         int    `json:"vocabulary"`
	Experts       int    `json:"experts,omitempty"`
	ExpertsUsed   int    `json:"experts_used,omitempty"`
	SlidingWindow int    `json:"sliding_window,omitempty"`
	Parameters    int64  `json:"parameters"`
	WeightBytes   int64  `json:"weight_bytes"`
	DecodeBytes   int64  `json:"decode_weight_bytes"` // what a token must read by the tensor table
	Preset        string `json:"preset,omitempty"`
	FullLayers    int    `json:"full_layers,omitempty"`
	Synthetic     bool   `json:"synthetic,omitempty"`
	WholeDecode   int64  `json:"whole_decode_weight_bytes,omitempty"` // of the model that a slice is cut from
}

// readModel reads the facts from the model file.
func readModel(path string) (*modelFacts, *gguf.File, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	_, decode := f.DecodeBytes()
	s := &f.Shape
	m := &modelFacts{
		Name: s.Name, Architecture: s.Architecture, Layers: s.Layers, Width: s.Width, Vocab: s.Vocab, Experts: s.Experts, ExpertsUsed: s.ExpertsUsed,
		SlidingWindow: s.SlidingWindow, Parameters: f.Parameters(), WeightBytes: f.WeightBytes(), DecodeBytes: decode, Synthetic: f.Synthetic != nil,
	}
	if f.Synthetic != nil {
		m.Preset, m.FullLayers = f.Synthetic.Preset, f.Synthetic.FullLayers
		if w := f.Summary(gguf.F16).Whole; w != nil {
			m.WholeDecode = w.DecodeBytes
		}
	}
	return m, f, nil
}

// slice says that the model is some layers of a larger one; "" if it is whole.
func (m *modelFacts) slice() string {
	if m == nil || m.FullLayers <= m.Layers || m.Layers == 0 {
		return ""
	}
	return fmt.Sprintf("the model is a slice of %d of the %d layers of %s: figures are of the slice; what lies in layers scales by %.3g for the whole model, a token of which would read %s of weights",
		m.Layers, m.FullLayers, m.Preset, float64(m.FullLayers)/float64(m.Layers), units.Bytes(float64(m.WholeDecode)))
}

// memoryNote warns of a model that does not fit into memory.
func memoryNote(f *gguf.File, total uint64) (run.Note, bool) {
	if total == 0 || uint64(f.Size) < total {
		return run.Note{}, false
	}
	return run.Note{Code: "model_exceeds_memory", Severity: "warning", Figures: []string{"lifetime_by_region"},
		Text: fmt.Sprintf("the model has %s and the machine %s of memory: pages are read in again and again, and times show it", units.Bytes(float64(f.Size)), units.Bytes(float64(total)))}, true
}

package gguf

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// PresetRow is what `model presets` prints of a preset.
type PresetRow struct {
	Preset
	Parameters  int64 `json:"parameters"`
	WeightBytes int64 `json:"weight_bytes"`        // at the type chosen
	DecodeBytes int64 `json:"decode_weight_bytes"` // read by a decode token
	KVBytes     int64 `json:"decode_kv_bytes"`     // added to the cache by a token, f16
}

// PresetTable returns all presets with their sizes at one of Types; another
// type is run.Misuse.
func PresetTable(typ string) ([]PresetRow, error) {
	rows := make([]PresetRow, 0, len(Presets))
	for _, p := range Presets {
		p.Spec.Type = typ
		f, err := p.Spec.File()
		if err != nil {
			return nil, err
		}
		_, decode := f.DecodeBytes()
		rows = append(rows, PresetRow{p, f.Parameters(), f.WeightBytes(), decode, f.Shape.KVBytes(F16)})
	}
	return rows, nil
}

// WritePresets writes rows of PresetTable for a person.
func WritePresets(w io.Writer, rows []PresetRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "parameters\tweights\tread a token\tKV a token\tlayers\tcontext\t  preset\n")
	for _, r := range rows {
		fmt.Fprintf(t, "%.2f B\t%s\t%s\t%s\t%d\t%d\t  %s\n", float64(r.Parameters)/1e9, gib(r.WeightBytes), gib(r.DecodeBytes), gib(r.KVBytes),
			r.Spec.Layers, r.Spec.Context, r.Name)
	}
	return t.Flush()
}

// gib writes bytes for a column.
func gib(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

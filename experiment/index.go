package experiment

import (
	"encoding/json"

	"github.com/tierscope/tierscope/analyze"
	"github.com/tierscope/tierscope/run"
)

func unmarshalInto(b []byte, v any) error { return json.Unmarshal(b, v) }

// indexName is the table of all complete runs but warm-ups, in the results
// directory.
const indexName = "manifest.csv"

// index gives the run its row in the table at path.
func (f *finishing) index(path string) error {
	fig := run.IndexFigures{HasPromptOutputs: len(f.result.Outputs) > 0}
	for _, t := range f.compat.Tables() {
		switch t.Name {
		case "retention_summary":
			fig.RetentionP99 = mean(&t, "retention_p99_s")
		case "write_once":
			fig.WriteOnceMean = mean(&t, "write_once_ratio")
		case "working_set_summary":
			pages := int64(0)
			for _, r := range t.Rows {
				n, _ := number(r[t.Index("total_pages")])
				pages += int64(n)
			}
			fig.WorkingSetPages = &pages
		}
	}
	m := *f.meta
	m.RunID = f.id // which the directory knows, and puts into its own metadata
	return run.AppendIndex(path, run.IndexRow(&m, fig))
}

func mean(t *analyze.Table, column string) *float64 {
	c, sum := t.Index(column), 0.0
	if c < 0 || len(t.Rows) == 0 {
		return nil
	}
	for _, r := range t.Rows {
		v, _ := number(r[c])
		sum += v
	}
	return run.Known(sum / float64(len(t.Rows)))
}

package run

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierscope/tierscope/internal/vfs"
)

// IndexColumns are the columns of results/manifest.csv, mrm-trace's, in its
// order.
var IndexColumns = []string{
	"run_id", "machine_id", "model_id", "collector", "context_length", "batch_size", "max_tokens_per_prompt", "rep",
	"run_validity", "peak_temp_c", "throttle_events", "total_wall_s", "avg_tok_per_s", "total_output_tokens",
	"retention_p99_s", "write_once_ratio_mean", "working_set_pages_total", "cpu_model", "cpu_freq_scaling_max_mhz",
	"os", "kernel", "has_prompt_outputs", "recorded_at",
}

// IndexFigures are the figures of an index row that are not in the metadata; nil
// is an empty cell.
type IndexFigures struct {
	RetentionP99     *float64 // mean over region types of their p99, seconds
	WriteOnceMean    *float64 // mean over regions
	WorkingSetPages  *int64   // sum over region types
	HasPromptOutputs bool
	RecordedAt       time.Time // zero: now
}

// IndexRow returns the row of a run in the order of [IndexColumns].
func IndexRow(m *Metadata, f IndexFigures) []string {
	if f.RecordedAt.IsZero() {
		f.RecordedAt = time.Now()
	}
	model := m.Model.ID
	if model == "" {
		model = m.Model.HFRepo
	}
	outputs := "False"
	if f.HasPromptOutputs {
		outputs = "True"
	}
	g := m.Generation
	return []string{
		m.RunID, m.MachineID, model, m.Collector.Type, cell(g.ContextLength), cell(g.BatchSize), cell(g.OutputTokens), cell(g.Repetition),
		m.Thermal.RunValidity, rounded(m.Thermal.PeakTempC), cell(m.Thermal.Throttles), rounded(m.Timing.Total), rounded(g.TokensPerSecond), cell(g.TotalTokens),
		rounded(f.RetentionP99), rounded(f.WriteOnceMean), cell(f.WorkingSetPages), m.Hardware.CPUModel, rounded(m.Hardware.FreqMaxMHz),
		m.Software.OS, m.Software.Kernel, outputs, f.RecordedAt.UTC().Format("2006-01-02T15:04:05.000000-07:00"),
	}
}

func cell(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}

// rounded formats v to at most 4 decimals in Python's form.
func rounded(v *float64) string {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return ""
	}
	// Through the decimal text, as Python rounds: exact ties go to even.
	f, err := strconv.ParseFloat(strconv.FormatFloat(*v, 'f', 4, 64), 64)
	if err != nil {
		return ""
	}
	return pyFloat(f)
}

// AppendIndex puts the row of a run into the index path (results/manifest.csv),
// which is made if it is not there. A run id has one row: the row of a run that
// is recorded again takes the place of the old one. Processes that append at once
// wait for each other, and a reader always finds a whole file. An index with
// other columns is an error of class [Corrupt]; it is left as it is.
func AppendIndex(path string, row []string) error { return appendIndex(vfs.OS, path, row) }

func appendIndex(fsys vfs.FS, path string, row []string) error {
	if len(row) != len(IndexColumns) {
		return Errorf(Invalid, "index row has %d cells, want %d", len(row), len(IndexColumns))
	}
	unlock, err := waitLock(fsys, filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+lockName))
	if err != nil {
		return ioError(err)
	}
	defer unlock()
	rows, err := readIndex(path)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(rows, func(r []string) bool { return r[0] == row[0] })
	if at < 0 {
		rows = append(rows, row)
	} else {
		rows[at] = row
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write(IndexColumns)
	w.WriteAll(rows)
	if err := w.Error(); err != nil {
		return err
	}
	return writeFile(fsys, path, b.Bytes(), true)
}

// readIndex returns the rows of an index without its header; none if there is no
// file.
func readIndex(path string) ([][]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, ioError(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, Errorf(Corrupt, "index %s: %w", path, err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], IndexColumns) {
		return nil, Errorf(Corrupt, "index %s has other columns than this version writes (%s, ...): move it away", path,
			strings.Join(IndexColumns[:3], ", "))
	}
	return rows[1:], nil
}

// Package mrm reads run directories of mrm-trace, of all its versions, and
// imports them as runs of tierscope.
//
// What is read, by fixed names only; a name inside a file is never a path:
//
//	trace.parquet               needed; also by itself, labelled or not
//	region_map.parquet          absent if there were no regions
//	kv_block_lifecycle.parquet  absent if there were no blocks
//	metrics.csv                 copied
//	metadata.json               bare NaN and Infinity are null
//	prompt_outputs.json         copied
//	manifest.json               its sizes and checksums are checked; a file it does not list is stale and left out
//	retention_histogram.png, working_set.png, write_once.png   copied to figures/
//	raw/perf.data, raw/perf_script.txt, raw/memray.bin         copied; no checksum
package mrm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tierscope/tierscope/run"
)

// Names of mrm-trace's files.
const (
	TraceFile     = "trace.parquet"
	RegionFile    = "region_map.parquet"
	LifecycleFile = "kv_block_lifecycle.parquet"
	MetricsFile   = "metrics.csv"
	MetadataFile  = "metadata.json"
	PromptsFile   = "prompt_outputs.json"
)

// FigureFiles are mrm-trace's figures.
var FigureFiles = []string{"retention_histogram.png", "working_set.png", "write_once.png"}

var rawFiles = []string{"raw/memray.bin", "raw/perf.data", "raw/perf_script.txt"}

// maxText is the most that a JSON or CSV file may have.
const maxText = 256 << 20

// Source is a run directory, or a trace by itself, that is read. It may be one
// of mrm-trace's or one of ours, which have the same files.
type Source struct {
	Dir      string          // "" for a trace by itself
	Trace    string          // path of the trace
	Manifest *run.Manifest   // nil if there is none
	Metadata *run.Metadata   // empty if there is none
	Notes    run.Notes       // what weakens the source
	files    map[string]bool // names in use
}

// Open looks at a run directory or a trace file. With a manifest, every file it
// lists is checked; one that differs is an error of class [run.Corrupt].
func Open(path string) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, run.Errorf(run.Misuse, "input %w", err)
	}
	s := &Source{Metadata: &run.Metadata{}, files: map[string]bool{}}
	if !st.IsDir() {
		s.Trace = path
		return s, nil
	}
	s.Dir, s.Trace = path, filepath.Join(path, TraceFile)
	if err := s.openRun(); err != nil {
		return nil, err
	}
	s.find()
	if !s.files[TraceFile] {
		return nil, run.Errorf(run.Invalid, "%s has no %s: it is no run that can be read", path, TraceFile)
	}
	return s, nil
}

// openRun reads manifest and metadata and checks what they vouch for.
func (s *Source) openRun() error {
	r, err := run.Open(s.Dir)
	if err != nil {
		return err
	}
	switch r.State {
	case run.Live:
		return run.Errorf(run.Misuse, "run %s is still being written", s.Dir)
	case run.Finished:
		if err := run.Verify(s.Dir); err != nil {
			return err
		}
	default:
		s.Notes.Add(run.Note{Code: "no_manifest", Severity: run.Warning, Text: "the source has no manifest: it may be unfinished, and nothing vouches for its files"})
	}
	s.Manifest = r.Manifest
	if r.Metadata != nil {
		s.Metadata = r.Metadata
	}
	if s.Manifest != nil && s.Manifest.State == run.StatePartial {
		s.Notes.Add(run.Note{Code: "partial_source", Severity: run.Warning, Text: "the source run was cut off"})
	}
	return nil
}

// find lists the known files that are there, plain, and not stale.
func (s *Source) find() {
	names := append([]string{TraceFile, RegionFile, LifecycleFile, MetricsFile, MetadataFile, PromptsFile}, FigureFiles...)
	for _, f := range FigureFiles {
		names = append(names, "figures/"+f)
	}
	for _, name := range names {
		switch st, err := os.Lstat(s.Path(name)); {
		case err != nil:
		case !st.Mode().IsRegular():
			s.Notes.Add(run.Note{Code: "not_plain", Severity: run.Warning, Text: name + " of the source is not a plain file and was left out"})
		case s.Manifest != nil && !slices.ContainsFunc(s.Manifest.Files, func(e run.Entry) bool { return e.Path == name }):
			s.Notes.Add(run.Note{Code: "stale_file", Severity: run.Warning, Text: name + " of the source is not in its manifest, so it is left from another export and was left out"})
		default:
			s.files[name] = true
		}
	}
	for _, name := range rawFiles {
		if st, err := os.Lstat(s.Path(name)); err == nil && st.Mode().IsRegular() {
			s.files[name] = true
		}
	}
}

// Has reports whether the source has the file of that name.
func (s *Source) Has(name string) bool { return s.files[name] }

// Path returns the path of the file of that name.
func (s *Source) Path(name string) string { return filepath.Join(s.Dir, filepath.FromSlash(name)) }

// RunID returns the id that the source gives itself, "" if none. It is text, not
// yet a name.
func (s *Source) RunID() string {
	if s.Metadata.RunID != "" {
		return s.Metadata.RunID
	}
	if s.Manifest != nil && s.Manifest.RunID != "unknown" {
		return s.Manifest.RunID
	}
	return ""
}

// Text reads a JSON or CSV file of the source whole.
func (s *Source) Text(name string) ([]byte, error) {
	f, err := os.Open(s.Path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(data) > maxText {
		err = run.Errorf(run.Corrupt, "%s has more than %d MiB", f.Name(), maxText>>20)
	}
	return data, err
}

// Prompts returns prompt_outputs.json as it is, nil if the source has none.
// What is not JSON is an error of class [run.Corrupt].
func (s *Source) Prompts() ([]byte, error) {
	if !s.Has(PromptsFile) {
		return nil, nil
	}
	data, err := s.Text(PromptsFile)
	if err != nil {
		return nil, err
	}
	var v struct {
		Prompts []map[string]any `json:"prompts"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, run.Errorf(run.Corrupt, "%s: %w", s.Path(PromptsFile), err)
	}
	return data, nil
}

// copyTo copies a file of the source to w.
func (s *Source) copyTo(w io.Writer, name string) error {
	f, err := os.Open(s.Path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return err
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

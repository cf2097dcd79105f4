// Package llamacpp runs llama.cpp in a child process and lets it be observed.
//
// The parent starts its own program again as the child ([Child]), hands it a job as
// JSON on standard input and a ring (internal/ring) as file descriptor 3, and receives
// records of the graph log's kinds. The child loads the libraries without cgo, hooks the
// call that starts a graph, and runs the job. A crash there is an error here.
package llamacpp

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// Prompt is one request. Exactly one of Text and Tokens says what is asked.
type Prompt struct {
	Text     string `json:"text,omitempty"`
	Tokens   int    `json:"tokens,omitempty"` // that many random tokens, for models without a vocabulary
	Output   int    `json:"output"`           // tokens to generate at most
	Keep     bool   `json:"keep,omitempty"`   // go on with the conversation before
	Category string `json:"category,omitempty"`
}

// Job says what the child does.
type Job struct {
	Model       string   `json:"model"`
	LibDir      string   `json:"lib_dir"` // holds libllama.so, libggml.so, libggml-base.so
	Context     int      `json:"context"` // tokens a sequence
	Sequences   int      `json:"sequences"`
	MicroBatch  int      `json:"micro_batch"` // tokens a graph, 512 if 0
	Threads     int      `json:"threads"`     // 0 = cores - 1, at least 1
	FlashAttn   string   `json:"flash_attn"`  // auto, on, off
	TypeK       string   `json:"type_k"`
	TypeV       string   `json:"type_v"`
	Prompts     []Prompt `json:"prompts"`
	Seed        uint64   `json:"seed"`
	Temperature float64  `json:"temperature"` // 0 = always the likeliest token
	Chat        bool     `json:"chat"`        // wrap prompts in the model's chat template, if it has one
	IgnoreEnd   bool     `json:"ignore_end"`  // generate all tokens asked for
	NoRepack    bool     `json:"no_repack"`   // keep weights as they are in the file

	Observe   bool `json:"observe"`
	NodeTimes bool `json:"node_times"` // layer times through the evaluation callback
	Callback  bool `json:"callback"`   // the evaluation callback instead of the jump slot
	Experts   bool `json:"experts"`    // read the experts chosen
	Pairs     int  `json:"pairs"`      // calibration: pairs of blocks of 16 tokens, 0 = none

	// Kill, if not nil, ends the wait for a child that was asked to end in order: when it
	// is closed, the child is killed.
	Kill <-chan struct{} `json:"-"`
}

// Check returns nil if the job can be handed to a child, else an error of class
// [run.Misuse]. What only the model can tell is not checked.
func (j *Job) Check() error {
	c := *j
	c.Resolve()
	return c.validate()
}

// DefaultThreads is cores - 1, at least 1: the observer needs somewhere to run.
func DefaultThreads() int { return max(1, runtime.NumCPU()-1) }

// Resolve fills in what was left to defaults.
func (j *Job) Resolve() {
	if j.Threads <= 0 {
		j.Threads = DefaultThreads()
	}
	if j.MicroBatch <= 0 {
		j.MicroBatch = 512
	}
	if j.Sequences <= 0 {
		j.Sequences = 1
	}
	if j.FlashAttn == "" {
		j.FlashAttn = "auto"
	}
	if j.TypeK == "" {
		j.TypeK = "f16"
	}
	if j.TypeV == "" {
		j.TypeV = "f16"
	}
}

// Limits of llama.cpp: LLAMA_MAX_SEQ and GGML_MAX_N_THREADS.
const (
	maxSequences = 256
	maxThreads   = 512
)

// libNames are the plain names under which the libraries are loaded.
var libNames = []string{"libllama", "libggml", "libggml-base"}

// PrepareLib returns a directory in which the llama.cpp libraries of a user have the
// plain names under which they are loaded: the user's, or a new one of links below
// scratch. path is libllama.so itself (any version suffix) or its directory.
func PrepareLib(path, scratch string) (string, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", run.Errorf(run.Misuse, "library %s: no such file or directory; give libllama.so or its directory", path)
	}
	if err != nil {
		return "", run.Errorf(run.Misuse, "library: %w; give libllama.so or its directory", err)
	}
	dir := path
	if !st.IsDir() {
		dir = filepath.Dir(path)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", run.Errorf(run.Misuse, "library directory %s: %w", dir, err)
	}
	named := filepath.Base(path) // a library that was named is the one to load
	plain := map[string]bool{}
	for _, e := range entries {
		plain[e.Name()] = true
	}
	if (st.IsDir() || named == "libllama.so") && !slices.ContainsFunc(libNames, func(n string) bool { return !plain[n+".so"] }) {
		return dir, nil
	}
	out := filepath.Join(scratch, "lib")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	link := func(target, name string) error {
		err := os.Symlink(filepath.Join(dir, target), filepath.Join(out, name))
		if os.IsExist(err) {
			return nil
		}
		return err
	}
	have := map[string]bool{}
	if !st.IsDir() {
		have[libNames[0]] = true
		if err := link(named, libNames[0]+".so"); err != nil {
			return "", err
		}
	}
	for _, e := range entries {
		n := e.Name()
		if !strings.Contains(n, ".so") {
			continue
		}
		if err := link(n, n); err != nil {
			return "", err
		}
		base, _, _ := strings.Cut(n, ".")
		have[base] = true
		if err := link(n, base+".so"); err != nil {
			return "", err
		}
	}
	for _, n := range libNames {
		if !have[n] {
			return "", run.Errorf(run.Misuse, "%s holds no %s.so: give the directory with libllama, libggml and libggml-base", dir, n)
		}
	}
	return out, nil
}

func (j *Job) validate() error {
	switch {
	case j.Context < 1:
		return run.Errorf(run.Misuse, "context of %d tokens: give at least 1", j.Context)
	case uint64(j.Context)*uint64(j.Sequences) > math.MaxInt32:
		return run.Errorf(run.Misuse, "context of %d tokens for each of %d sequences: llama.cpp takes at most %d in all", j.Context, j.Sequences, math.MaxInt32)
	case j.Sequences > maxSequences:
		return run.Errorf(run.Misuse, "%d sequences decoded together: llama.cpp takes at most %d", j.Sequences, maxSequences)
	case j.Threads > maxThreads:
		return run.Errorf(run.Misuse, "%d engine threads: ggml takes at most %d", j.Threads, maxThreads)
	case len(j.Prompts) == 0:
		return run.Errorf(run.Misuse, "no prompts: give at least one")
	}
	for i, p := range j.Prompts {
		if strings.TrimSpace(p.Text) == "" && p.Tokens <= 0 {
			return run.Errorf(run.Misuse, "prompt %d is empty: remove it or give it text", i+1)
		}
		if p.Output < 1 {
			return run.Errorf(run.Misuse, "prompt %d asks for %d tokens: ask for at least 1", i+1, p.Output)
		}
	}
	return nil
}

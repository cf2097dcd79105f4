package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// Environment answers what the compatible check asks about the machine.
type Environment struct {
	Perf   func() bool // a program perf is on PATH
	Memray func() bool // Python can import memray
}

// Host is the environment of this machine. Asking Python takes at most 10 s.
func Host(ctx context.Context) Environment {
	return Environment{
		Perf: func() bool { _, err := exec.LookPath("perf"); return err == nil },
		Memray: func() bool {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "python3", "-c", "import memray")
			cmd.WaitDelay = time.Second
			return cmd.Run() == nil
		},
	}
}

// Findings is what checks of a config against this machine have found. It is
// valid if there are no errors.
type Findings struct {
	Errors, Warnings []Problem
}

func (f *Findings) fail(path, kind, format string, args ...any) {
	f.Errors = append(f.Errors, Problem{Path: path, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

func (f *Findings) warn(path, kind, format string, args ...any) {
	f.Warnings = append(f.Warnings, Problem{Path: path, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// Check looks at what the config names on this machine: the results directory,
// model files, the prompt file, a user's library. It changes nothing.
func (c *Config) Check() Findings {
	var f Findings
	c.checkSize(&f)
	if s, err := os.Stat(c.Output.BaseDir); err == nil && !s.IsDir() {
		f.fail("output.base_dir", "not_a_directory", "%s is no directory; name another", c.Output.BaseDir)
	}
	for i := range c.Models {
		if p := c.Models[i].Path; p != nil && *p != "" {
			c.checkFile(&f, "models."+strconv.Itoa(i)+".path", *p, c.Models[i].Engine == LlamaCPP)
		}
	}
	if c.Prompts != nil {
		if _, err := c.LoadPrompts(); err != nil {
			f.fail("prompts.source", "prompts", "%v", err)
		}
	}
	if lib := c.Settings().Lib; lib != "" {
		c.checkFile(&f, "tierscope.lib", lib, false)
	}
	return f
}

func (c *Config) checkFile(f *Findings, path, name string, plain bool) {
	s, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.fail(path, "no_file", "%s: no such file", name)
	case err != nil:
		f.fail(path, "unreadable", "%v", err)
	case plain && s.IsDir():
		f.fail(path, "not_a_file", "%s is a directory; name the file in it", name)
	}
}

func (c *Config) checkSize(f *Findings) {
	if n := c.totalRuns(c.Sweep.Repetitions, 0); n.IsInt64() && n.Int64() > 1000 {
		f.warn("sweep", "many_runs", "Sweep will produce %s actual runs — this may take a long time", n)
	}
}

// CheckCompat makes mrm-trace's three checks in its order and its words.
func (c *Config) CheckCompat(env Environment) Findings {
	var f Findings
	seen := map[string]bool{}
	for i := range c.Models {
		seen[c.Models[i].ID] = true
	}
	if len(seen) < len(c.Models) {
		f.fail("models", "repeated_value", "Model IDs must be unique")
	}
	base := cleanPath(c.Output.BaseDir)
	if s, err := os.Stat(base); err == nil && !s.IsDir() {
		f.fail("output.base_dir", "not_a_directory", "output.base_dir exists but is not a directory: %s", base)
	}
	c.checkSize(&f)
	for i := range c.Models {
		m := &c.Models[i]
		if m.Path == nil || *m.Path == "" {
			continue
		}
		if _, err := os.Stat(*m.Path); err != nil {
			f.fail("models."+strconv.Itoa(i)+".path", "no_file", "Model '%s' path not found: %s", m.ID, *m.Path)
		}
	}
	primary, fallback := c.Collector.Primary, c.Collector.Fallback
	if primary == PerfMemCollector && !env.Perf() {
		f.warn("collector.primary", "no_perf", "'perf' not found in PATH; primary collector unavailable — will fall back to next available collector")
	}
	if (primary == MemrayCollector || fallback != nil && *fallback == MemrayCollector) && !env.Memray() {
		f.warn("collector", "no_memray", "memray not installed; memray collector unavailable (install with: pip install memray)")
	}
	return f
}

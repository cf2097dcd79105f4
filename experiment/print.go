package experiment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Print writes the plan as a table: mrm-trace's, and in [Strict] a line with
// the hash behind it.
func (p *Plan) Print(w io.Writer) error {
	b := bufio.NewWriter(w)
	warmups := p.Warmups()
	fmt.Fprintf(b, "\nExperiment : %s\n", p.Config.Experiment.Name)
	fmt.Fprintf(b, "Total runs : %d  (%d warmup, %d actual)\n\n", len(p.Runs), warmups, len(p.Runs)-warmups)
	header := fmt.Sprintf("%-5s %-24s %-10s %7s %5s %5s %4s  %-8s", "#", "Model", "Engine", "Ctx", "Batch", "Out", "Rep", "Type")
	fmt.Fprintf(b, "%s\n%s\n", header, strings.Repeat("-", len(header)))
	for i := range p.Runs {
		r := &p.Runs[i]
		kind := "warmup"
		if !r.Warmup {
			kind = fmt.Sprintf("rep%d", r.RepIndex)
		}
		fmt.Fprintf(b, "%-5d %-24s %-10s %7d %5d %5d %4d  %-8s\n",
			i+1, r.Model, r.Spec.Engine, r.ContextLength, r.BatchSize, r.OutputTokens, r.RepIndex, kind)
	}
	if p.Mode == Strict {
		h, err := p.Hash()
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\nPlan hash  : sha256:%s\n", h)
	}
	return b.Flush()
}

// PlanDocument is the JSON form of a plan under a time stamp.
type PlanDocument struct {
	Experiment string `json:"experiment"`
	Hash       string `json:"hash"` // SHA-256 of the canonical JSON of Plan
	Stamp      string `json:"stamp"`
	Total      int    `json:"total"`
	Warmups    int    `json:"warmup"`
	Actual     int    `json:"actual"`
	// Plan is the part that is hashed.
	Plan     json.RawMessage `json:"plan"`
	Runs     []RunDocument   `json:"runs"`
	Warnings []Problem       `json:"warnings"`
}

// RunDocument is a run with the time stamp applied.
type RunDocument struct {
	RunID     string `json:"run_id"`
	OutputDir string `json:"output_dir"`
	PlannedRun
}

// Document returns the JSON form of the plan under stamp.
func (p *Plan) Document(stamp string, warnings []Problem) (*PlanDocument, error) {
	c, err := p.Canonical()
	if err != nil {
		return nil, err
	}
	h, err := p.Hash()
	if err != nil {
		return nil, err
	}
	d := &PlanDocument{Experiment: p.Config.Experiment.Name, Hash: h, Stamp: stamp, Total: len(p.Runs), Warmups: p.Warmups(),
		Plan: c, Runs: make([]RunDocument, len(p.Runs)), Warnings: append([]Problem{}, warnings...)}
	d.Actual = d.Total - d.Warmups
	for i := range p.Runs {
		r := p.Runs[i]
		d.Runs[i] = RunDocument{r.RunID(stamp), r.OutputDir(stamp), r}
	}
	return d, nil
}

// PrintErrors writes the lines that mrm-trace writes for a config that cannot
// be loaded, in its words if m is [Compat].
func PrintErrors(w io.Writer, err error, m Mode) error {
	var e *Error
	if !errors.As(err, &e) {
		_, err := fmt.Fprintf(w, "  [ERROR] %v\n", err)
		return err
	}
	if m == Compat {
		_, err := fmt.Fprintf(w, "  [ERROR] %s\n", e.compatText())
		return err
	}
	return printProblems(w, "ERROR", e.File, e.Problems, m)
}

// PrintFindings writes errors to stderr and warnings to stdout, each in a line
// as mrm-trace does; in [Strict] with their place in file.
func PrintFindings(stdout, stderr io.Writer, file string, f Findings, m Mode) error {
	return errors.Join(printProblems(stderr, "ERROR", file, f.Errors, m), PrintWarnings(stdout, file, f.Warnings, m))
}

// PrintWarnings writes a line for each warning.
func PrintWarnings(w io.Writer, file string, ps []Problem, m Mode) error {
	return printProblems(w, "WARN", file, ps, m)
}

func printProblems(w io.Writer, level, file string, ps []Problem, m Mode) error {
	for _, p := range ps {
		text := p.In(file)
		if m == Compat {
			text = p.Message
		}
		if _, err := fmt.Fprintf(w, "  %-7s %s\n", "["+level+"]", text); err != nil {
			return err
		}
	}
	return nil
}

package experiment

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/tierscope/tierscope/run"
)

// Validation is what is wrong with an experiment file and what it names. Its
// JSON form is what the command validate prints.
type Validation struct {
	Config   string    `json:"config"`
	Valid    bool      `json:"valid"`
	Errors   []Problem `json:"errors"`
	Warnings []Problem `json:"warnings"`

	mode Mode
	load error // why the file could not be loaded
}

// Validate loads the file and checks what it names on this machine, in
// [Compat] as mrm-trace does. Every step is logged at debug level.
func Validate(file string, m Mode, env Environment, log *slog.Logger) *Validation {
	v := &Validation{Config: file, Errors: []Problem{}, Warnings: []Problem{}, mode: m}
	c, warnings, err := Load(file, m)
	v.Warnings = append(v.Warnings, warnings...)
	if err != nil {
		v.load = err
		if e := new(Error); errors.As(err, &e) {
			v.Errors = e.Problems
		} else {
			v.Errors = append(v.Errors, Problem{Kind: "unreadable", Message: err.Error()})
		}
		return v
	}
	log.Debug("config read", "file", file, "models", len(c.Models), "warnings", len(warnings))
	var f Findings
	if m == Compat {
		f = c.CheckCompat(env)
	} else {
		f = c.Check()
	}
	log.Debug("machine looked at", "errors", len(f.Errors), "warnings", len(f.Warnings), "base_dir", c.Output.BaseDir)
	v.Errors = append(v.Errors, f.Errors...)
	v.Warnings = append(v.Warnings, f.Warnings...)
	v.Valid = len(v.Errors) == 0
	return v
}

// Err returns nil for a valid config, else an error whose class is that of the
// load error, or [run.Invalid] if the file is right and what it names is not.
func (v *Validation) Err() error {
	if v.Valid {
		return nil
	}
	if v.load != nil {
		return v.load
	}
	return run.Errorf(run.Invalid, "%s: %s", v.Config, count(len(v.Errors), "error"))
}

// Print writes the result as text: errors to stderr, the rest to stdout.
func (v *Validation) Print(stdout, stderr io.Writer) error {
	if _, err := fmt.Fprintf(stdout, "Validating: %s\n", v.Config); err != nil {
		return err
	}
	if v.load != nil {
		return errors.Join(PrintErrors(stderr, v.load, v.mode), PrintWarnings(stdout, v.Config, v.Warnings, v.mode))
	}
	err := PrintFindings(stdout, stderr, v.Config, Findings{v.Errors, v.Warnings}, v.mode)
	if err == nil && v.Valid {
		_, err = fmt.Fprintln(stdout, "Config is valid.")
	}
	return err
}

// Command tierscope shows where an LLM's bytes live, how long each one matters
// and what it costs to keep and move it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tierscope/tierscope/run"
)

// app is what commands share: where they print and whether as JSON.
type app struct {
	stdout, stderr io.Writer
	json           bool
	hurry          <-chan struct{} // closed at the second request to stop
}

// printJSON writes v as the one document on stdout.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// commands are the constructors of all commands, in the order of the help.
var commands = []func(*app) *cobra.Command{
	newDemoCommand,
	newValidateCommand,
	newPlanCommand,
	newRunCommand,
	newReportCommand,
	newRecoverCommand,
	newSchemaCommand,
	newVersionCommand,
	newLabelCommand,
	newAnalyzeCommand,
	newImportCommand,
	newExportCommand,
	newModelCommand,
	newDoctorCommand,
	newDocsCommand,
	newTouchMemoryCommand,
	newEngineChildCommand,
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "tierscope",
		Short:         "Where an LLM's bytes live, how long each one matters, what it costs to keep them",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON document on stdout and nothing else there")
	for _, c := range commands {
		root.AddCommand(c(a))
	}
	return root
}

// exit prints err on one line and returns the exit code that it stands for.
func (a *app) exit(err error) int {
	if err == nil {
		return 0
	}
	var silent silentError
	if !errors.As(err, &silent) {
		fmt.Fprintln(a.stderr, "tierscope:", err)
	}
	return run.ExitCode(err)
}

// silentError carries an exit code of a command that has already said why.
type silentError struct{ error }

func (e silentError) Unwrap() error { return e.error }

func realMain() int {
	ctx, hurry, stop := signals()
	defer stop()
	a := &app{stdout: os.Stdout, stderr: os.Stderr, hurry: hurry}
	root := newRoot(a)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return run.Errorf(run.Misuse, "%w; see '%s --help'", err, c.CommandPath())
	})
	if err := known(root, os.Args[1:]); err != nil {
		return a.exit(err)
	}
	return a.exit(root.ExecuteContext(ctx))
}

func main() { os.Exit(realMain()) }

package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptCommands are what scripts can say beside testscript's own words.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits,
}

// exits runs a command that must end with the given exit code:
//
//	exits 2 tierscope label
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// scriptSetup gives scripts $MRM, a data set that mrm-trace wrote.
func scriptSetup(e *testscript.Env) error {
	data, err := filepath.Abs("../../report/compat/testdata")
	e.Setenv("MRM", data)
	return err
}

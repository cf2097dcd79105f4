package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tierscope/tierscope/engine/fetch"
)

// Each file in testdata/script is the behaviour of a command: what it prints,
// its exit code, its error text. The command runs in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tierscope": func() { os.Exit(realMain()) }})
}

func TestScripts(t *testing.T) {
	if _, err := fetch.Libs(t.Context(), func(line string) { t.Log(line) }); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, Cmds: scriptCommands, Setup: scriptSetup})
}

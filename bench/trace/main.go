// Command trace is scratch.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/tierscope/tierscope/engine/fetch"
	"github.com/tierscope/tierscope/engine/llamacpp"
	"github.com/tierscope/tierscope/trace"
)

type rec struct{}

func (rec) Append(k uint8, p []byte) error {
	if k == trace.KindEngine {
		fmt.Fprintln(os.Stderr, string(p))
	}
	if k == trace.KindTrial {
		var t trace.Trial
		json.Unmarshal(p, &t)
		on := 0
		if t.On {
			on = 1
		}
		fmt.Println(t.Pair, on, t.NS, t.Evals, t.Hook)
	}
	return nil
}
func (rec) Flush() error { return nil }

func main() {
	if len(os.Args) > 1 && os.Args[1] == llamacpp.ChildCommand {
		os.Exit(llamacpp.Child(os.Stdin))
	}
	m, _ := fetch.CachedModel()
	l, _ := fetch.CachedLibs()
	th, _ := strconv.Atoi(os.Args[1])
	pairs, _ := strconv.Atoi(os.Args[2])
	j := &llamacpp.Job{Model: m, LibDir: l, Context: 256, Threads: th, Pairs: pairs, Observe: true, Prompts: []llamacpp.Prompt{{Tokens: 8, Output: 2}}}
	switch os.Args[3] {
	case "times":
		j.NodeTimes = true
	case "callback":
		j.Callback = true
	}
	log, _ := os.Create("/tmp/spd/log")
	_, err := llamacpp.Run(context.Background(), j, rec{}, log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

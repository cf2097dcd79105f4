// Package probe finds out what this machine allows, by trying it: a capability
// counts as there only when the thing itself was done, in small, and gave the
// right answer. That a program or a file exists is not enough.
//
// [Capabilities] are what tierscope's own parts need. [Machine] is the seventeen
// checks of mrm-trace's validate --machine, under its names.
package probe

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Capability is a thing that tierscope can or cannot do here.
type Capability struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"` // what was seen, or what stands in the way
	Fix  string `json:"fix"` // what would help; "" if it is ok, or if nothing would
	Use  string `json:"use"` // what it is for
	Demo bool   `json:"demo"`
	// Package is the Debian package that brings what is missing, or "".
	Package string `json:"package,omitempty"`
}

// Options say what a machine is judged for.
type Options struct {
	Dir     string // where results go; its free space is checked
	Fetched bool   // model and engine libraries are there: the demo needs no package client
}

// verdict is what a probe found: why holds in both cases, fix only without ok.
type verdict struct {
	ok       bool
	why, fix string
}

func yes(format string, args ...any) verdict { return verdict{true, fmt.Sprintf(format, args...), ""} }

func no(fix, format string, args ...any) verdict {
	return verdict{false, fmt.Sprintf(format, args...), fix}
}

// probe is one row of the table.
type probe struct {
	name, use string
	pkg       string // Debian package of the program that it tries
	demo      int    // one of the words below
	try       func(context.Context, Options) verdict
}

const (
	optional = iota
	always   // the demo needs it
	fetching // the demo needs it unless all is fetched
)

// probes are all capabilities, in the order they are shown.
var probes = []probe{
	{"platform", "engine child", "", always, platform},
	{"memfd", "ring between processes", "", always, memfd},
	{"disk", "results", "", always, disk},
	{"hugepages", "direct I/O, engine buffers", "", optional, hugepages},
	{"python3", "fetching models, foreign tools", "python3", fetching, python},
	{"pip", "fetching models", "python3-pip", fetching, pip},
	{"npm", "fetching engine libraries", "npm", fetching, npm},
	{"jump-slot", "collector tensorgraph without cost", "", optional, jumpSlot},
	{"pagemap-scan", "collector written", "", optional, pagemapScan},
	{"userfaultfd-wp-async", "collector written", "", optional, written},
	{"clear-refs", "collector referenced", "", optional, clearRefs},
	{"perf-software", "collector pagefault", "", optional, software},
	{"debug-registers", "collector watchpoint", "", optional, breakpoint},
	{"pmu-memory", "collector perfmem", "", optional, memorySampling},
	{"tracefs", "block I/O, scheduler", "", optional, tracefs},
	{"ebpf", "block I/O, scheduler, faults", "", optional, ebpf},
	{"btf", "eBPF programs built elsewhere", "", optional, btf},
	{"uprobes", "collector tensorgraph on other processes", "", optional, uprobes},
	{"perf", "import of perf recordings, validate --machine", "linux-perf", optional, perfTool},
	{"valgrind", "collector lackey", "valgrind", optional, valgrind},
	{"memray", "collector memray", "", optional, memray},
	{"chromium", "checking reports in a browser", "chromium", optional, chromium},
}

// Capabilities tries every capability and returns them in a fixed order. It
// leaves nothing behind. A probe that does not answer within 20 s counts as not
// there; it ends early when ctx does.
func Capabilities(ctx context.Context, o Options) []Capability {
	out := make([]Capability, len(probes))
	var wg sync.WaitGroup
	slots := make(chan struct{}, max(2, runtime.NumCPU()))
	for i, p := range probes {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			v := p.try(ctx, o)
			c := Capability{Name: p.name, OK: v.ok, Why: v.why, Fix: v.fix, Use: p.use}
			c.Demo = p.demo == always || p.demo == fetching && !o.Fetched
			if !v.ok {
				c.Package = p.pkg
			}
			out[i] = c
		})
	}
	wg.Wait()
	return out
}

// AptLine returns the one command that installs what is missing of all
// capabilities, "" if no Debian package would help.
func AptLine(list []Capability) string {
	var pkgs []string
	for _, c := range list {
		if !c.OK && c.Package != "" {
			pkgs = append(pkgs, c.Package)
		}
	}
	if len(pkgs) == 0 {
		return ""
	}
	slices.Sort(pkgs)
	return "apt-get install -y " + strings.Join(slices.Compact(pkgs), " ")
}

// DemoLacks returns the names of the capabilities that the demo needs and that
// are not there.
func DemoLacks(list []Capability) []string {
	var names []string
	for _, c := range list {
		if c.Demo && !c.OK {
			names = append(names, c.Name)
		}
	}
	return names
}

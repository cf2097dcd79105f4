package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (h *Host) checkPerf(context.Context) Check {
	path, err := exec.LookPath("perf")
	if err != nil {
		return Check{Status: Fail, Detail: "perf is not on PATH", Remediation: install("linux-perf")}
	}
	return passed("perf is on PATH").with("path", path)
}

func (h *Host) checkPerfVersion(ctx context.Context) Check {
	out, err := program(ctx, "perf", "--version")
	if errors.Is(err, exec.ErrNotFound) {
		return Check{Status: Skip, Detail: "perf is not on PATH"}
	}
	text := strings.TrimPrefix(firstLine(out), "perf version ")
	c := passed("perf "+text).with("perf", text).with("kernel", h.Kernel)
	perf, ok1 := parseRelease(text)
	kernel, ok2 := parseRelease(h.Kernel)
	switch {
	case err != nil || !ok1:
		c.Status, c.Detail, c.Remediation = Warn, "perf does not tell its version: "+text, install("linux-perf")
	case ok2 && perf != kernel:
		c.Status, c.Remediation = Warn, "take perf of the kernel's version, if something goes wrong"
		c.Detail += " on kernel " + h.Kernel
	}
	return c
}

// pmuOf returns by what a vendor's CPUs sample memory accesses.
func pmuOf(vendor string) string {
	switch vendor {
	case "GenuineIntel":
		return "pebs"
	case "AuthenticAMD":
		return "ibs"
	case "ARM":
		return "spe"
	}
	return "none"
}

func (h *Host) checkCPU(context.Context) Check {
	cpu := h.machine().Hardware()
	kind := pmuOf(cpu.CPUVendor)
	c := passed(fmt.Sprintf("%s (%s)", cpu.CPUModel, strings.ToUpper(kind))).with("vendor", cpu.CPUVendor).with("model", cpu.CPUModel).with("pmu_type", kind)
	if kind == "none" {
		c.Status, c.Detail = Warn, cpu.CPUModel+" is neither Intel, AMD nor Arm"
		c.Remediation = "take a CPU that samples memory accesses"
	}
	return c
}

// facilities returns the kernel's devices that sample memory accesses.
func (h *Host) facilities(kind string) []string {
	there := func(paths ...string) bool {
		return !slices.ContainsFunc(paths, func(p string) bool {
			_, err := os.Stat(h.Root + sysEvents + p)
			return err != nil
		})
	}
	var list []string
	switch kind {
	case "pebs":
		for _, d := range []string{"cpu", "cpu_core"} {
			if there(d+"/format/ldlat", d+"/events/mem-loads") {
				list = append(list, d)
			}
		}
	case "ibs":
		for _, d := range []string{"ibs_op", "ibs_fetch"} {
			if there(d) {
				list = append(list, d)
			}
		}
	case "spe":
		for i := range 4 {
			if d := fmt.Sprintf("arm_spe_%d", i); there(d) {
				list = append(list, d)
			}
		}
	}
	return list
}

func (h *Host) checkFacility(context.Context) Check {
	kind := pmuOf(h.machine().Hardware().CPUVendor)
	list := h.facilities(kind)
	switch {
	case kind == "none":
		return Check{Status: Warn, Detail: "what this CPU has is not known"}
	case len(list) == 0:
		return Check{Status: Fail, Detail: "the kernel shows no " + strings.ToUpper(kind), Remediation: "a machine, or a VM with a virtual PMU, that shows it"}.with("devices", []string{})
	}
	return passed(strings.ToUpper(kind)+" by "+strings.Join(list, ", ")).with("devices", list)
}

func (h *Host) checkDmesg(ctx context.Context) Check {
	out, err := program(ctx, "dmesg")
	if err != nil {
		return Check{Status: Skip, Detail: "dmesg cannot be read", Remediation: "run as root"}
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "Performance Events:") && !strings.Contains(line, "hw perfevents:") {
			continue
		}
		line = firstLine(line)
		if strings.Contains(line, "software events only") {
			return Check{Status: Fail, Detail: line, Remediation: "a machine, or a VM with a virtual PMU"}
		}
		return passed(line)
	}
	return Check{Status: Info, Detail: "dmesg has no line about the PMU any more"}
}

const (
	smokeTime    = 60 * time.Second
	smokeSamples = 1000
)

var sampleCount = regexp.MustCompile(`\(~?([0-9]+) samples?\)`)

// checkSmoke records a program that reads memory in strides.
func (h *Host) checkSmoke(ctx context.Context) Check {
	if _, err := exec.LookPath("perf"); err != nil {
		return Check{Status: Skip, Detail: "perf is not on PATH"}
	}
	dir, err := os.MkdirTemp("", "tierscope-smoke-")
	if err != nil {
		return Check{Status: Skip, Detail: err.Error()}
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, smokeTime)
	defer cancel()
	data := filepath.Join(dir, "perf.data")
	out, err := program(ctx, "perf", append([]string{"mem", "record", "-o", data, "--"}, h.Workload...)...)
	if errors.Is(err, context.DeadlineExceeded) {
		return Check{Status: Fail, Detail: fmt.Sprintf("perf mem record did not end in %v", smokeTime), Remediation: "try another kernel or perf"}.with("samples", 0)
	}
	if err != nil {
		return Check{Status: Fail, Detail: "perf mem record: " + guess(out, err), Remediation: "see facility, paranoid and root"}.with("samples", 0)
	}
	return judgeSmoke(ctx, data, out)
}

// judgeSmoke judges a recording by what perf said of it, and if that is little or
// nothing by the samples themselves.
func judgeSmoke(ctx context.Context, data, said string) Check {
	n := -1
	if m := sampleCount.FindStringSubmatch(said); m != nil {
		if v, err := strconv.Atoi(m[1]); err == nil {
			n = v
		}
	}
	if n >= smokeSamples {
		return passed(fmt.Sprintf("%d samples", n)).with("samples", n)
	}
	addresses, lines := 0, 0
	if n != 0 {
		script, err := program(ctx, "perf", "script", "-i", data, "-F", "addr")
		for line := range strings.Lines(script) {
			if err != nil || strings.TrimSpace(line) == "" {
				continue
			}
			lines++
			if a := strings.Trim(line, " 0\t\r\n"); a != "" {
				addresses++
			}
		}
		if n < 0 {
			n = lines // perf did not say
		}
	}
	c := passed(fmt.Sprintf("%d samples, %d with an address", n, addresses)).with("samples", n).with("addresses", addresses)
	switch {
	case n == 0:
		c.Status, c.Detail, c.Remediation = Fail, "no samples", "see facility, paranoid and root"
	case lines == 0:
		c.Status, c.Remediation = Warn, "perf script shows none of them: take perf of the kernel's version"
	}
	return c
}

// guess says why perf gave up, from its words.
func guess(out string, err error) string {
	line := firstLine(out)
	switch {
	case strings.Contains(out, "memory events not supported"):
		return "the CPU, or the VM, has no event for memory accesses"
	case strings.Contains(out, "ermission"), strings.Contains(out, "paranoid"):
		return "not permitted: " + line
	case line == "":
		return err.Error()
	}
	return line
}

// TouchMemory reads 32 MiB in strides of a cache line a few times: the program
// that the test recording watches. It returns a sum of what it read.
func TouchMemory() (sum uint64) {
	mem := make([]uint64, 32<<20/8)
	for i := range mem {
		mem[i] = uint64(i)
	}
	for range 20 {
		for stride := range 8 {
			for i := stride; i < len(mem); i += 8 {
				sum += mem[i]
			}
		}
	}
	return sum
}

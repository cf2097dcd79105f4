package probe

import (
	"context"
	"os"
	"slices"

	"github.com/tierscope/tierscope/system/machine"
)

// Statuses of a check.
const (
	Pass = "PASS"
	Warn = "WARN"
	Fail = "FAIL"
	Info = "INFO"
	Skip = "SKIP"
)

// Check is one of the seventeen checks of a machine.
type Check struct {
	Name        string         `json:"name"`
	Status      string         `json:"status"`
	Detail      string         `json:"detail"`
	Remediation string         `json:"remediation"` // "" if there is nothing to do
	Data        map[string]any `json:"data"`        // figures by name; never null
}

// Machine is what validate --machine prints.
type Machine struct {
	Checks   []Check `json:"checks"`
	Verdict  string  `json:"verdict"`
	ExitCode int     `json:"exit_code"` // 0 hardware samples, 1 allocations only, 2 neither
}

// Host is the machine that is checked. Programs are looked for on PATH.
type Host struct {
	Root     string   // below which proc and sys lie; "" is this machine
	OS       string   // as uname says it: Linux
	Kernel   string   // release
	UID      int      // of this process
	Dir      string   // where results go
	Workload []string // program that reads memory in strides, for the test recording
}

// ThisHost returns this machine; workload is a program that [TouchMemory]s.
func ThisHost(dir string, workload ...string) *Host {
	sw := machine.New("").Software()
	return &Host{OS: uname(), Kernel: sw.Kernel, UID: os.Getuid(), Dir: dir, Workload: workload}
}

// checks are in mrm-trace's order.
var checks = []struct {
	name string
	try  func(*Host, context.Context) Check
}{
	{"os", (*Host).checkOS},
	{"wsl2", (*Host).checkWSL},
	{"kernel", (*Host).checkKernel},
	{"perf_installed", (*Host).checkPerf},
	{"perf_version", (*Host).checkPerfVersion},
	{"root", (*Host).checkRoot},
	{"paranoid", (*Host).checkParanoid},
	{"cpu", (*Host).checkCPU},
	{"facility", (*Host).checkFacility},
	{"pmu_dmesg", (*Host).checkDmesg},
	{"smoke", (*Host).checkSmoke},
	{"ac_power", (*Host).checkPower},
	{"governor", (*Host).checkGovernor},
	{"thermal", (*Host).checkThermal},
	{"memray", (*Host).checkMemray},
	{"gpu", (*Host).checkGPU},
	{"disk", (*Host).checkDisk},
}

// Check runs the seventeen checks, each telling progress its name first. It ends
// early with ctx's error. It records for up to a minute where perf can, and
// leaves nothing behind.
func (h *Host) Check(ctx context.Context, progress func(name string)) (*Machine, error) {
	m := &Machine{}
	for _, c := range checks {
		progress(c.name)
		r := c.try(h, ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.Name = c.name
		if r.Data == nil {
			r.Data = map[string]any{}
		}
		m.Checks = append(m.Checks, r)
	}
	m.judge()
	return m, nil
}

// judge settles verdict and exit code.
func (m *Machine) judge() {
	by := func(name string) Check {
		return m.Checks[slices.IndexFunc(m.Checks, func(c Check) bool { return c.Name == name })]
	}
	hardware := true
	for _, name := range []string{"os", "wsl2", "perf_installed", "facility"} {
		hardware = hardware && by(name).Status != Fail
	}
	smoke := by("smoke")
	samples, _ := smoke.Data["samples"].(int)
	hardware = hardware && (smoke.Status == Pass || smoke.Status == Warn && samples > 0)
	switch {
	case hardware:
		m.Verdict, m.ExitCode = "memory accesses can be sampled by hardware", 0
	case by("memray").Status == Pass:
		m.Verdict, m.ExitCode = "no hardware samples of memory accesses; Python allocations can be traced", 1
	default:
		m.Verdict, m.ExitCode = "neither hardware samples of memory accesses nor Python allocations", 2
	}
}

// Context is what mrm-trace puts into metadata.json beside the checks.
type Context struct {
	CPUModel     string   `json:"cpu_model"`
	CPUVendor    string   `json:"cpu_vendor"`
	PMUType      string   `json:"pmu_type"` // pebs, ibs, spe, none
	PMUAvailable bool     `json:"pmu_facility_available"`
	ACPower      *bool    `json:"ac_power"`
	Turbo        *bool    `json:"turbo_enabled"`
	DiskFreeGB   *float64 `json:"disk_free_gb"` // 10^9 bytes
}

// Context reads the machine's context, its section hardware_context. It records
// nothing and starts no program.
func (h *Host) Context() Context {
	cpu := h.machine().Hardware()
	kind := pmuOf(cpu.CPUVendor)
	c := Context{CPUModel: cpu.CPUModel, CPUVendor: cpu.CPUVendor, PMUType: kind, PMUAvailable: len(h.facilities(kind)) > 0}
	if on, ok := h.acPower(); ok {
		c.ACPower = &on
	}
	if on, ok := h.machine().Turbo(); ok {
		c.Turbo = &on
	}
	if free, err := freeSpace(h.Dir); err == nil {
		gb := float64(free) / 1e9
		c.DiskFreeGB = &gb
	}
	return c
}

func (h *Host) machine() machine.Machine { return machine.New(h.Root) }

func (h *Host) read(path string) string { return readString(h.Root + path) }

func passed(detail string) Check { return Check{Status: Pass, Detail: detail} }

func (c Check) with(name string, value any) Check {
	data := map[string]any{name: value}
	for k, v := range c.Data {
		data[k] = v
	}
	c.Data = data
	return c
}

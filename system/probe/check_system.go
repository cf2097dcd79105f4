package probe

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func uname() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:])
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// parseRelease returns major and minor of a version text such as 6.1.0-18-amd64.
func parseRelease(s string) (v [2]int, ok bool) {
	major, rest, _ := strings.Cut(s, ".")
	minor := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		minor = rest[:i]
	}
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return [2]int{a, b}, err1 == nil && err2 == nil
}

func (h *Host) checkOS(context.Context) Check {
	if h.OS != "Linux" {
		return Check{Status: Fail, Detail: h.OS + " is not Linux", Remediation: "run it on Linux"}
	}
	return passed(h.OS)
}

func (h *Host) checkWSL(context.Context) Check {
	text := strings.ToLower(h.read("/proc/version") + h.read("/proc/sys/kernel/osrelease"))
	if strings.Contains(text, "microsoft") || strings.Contains(text, "wsl") {
		return Check{Status: Fail, Detail: "this is WSL: its kernel samples no memory accesses", Remediation: "boot Linux itself"}
	}
	return passed("not WSL")
}

func (h *Host) checkKernel(context.Context) Check {
	c := passed(h.Kernel)
	if v, ok := parseRelease(h.Kernel); ok && v == [2]int{6, 8} {
		c.Detail += "; on 6.8 perf cannot attach to a running process with PEBS"
		c.Remediation = "let perf start the program, or take another kernel"
	}
	return c.with("release", h.Kernel)
}

func (h *Host) checkRoot(context.Context) Check {
	if h.UID != 0 {
		return Check{Status: Info, Detail: fmt.Sprintf("user %d", h.UID), Remediation: "some recordings need root"}.with("uid", h.UID)
	}
	return passed("root").with("uid", h.UID)
}

func (h *Host) checkParanoid(context.Context) Check {
	text := strings.TrimSpace(h.read(paranoid))
	level, err := strconv.Atoi(text)
	if err != nil {
		return Check{Status: Warn, Detail: paranoid + " cannot be read", Remediation: "a kernel with perf events"}
	}
	c := passed(fmt.Sprintf("perf_event_paranoid %d", level)).with("level", level)
	if h.UID != 0 && level > 0 {
		c.Status, c.Remediation = Warn, "sudo sysctl kernel.perf_event_paranoid=0"
	}
	return c
}

// acPower reports whether a supply says that it is plugged in; ok is false where
// there is none.
func (h *Host) acPower() (on, ok bool) {
	list, err := filepath.Glob(h.Root + "/sys/class/power_supply/A*/online")
	if err != nil {
		return false, false
	}
	for _, p := range list {
		on = on || strings.TrimSpace(readString(p)) == "1"
	}
	return on, len(list) > 0
}

func (h *Host) checkPower(context.Context) Check {
	on, ok := h.acPower()
	switch {
	case on:
		return passed("plugged in")
	case ok:
		return Check{Status: Warn, Detail: "runs on battery", Remediation: "plug it in: batteries lower the clock"}
	}
	return Check{Status: Warn, Detail: "no power supply is shown, as on servers and VMs", Remediation: "make sure that it runs on mains"}
}

func (h *Host) checkGovernor(context.Context) Check {
	governor := h.machine().FrequencyLimits().Governor
	turbo, known := h.machine().Turbo()
	c := passed("").with("governor", governor)
	var parts []string
	if governor != "" {
		parts = append(parts, "governor "+governor)
	}
	if known {
		c = c.with("turbo", turbo)
		parts = append(parts, "turbo "+map[bool]string{true: "on", false: "off"}[turbo])
	}
	c.Detail = strings.Join(parts, ", ")
	switch {
	case len(parts) == 0:
		c.Status, c.Detail = Warn, "neither governor nor turbo can be read"
		c.Remediation = "the clock may drift: repeat runs, and compare them in pairs"
	case governor != "" && governor != "performance" || turbo:
		c.Status, c.Remediation = Warn, "sudo cpupower frequency-set -g performance, and switch turbo off"
	}
	return c
}

func (h *Host) checkThermal(context.Context) Check {
	temp, zone := h.machine().TemperatureC()
	counters := len(h.machine().Throttles())
	c := passed(fmt.Sprintf("%.1f degrees, %d cores with throttle counters", temp, counters)).with("throttle_counters", counters)
	if zone {
		c = c.with("temp_c", temp)
	}
	if zone && counters > 0 {
		return c
	}
	c.Status = Warn
	switch {
	case zone:
		c.Detail = fmt.Sprintf("%.1f degrees, no throttle counters", temp)
	case counters > 0:
		c.Detail = "no temperature can be read"
	default:
		c.Detail = "neither temperature nor throttle counters can be read"
	}
	c.Remediation = "throttling would go unnoticed: repeat runs, and compare them in pairs"
	return c
}

func (h *Host) checkMemray(ctx context.Context) Check {
	v := memray(ctx, Options{})
	if !v.ok {
		return Check{Status: Info, Detail: v.why, Remediation: v.fix}
	}
	return passed(v.why)
}

func (h *Host) checkGPU(ctx context.Context) Check {
	out, err := program(ctx, "nvidia-smi", "--query-gpu=name,power.draw", "--format=csv,noheader,nounits")
	if errors.Is(err, exec.ErrNotFound) {
		return Check{Status: Info, Detail: "nvidia-smi is not installed"}
	}
	line := firstLine(out)
	name, power, _ := strings.Cut(line, ",")
	watts, perr := strconv.ParseFloat(strings.TrimSpace(power), 64)
	if err != nil || perr != nil {
		return Check{Status: Warn, Detail: "nvidia-smi gives no power figure: " + line, Remediation: "check the driver"}
	}
	return passed(fmt.Sprintf("%s, %.1f W", name, watts)).with("name", name).with("power_draw_w", watts)
}

// wantedSpace is mrm-trace's limit, 50 GB.
const wantedSpace = 50e9

func (h *Host) checkDisk(context.Context) Check {
	free, err := freeSpace(h.Dir)
	if err != nil {
		return Check{Status: Warn, Detail: err.Error(), Remediation: "choose another --out"}
	}
	gb := float64(free) / 1e9
	c := passed(fmt.Sprintf("%.1f GB free", gb)).with("free_gb", gb)
	if float64(free) < wantedSpace {
		c.Status, c.Remediation = Warn, "traces grow large: free some space, or choose another --out"
	}
	return c
}

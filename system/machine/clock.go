package machine

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// FrequencyLimits are CPU 0's limits; nil where they cannot be read.
type FrequencyLimits struct {
	HWMaxMHz, MaxMHz, MinMHz *float64
	Governor                 string
}

// FrequencyLimits reads CPU 0's cpufreq directory.
func (m Machine) FrequencyLimits() FrequencyLimits {
	const dir = "/sys/devices/system/cpu/cpu0/cpufreq/"
	mhz := func(name string) *float64 {
		khz, ok := m.number(dir + name)
		if !ok {
			return nil
		}
		return run.Known(khz / 1000)
	}
	return FrequencyLimits{mhz("cpuinfo_max_freq"), mhz("scaling_max_freq"), mhz("scaling_min_freq"), m.text(dir + "scaling_governor")}
}

// FrequencyMHz returns the mean current clock frequency of the CPUs: what
// cpufreq says, else what /proc/cpuinfo says (which is constant in most VMs).
func (m Machine) FrequencyMHz() (mhz float64, ok bool) {
	var sum float64
	n := 0
	for _, p := range m.glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq") {
		if khz, ok := m.number(p); ok {
			sum += khz / 1000
			n++
		}
	}
	if n == 0 {
		f, err := os.Open(m.path("/proc/cpuinfo"))
		if err != nil {
			return 0, false
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			key, val, _ := strings.Cut(s.Text(), ":")
			if strings.TrimSpace(key) != "cpu MHz" {
				continue
			}
			if v, err := strconv.ParseFloat(strings.TrimSpace(val), 64); err == nil {
				sum += v
				n++
			}
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// Turbo reports whether the CPU may run above its nominal frequency; false, false
// where that cannot be read.
func (m Machine) Turbo() (on, ok bool) {
	if v, ok := m.number("/sys/devices/system/cpu/intel_pstate/no_turbo"); ok {
		return v == 0, true
	}
	if v, ok := m.number("/sys/devices/system/cpu/cpufreq/boost"); ok {
		return v != 0, true
	}
	return false, false
}

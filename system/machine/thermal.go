package machine

import "strings"

// TemperatureC returns the CPU package's temperature: the first thermal zone
// whose type names a package, or an x86 CPU; else that of the hottest zone. False
// if no zone can be read, as in most VMs.
func (m Machine) TemperatureC() (float64, bool) {
	hottest, found := 0.0, false
	for _, zone := range m.glob("/sys/class/thermal/thermal_zone[0-9]*") {
		milli, ok := m.number(zone + "/temp")
		if !ok {
			continue
		}
		kind := strings.ToLower(m.text(zone + "/type"))
		if strings.Contains(kind, "pkg") || strings.Contains(kind, "x86") && strings.Contains(kind, "cpu") {
			return milli / 1000, true
		}
		if t := milli / 1000; !found || t > hottest {
			hottest, found = t, true
		}
	}
	return hottest, found
}

// Throttles is a reading of the throttle counters, one a physical core: hardware
// threads of one core show the same counter, which is to be counted once.
type Throttles map[string]int64

// Throttles reads the counters; it is empty where there are none.
func (m Machine) Throttles() Throttles {
	out := Throttles{}
	for _, p := range m.glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count") {
		n, ok := m.number(p)
		if !ok {
			continue
		}
		cpu, _, _ := strings.Cut(strings.TrimPrefix(p, "/sys/devices/system/cpu/"), "/")
		core := cpu
		if t := "/sys/devices/system/cpu/" + cpu + "/topology/"; m.text(t+"core_id") != "" {
			core = m.text(t+"physical_package_id") + ":" + m.text(t+"core_id")
		}
		out[core] = max(out[core], int64(n))
	}
	return out
}

// Since returns how often cores were throttled since the earlier reading. Cores
// that it lacks, brought online later, count 0.
func (t Throttles) Since(earlier Throttles) int64 {
	var sum int64
	for core, n := range t {
		if before, ok := earlier[core]; ok && n > before {
			sum += n - before
		}
	}
	return sum
}

package mrm

import (
	"strings"

	"github.com/tierscope/tierscope/run"
)

// Metrics is a set of mrm-trace's metrics.
type Metrics uint8

// The metrics, and the tables that each stands for.
const (
	Retention   Metrics = 1 << iota // retention_per_region, retention_summary
	WriteOnce                       // write_once
	ReadFreq                        // read_freq
	WorkingSet                      // working_set_per_region, working_set_summary
	Locality                        // locality_per_region, locality_summary
	InterAccess                     // iai
	// AllMetrics is all of them. Suitability needs [Retention] and [WriteOnce],
	// metrics.csv these, [ReadFreq] and [WorkingSet].
	AllMetrics = 1<<iota - 1
)

const (
	forSuitability = Retention | WriteOnce
	forCSV         = forSuitability | ReadFreq | WorkingSet
	forLogs        = WriteOnce | WorkingSet | Locality | InterAccess
)

// MetricNames are mrm-trace's names of the metrics, by bit.
var MetricNames = []string{
	"retention_duration", "write_once_ratio", "read_frequency",
	"working_set_size", "access_locality", "inter_access_interval",
}

// ParseMetrics returns the set of the named metrics; none is all of them.
func ParseMetrics(names []string) (Metrics, error) {
	if len(names) == 0 {
		return AllMetrics, nil
	}
	var m Metrics
next:
	for _, name := range names {
		for i, n := range MetricNames {
			if n == name {
				m |= 1 << i
				continue next
			}
		}
		return 0, run.Errorf(run.Misuse, "metric %q is not known; there are %s", name, strings.Join(MetricNames, ", "))
	}
	return m, nil
}

// String returns the names with commas between them.
func (m Metrics) String() string {
	var names []string
	for i, n := range MetricNames {
		if m>>i&1 == 1 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

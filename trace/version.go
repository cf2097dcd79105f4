package trace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tierscope/tierscope/run"
)

// schemaVersion is the version of all schemas that are written here.
const schemaVersion = "1.0"

// The schemas of mrm-trace, all of version 1.0, and ours. A version is for
// one of these names.
const (
	SchemaTrace       = "trace"
	SchemaRegionMap   = "region_map"
	SchemaKVLifecycle = "kv_block_lifecycle"
	SchemaMetrics     = "metrics"
	SchemaMetadata    = "metadata"
	SchemaManifest    = "manifest"
	SchemaObjects     = "objects"
	SchemaMarks       = "marks"
)

// required are the columns that a reader of a schema insists on.
var required = map[string][]string{
	SchemaTrace: {"address", "address_page", "dso", "op_type", "phase", "region_id", "region_type", "run_id",
		"sample_id", "symbol", "timestamp_ns"},
	SchemaRegionMap: {"access_count", "first_seen_ns", "last_seen_ns", "page_max", "page_min", "region_id",
		"region_type"},
	SchemaKVLifecycle: {"address", "address_page", "block_id", "evict_ns", "last_read_ns", "lifetime_ns",
		"total_reads", "write_ns"},
	SchemaMetrics:  {"n_regions", "region_type", "retention_p99_s", "suitability", "write_once_ratio_mean"},
	SchemaMetadata: {},
	SchemaManifest: {},
	SchemaObjects:  {"base", "class", "generation", "id", "name", "size", "space"},
	SchemaMarks:    {"end", "kind", "name", "start"},
}

// SchemaVersion returns the version that is written and understood for a
// schema; "" if there is no such schema.
func SchemaVersion(schema string) string {
	if _, ok := required[schema]; !ok {
		return ""
	}
	return schemaVersion
}

// RequiredColumns returns the sorted columns that files of a schema must have.
func RequiredColumns(schema string) []string { return slices.Clone(required[schema]) }

// CheckVersion reports whether files of a schema with this version can be
// read: the major version must be 1. A text that is not two integers with one
// dot is [run.Invalid], another major version [run.Corrupt]. Schemas that are
// not known here pass.
func CheckVersion(schema, version string) error {
	if _, ok := required[schema]; !ok {
		return nil
	}
	major, minor, ok := strings.Cut(version, ".")
	m, err := strconv.Atoi(strings.TrimSpace(major))
	_, err2 := strconv.Atoi(strings.TrimSpace(minor))
	if !ok || err != nil || err2 != nil {
		return run.Errorf(run.Invalid, "version %q of %s: want two integers with a dot, such as %s", version, schema, schemaVersion)
	}
	if m != 1 {
		return run.Errorf(run.Corrupt, "%s has schema version %s and this program reads version 1: use a release that knows it", schema, version)
	}
	return nil
}

// checkColumns names what is missing, sorted.
func checkColumns(schema string, has func(string) bool) error {
	var missing []string
	for _, name := range required[schema] {
		if !has(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return run.Errorf(run.Corrupt, "%s file lacks the columns %s", schema, strings.Join(missing, ", "))
}

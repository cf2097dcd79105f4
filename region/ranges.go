package region

import (
	"encoding/json"
	"io"
	"math"
	"strconv"

	"github.com/tierscope/tierscope/run"
)

// rangeJSON is a range as files have it.
type rangeJSON struct {
	Start json.Number     `json:"addr_start"`
	End   json.Number     `json:"addr_end"`
	Type  json.RawMessage `json:"region_type"`
}

// ReadRanges reads a range list, kv_ranges.json among them. Its form is in the
// package comment.
func ReadRanges(r io.Reader) ([]Range, error) {
	var list []rangeJSON
	if err := readJSON(r, &list); err != nil {
		return nil, err
	}
	return toRanges(list)
}

func toRanges(list []rangeJSON) ([]Range, error) {
	out := make([]Range, len(list))
	for i, r := range list {
		start, err := strconv.ParseUint(string(r.Start), 10, 64)
		if err != nil {
			return nil, run.Errorf(run.Invalid, "ranges[%d].addr_start: %q is no address", i, r.Start)
		}
		end, err := strconv.ParseUint(string(r.End), 10, 64)
		if r.End == "18446744073709551616" { // the end of all addresses; one less is on the same page
			end, err = math.MaxUint64, nil
		}
		if err != nil {
			return nil, run.Errorf(run.Invalid, "ranges[%d].addr_end: %q is no address", i, r.End)
		}
		out[i] = Range{Start: start, End: end}
		switch {
		case r.Type == nil:
			return nil, run.Errorf(run.Invalid, "ranges[%d].region_type: missing", i)
		case json.Unmarshal(r.Type, &out[i].Type.Name) != nil:
			return nil, run.Errorf(run.Invalid, "ranges[%d].region_type: %s is no text", i, r.Type)
		default:
			out[i].Type.Null = string(r.Type) == "null"
		}
	}
	return out, nil
}

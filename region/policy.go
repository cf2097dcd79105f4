package region

import (
	"fmt"

	"github.com/tierscope/tierscope/run"
)

// Policy says what becomes of an access whose region is not known.
type Policy uint8

// The policies. mrm-trace's labeller has the first three.
const (
	Keep    Policy = iota // the row passes as unknown, region 0
	Skip                  // the row is left out and counted
	Fail                  // the row ends the labelling with an [UnknownError]
	Runtime               // the row becomes runtime on its page; the guess does not spread to later rows of the page
)

// ParsePolicy reads a policy in the words of mrm-trace's labeller: keep, skip,
// error.
func ParsePolicy(word string) (Policy, error) {
	switch word {
	case "keep":
		return Keep, nil
	case "skip":
		return Skip, nil
	case "error":
		return Fail, nil
	}
	return 0, run.Errorf(run.Misuse, "policy %q: want keep, skip or error", word)
}

// ParseConfigPolicy reads labeller.unknown_policy of an experiment file. Its
// words never reached mrm-trace's labeller; here log_and_skip is [Skip],
// assign_runtime is [Runtime], assign_unknown is [Keep], fail_run is [Fail].
func ParseConfigPolicy(word string) (Policy, error) {
	switch word {
	case "log_and_skip":
		return Skip, nil
	case "assign_runtime":
		return Runtime, nil
	case "assign_unknown":
		return Keep, nil
	case "fail_run":
		return Fail, nil
	}
	return 0, run.Errorf(run.Misuse, "unknown_policy %q: want log_and_skip, assign_runtime, assign_unknown or fail_run", word)
}

// UnknownError says which access could not be classified under [Fail]. Row
// counts from 0 over all rows that the labeller was given.
type UnknownError struct {
	Row     uint64
	Page    uint64
	Symbol  string
	DSO     string
	Address uint64
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("row %d: region of address %#x (page %#x, symbol %q, dso %q) is not known; policy keep lets such rows pass", e.Row, e.Address, e.Page, e.Symbol, e.DSO)
}

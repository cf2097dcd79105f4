package experiment

import (
	"github.com/tierscope/tierscope/collect"
	"github.com/tierscope/tierscope/collect/tensorgraph"
)

// Collectors are the specs of the collectors that a run can use; the first is
// the default. A new collector is one line here.
var Collectors = []func() collect.Spec{
	tensorgraph.Spec,
}

// Specs returns the specs of all collectors.
func Specs() []collect.Spec {
	out := make([]collect.Spec, 0, len(Collectors))
	for _, f := range Collectors {
		out = append(out, f())
	}
	return out
}

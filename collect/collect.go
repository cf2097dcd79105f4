// Package collect holds what all collectors have in common: the spec that says
// what one needs, sees, costs and cannot see. Each collector is a package below.
package collect

// Spec describes a collector without touching the machine.
type Spec struct {
	Name      string   `json:"name"`
	Sees      string   `json:"sees"`
	Needs     []string `json:"needs"`
	Costs     string   `json:"costs"`
	CannotSee []string `json:"cannot_see"`
}

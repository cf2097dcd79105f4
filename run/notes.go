package run

import (
	"slices"
	"sync"
)

// Severities of a note.
const (
	Info    = "info"
	Warning = "warning"
	// Wrong marks notes of severity invalid: figures are wrong or incomplete,
	// and the run is not valid.
	Wrong = "invalid"
)

// Note is a warning as data: what happened, how often, and which figures it
// weakens.
type Note struct {
	Code     string   `json:"code"`              // one stable word: lost_samples
	Severity string   `json:"severity"`          // info, warning or invalid
	Text     string   `json:"text"`              // one sentence: what, and what to do
	Figures  []string `json:"figures,omitempty"` // tables or columns that it weakens; none = no figure
	Count    uint64   `json:"count,omitempty"`   // how many were lost, late, ...; 0 = does not apply
}

// Notes collects notes in the order of their first appearance. Notes of the same
// code, severity and text become one with the sum of their counts. The zero value
// is ready; safe for concurrent use.
type Notes struct {
	mu   sync.Mutex
	list []Note
}

// Add adds n.
func (s *Notes) Add(n Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		m := &s.list[i]
		if m.Code == n.Code && m.Severity == n.Severity && m.Text == n.Text {
			m.Count += n.Count
			for _, f := range n.Figures {
				if !slices.Contains(m.Figures, f) {
					m.Figures = append(m.Figures, f)
				}
			}
			return
		}
	}
	n.Figures = slices.Clone(n.Figures)
	s.list = append(s.list, n)
}

// List returns a copy of the notes.
func (s *Notes) List() []Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.list)
	for i := range out {
		out[i].Figures = slices.Clone(out[i].Figures)
	}
	return out
}

// Valid reports whether none of the notes is of severity invalid.
func (s *Notes) Valid() bool { return valid(s.List()) }

func valid(notes []Note) bool {
	return !slices.ContainsFunc(notes, func(n Note) bool { return n.Severity == Wrong })
}

// Weakening returns the notes that name figure.
func Weakening(notes []Note, figure string) []Note {
	var out []Note
	for _, n := range notes {
		if slices.Contains(n.Figures, figure) {
			out = append(out, n)
		}
	}
	return out
}

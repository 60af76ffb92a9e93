package score

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// A Need is a name that was needed after the cut, and what became of it.
type Need struct {
	Kind UnitKind `json:"kind"`
	Text string   `json:"text"`
	// Weight is what it counts in the recall of units.
	Weight float64 `json:"weight"`
	// Credit is 0 if it is gone or is bare, 1 if it is in its surroundings.
	Credit float64 `json:"credit"`
	// Present says that it is somewhere, possibly bare.
	Present bool `json:"present"`
	// Far says that it was last seen long before the cut.
	Far bool `json:"far"`
	// Last is the last message before the cut that has it, By the first after the cut to
	// need it; both count from the first message of the session.
	Last int `json:"last"`
	By   int `json:"by"`
	// Messages are all messages before the cut that have it.
	Messages []int `json:"messages"`
}

// Needs returns the names that were needed after the cut and what view kept of them, the
// heaviest first.
func (s *Scorer) Needs(view []core.Message) []Need {
	r := s.read(view)
	out := make([]Need, len(s.units))
	for i := range s.units {
		u := &s.units[i]
		out[i] = Need{Kind: u.kind, Text: u.text, Weight: u.weight, Credit: r.credit[i], Present: r.present[i], Far: u.far, Last: u.last, By: u.message}
	}
	for i := range s.prefix.lines {
		l := &s.prefix.lines[i]
		for _, u := range l.units {
			if m := out[u].Messages; len(m) == 0 || m[len(m)-1] != int(l.message) {
				out[u].Messages = append(m, int(l.message))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Need) int {
		switch {
		case a.Weight > b.Weight:
			return -1
		case a.Weight < b.Weight:
			return 1
		}
		return 0
	})
	return out
}

// MarshalText writes the kind as its letter.
func (k UnitKind) MarshalText() ([]byte, error) { return []byte{byte(k)}, nil }

// UnmarshalText reads what MarshalText wrote.
func (k *UnitKind) UnmarshalText(text []byte) error {
	if len(text) > 0 {
		*k = UnitKind(text[0])
	}
	return nil
}

package score

import (
	"github.com/condensehq/condense/core"
)

// A Share is a part of a whole; both are sums of weights.
type Share struct {
	Kept   float64 `json:"kept"`
	Needed float64 `json:"needed"`
}

// Value returns the share, 0 to 1; false if there is no whole to take it of.
func (s Share) Value() (float64, bool) {
	if s.Needed <= 0 {
		return 0, false
	}
	return s.Kept / s.Needed, true
}

// A Score says how much of what was needed after a cut is still there.
type Score struct {
	FRR  Share `json:"frr"`  // units that are anywhere: gamed by a list of names
	GFRR Share `json:"gfrr"` // units that are in text that says something about them
	CFRR Share `json:"cfrr"` // the same, with credit for the text around them
	CFAR Share `json:"cfar"` // CFRR of the units that were last seen long before the cut
	FNR4 Share `json:"fnr4"` // runs of four words
	RW   Share `json:"rw"`   // rare plain words
	// UIR is what the person said, word for word, weighted by length.
	UIR Share `json:"uir"`
	// Recent are the last ten messages, word for word.
	Recent Share `json:"recent"`
	// Artefacts are the files that were touched, half for the name and half for the lines
	// of the last state; Errors are lines of results that report a fault.
	Artefacts Share `json:"artefacts"`
	Errors    Share `json:"errors"`
	// Foretold are the runs of four words that the agent or the person wrote after the cut
	// and that are nowhere before it: a strategy that has more than a few of them knows
	// the future.
	Foretold Share `json:"foretold"`
	// PairErrors are the faults that were added: calls without results and the like.
	PairErrors int `json:"pair_errors"`
}

// The least that must be needed for a family to say something.
const (
	fewestGrams = 8
	fewestWords = 5
)

// Panel returns the mean of CFRR, FNR4 and RW, those of them that are defined; false if
// none is.
func (s Score) Panel() (float64, bool) {
	sum, n := 0.0, 0
	for _, share := range []Share{s.CFRR, s.FNR4, s.RW} {
		if v, ok := share.Value(); ok {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// Score judges view, which was made of the prefix. Nothing in it makes Score panic, and it
// is read as a model would read it: text, calls and results of every author. The cost
// is linear in view.
func (s *Scorer) Score(view []core.Message) Score {
	r := s.read(view)
	var out Score
	for i := range s.units {
		u := &s.units[i]
		out.FRR.Needed += u.weight
		out.GFRR.Needed += u.weight
		out.CFRR.Needed += u.weight
		out.CFRR.Kept += u.weight * r.credit[i]
		if r.present[i] {
			out.FRR.Kept += u.weight
		}
		if r.credit[i] > 0 {
			out.GFRR.Kept += u.weight
		}
		if u.far {
			out.CFAR.Needed += u.weight
			out.CFAR.Kept += u.weight * r.credit[i]
		}
	}
	if len(s.words) >= fewestWords {
		for i := range s.words {
			out.RW.Needed += s.words[i].weight
			if r.words[i] {
				out.RW.Kept += s.words[i].weight
			}
		}
	}
	if len(s.grams) >= fewestGrams {
		out.FNR4.Needed = float64(len(s.grams))
		for _, ok := range r.grams {
			if ok {
				out.FNR4.Kept++
			}
		}
	}
	out.UIR = s.userKept(view)
	out.Recent = s.recentKept(view)
	out.Artefacts, out.Errors = s.keptLines(r.have, r.names)
	out.Foretold = Share{Kept: float64(len(r.told)), Needed: float64(len(s.unseen))}
	out.PairErrors = max(0, faults(view)-s.faults)
	return out
}

// read reads view.
func (s *Scorer) read(view []core.Message) *reader {
	r := &reader{
		s: s, present: make([]bool, len(s.units)), credit: make([]float64, len(s.units)), words: make([]bool, len(s.words)), grams: make([]bool, len(s.grams)),
		have: map[uint64]struct{}{}, names: map[uint64]struct{}{}, told: map[uint64]struct{}{},
	}
	for i := range view {
		blocks(view[i].Parts, func(_ int, text string) { r.block(text) })
	}
	return r
}

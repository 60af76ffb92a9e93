package score

import (
	"github.com/condensehq/condense/core"
)

// A Share is a ratio of two sums of weights.
type Share struct {
	Kept   float64 `json:"kept"`
	Needed float64 `json:"needed"`
}

// Value returns the ratio, 0 to 1, or false if nothing was needed.
func (s Share) Value() (float64, bool) {
	if s.Needed <= 0 {
		return 0, false
	}
	return s.Kept / s.Needed, true
}

// A Score has the shares of the needed content that are left after a cut.
type Score struct {
	FRR  Share `json:"frr"`  // names anywhere in the view; a bare list of names scores well
	GFRR Share `json:"gfrr"` // names in a text about them
	CFRR Share `json:"cfrr"` // the same with credit for the context
	CFAR Share `json:"cfar"` // CFRR of the names last seen long before the cut
	FNR4 Share `json:"fnr4"` // runs of four words
	RW   Share `json:"rw"`   // rare plain words
	// Reach is the panel with all content that one recall or one read brings back counted as kept; Needed is 1.
	Reach Share `json:"reach"`
	// Altered and Stale are the shares of the weight of the names with that verdict.
	Altered Share `json:"altered"`
	Stale   Share `json:"stale"`
	// UIR is the share of the user's sentences that are kept verbatim, weighted by length.
	UIR Share `json:"uir"`
	// Recent is the share of the last ten messages that are kept verbatim.
	Recent Share `json:"recent"`
	// Artefacts is the share of the touched files, one half for the name and one half for the lines of
	// the last state. Errors is the share of the lines of results that report an error.
	Artefacts Share `json:"artefacts"`
	Errors    Share `json:"errors"`
	// Foretold is the share of the runs of four words that first appear after the cut. A strategy that has
	// more than a few of them knows the future.
	Foretold Share `json:"foretold"`
	// PairErrors is the number of faults that the view adds, such as calls without results.
	PairErrors int `json:"pair_errors"`
}

// The fewest 4-grams and words of a family that counts.
const (
	fewestGrams = 8
	fewestWords = 5
)

// Panel returns the mean of the defined ones of CFRR, FNR4 and RW, or false if none is.
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

// Score measures view, which a strategy made of the prefix. It reads view as a model would: text, calls and
// results of every author. Any view is valid input. The cost is linear in view.
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
	r.plain(&out)
	reach := r.with(s.reached(view))
	for i := range s.units {
		switch r.verdict(i, reach) {
		case Altered:
			out.Altered.Kept += s.units[i].weight
		case Stale:
			out.Stale.Kept += s.units[i].weight
		case Kept, Reachable, Missing:
		}
	}
	out.Altered.Needed, out.Stale.Needed = out.CFRR.Needed, out.CFRR.Needed
	out.Reach = reach.panel()
	out.UIR = s.userKept(view)
	out.Recent = s.recentKept(view)
	out.Artefacts, out.Errors = s.keptLines(r.have, r.names)
	out.Foretold = Share{Kept: float64(len(r.told)), Needed: float64(len(s.unseen))}
	out.PairErrors = max(0, faults(view)-s.faults)
	return out
}

// panel returns the panel of r as a share of 1.
func (r *reader) panel() Share {
	var all Score
	for i := range r.s.units {
		all.CFRR.Needed += r.s.units[i].weight
		all.CFRR.Kept += r.s.units[i].weight * r.credit[i]
	}
	r.plain(&all)
	if v, ok := all.Panel(); ok {
		return Share{Kept: v, Needed: 1}
	}
	return Share{}
}

// plain adds the shares of words and 4-grams to out.
func (r *reader) plain(out *Score) {
	if len(r.s.words) >= fewestWords {
		for i := range r.s.words {
			out.RW.Needed += r.s.words[i].weight
			if r.words[i] {
				out.RW.Kept += r.s.words[i].weight
			}
		}
	}
	if len(r.s.grams) >= fewestGrams {
		out.FNR4.Needed = float64(len(r.s.grams))
		for _, ok := range r.grams {
			if ok {
				out.FNR4.Kept++
			}
		}
	}
}

// read returns the needed content of view.
func (s *Scorer) read(view []core.Message) *reader {
	r := &reader{
		s: s, present: make([]bool, len(s.units)), credit: make([]float64, len(s.units)), words: make([]bool, len(s.words)), grams: make([]bool, len(s.grams)),
		have: map[uint64]struct{}{}, names: map[uint64]struct{}{}, told: map[uint64]struct{}{},
		sound: make([]bool, len(s.units)), stale: map[int32][]uint64{},
	}
	for i := range view {
		blocks(view[i].Parts, func(_ int, text string) { r.block(text) })
	}
	return r
}

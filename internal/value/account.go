package value

import (
	"context"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

const (
	// aboutValue multiplies the value of a line about something that the account names.
	aboutValue = 1.25
	// repeating is the share of a line's phrases above which the line counts as a repetition of the account.
	repeating = 0.6
	// namedShare is the share of the room for lines about the names in the account. A block of such lines has at most
	// namedLong tokens; a name that occurs in more than namedIn messages is too common to look for.
	namedShare = 0.15
	namedLong  = 150
	namedIn    = 12
)

// heed rates lines by the account: a line that the account repeats is worth nothing, and is dropped if the model
// wrote it; a line about a name that the account only mentions is worth more.
func (v *rating) heed(account string) {
	if account == "" {
		return
	}
	said := &Conversation{}
	for text := range strings.SplitSeq(account, "\n") {
		said.Lines = append(said.Lines, Line{Text: text})
	}
	names, runs := map[uint64]bool{}, map[uint64]bool{}
	x := finder{c: said}
	for b, more := (block{}), true; more; {
		more = x.find(&b)
		for _, m := range b.mentions {
			names[m.hash] = true
		}
		for _, p := range b.phrases {
			runs[p.hash] = true
		}
	}
	v.named = make([]bool, len(v.r.c.terms))
	named := v.named
	for n, key := range v.r.c.termAt.keys {
		if names[key] {
			named[n] = v.estimate.Names[n] > 0
			v.estimate.Words[n] = 0
		}
	}
	repeated := make([]bool, len(v.r.c.phrases))
	for n, key := range v.r.c.phraseAt.keys {
		if runs[key] {
			repeated[n] = true
			v.estimate.Phrases[n] = 0
		}
	}
	v.heeded = make([]float32, len(v.lines))
	for l := range v.lines {
		again, all := 0, 0
		for _, n := range v.r.c.phrasesOf(l) {
			all++
			if repeated[max(n, ^n)] {
				again++
			}
		}
		switch only := again > 0 && float64(again) > repeating*float64(all); {
		case only && v.r.c.Passages[v.r.c.Lines[l].Passage].Kind == dialog.KindAssistant:
			v.r.c.Lines[l].outdated = true
		case only: // it may be in the middle of lines that are kept
			v.heeded[l] = 0
		case slices.ContainsFunc(v.r.c.TermsOf(l), func(n int32) bool { return named[n] }):
			v.heeded[l] = aboutValue
		default:
			v.heeded[l] = 1
		}
	}
}

// weight returns the factor for the value of the lines of s.
func (v *rating) weight(s core.Span) float32 {
	if v.heeded == nil {
		return 1
	}
	sum := float32(0)
	for _, v := range v.heeded[s.Start:s.End] {
		sum += v
	}
	return sum / float32(s.End-s.Start)
}

// keepNamedByAccount keeps, for each name in the account that no kept line has, the newest lines about it: the
// account says that it matters but not the details.
func keepNamedByAccount(_ context.Context, w *choice) error {
	if w.v.named == nil {
		return nil
	}
	limit := w.spent() + namedShare*float64(w.r.o.Room)
	for p := range slices.Backward(w.passages) {
		if w.passages[p].mode != modeExtract || !w.eligible(p) {
			continue
		}
		lines := w.r.c.Passages[p].Lines
		for l := lines.End - 1; l >= lines.Start; l-- {
			if w.lines[l].at != 0 || w.gone(l) || w.v.heeded[l] == 0 || !slices.ContainsFunc(w.r.c.TermsOf(l), func(n int32) bool {
				return w.v.named[n] && w.terms[n].credit == 0 && w.r.c.terms[n].messages <= namedIn
			}) {
				continue
			}
			s := w.v.blockOf(l)
			if w.cost(s) > namedLong {
				s = core.Span{Start: l, End: l + 1}
			}
			if cost := w.cost(s); w.spent()+cost <= limit {
				w.take(s, cost)
			}
		}
	}
	return nil
}

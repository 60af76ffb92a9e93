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
func (w *rating) heed(account string) {
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
	w.named = make([]bool, len(w.c.terms))
	named := w.named
	for n, key := range w.c.termAt.keys {
		if names[key] {
			named[n] = w.estimate.Names[n] > 0
			w.estimate.Words[n] = 0
		}
	}
	repeated := make([]bool, len(w.c.phrases))
	for n, key := range w.c.phraseAt.keys {
		if runs[key] {
			repeated[n] = true
			w.estimate.Phrases[n] = 0
		}
	}
	w.heeded = make([]float32, len(w.lines))
	for l := range w.lines {
		again, all := 0, 0
		for _, n := range w.c.phrasesOf(l) {
			all++
			if repeated[max(n, ^n)] {
				again++
			}
		}
		switch only := again > 0 && float64(again) > repeating*float64(all); {
		case only && w.c.Passages[w.c.Lines[l].Passage].Kind == dialog.KindAssistant:
			w.c.Lines[l].outdated = true
		case only: // it may be in the middle of lines that are kept
			w.heeded[l] = 0
		case slices.ContainsFunc(w.c.TermsOf(l), func(n int32) bool { return named[n] }):
			w.heeded[l] = aboutValue
		default:
			w.heeded[l] = 1
		}
	}
}

// weight returns the factor for the value of the lines of s.
func (w *rating) weight(s core.Span) float32 {
	if w.heeded == nil {
		return 1
	}
	sum := float32(0)
	for _, v := range w.heeded[s.Start:s.End] {
		sum += v
	}
	return sum / float32(s.End-s.Start)
}

// keepNamedByAccount keeps, for each name in the account that no kept line has, the newest lines about it: the
// account says that it matters but not the details.
func (w claims) keepNamedByAccount(context.Context) error {
	if w.named == nil {
		return nil
	}
	limit := w.spent() + namedShare*float64(w.o.Room)
	for p := range slices.Backward(w.passages) {
		if w.passages[p].mode != modeExtract || !w.eligible(p) {
			continue
		}
		lines := w.c.Passages[p].Lines
		for l := lines.End - 1; l >= lines.Start; l-- {
			if w.lines[l].at != 0 || w.gone(l) || w.heeded[l] == 0 || !slices.ContainsFunc(w.c.TermsOf(l), func(n int32) bool {
				return w.named[n] && w.terms[n].credit == 0 && w.c.terms[n].messages <= namedIn
			}) {
				continue
			}
			s := w.blockOf(l)
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

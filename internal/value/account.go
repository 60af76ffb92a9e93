package value

import (
	"context"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

const (
	// aboutValue is by what the value of a line is multiplied that is about something which an account names.
	aboutValue = 1.25
	// repeating is the share of the runs of words in a line that an account has, above which the line only repeats it.
	repeating = 0.6
	// namedShare is the share of the room for the lines about what an account names, namedLong how many tokens a block of them may have, and
	// namedIn how many messages: what more of them have is no news.
	namedShare = 0.15
	namedLong  = 150
	namedIn    = 12
)

// heed makes lines count by what the account says: what it repeats counts nothing, and goes if the model said it; what it names without
// quoting it counts more.
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
		case only: // it may be in the middle of others
			w.heeded[l] = 0
		case slices.ContainsFunc(w.c.TermsOf(l), func(n int32) bool { return named[n] }):
			w.heeded[l] = aboutValue
		default:
			w.heeded[l] = 1
		}
	}
}

// weight returns by what the value of the lines of s is multiplied.
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

// keepNamedByAccount takes, for each thing that the account names and no kept line has, the newest lines about it: the account tells a reader
// that it matters, and not what it says.
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

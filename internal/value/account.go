package value

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// How what an account says counts: names in it by namedValue, words and runs of words not at all, and lines about what it names, unless
// they only repeat it, aboutValue times.
const (
	namedValue = 0.5
	aboutValue = 1.5
	// repeating is the share of the runs of words in a line that an account has, above which the line only repeats it.
	repeating = 0.6
)

// heed makes lines count by what the account says: what it repeats counts nothing, what it names without quoting it more.
func (w *selection) heed(account string) {
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
	named := make([]bool, len(w.c.terms))
	for n, key := range w.c.termAt.keys {
		if !names[key] {
			continue
		}
		if w.estimate.Names[n] > 0 {
			named[n] = true
			w.estimate.Names[n] *= namedValue
		}
		w.estimate.Words[n] = 0
	}
	repeated := make([]bool, len(w.c.phrases))
	for n, key := range w.c.phraseAt.keys {
		if runs[key] {
			repeated[n] = true
			w.estimate.Phrases[n] = 0
		}
	}
	w.about = make([]bool, len(w.lines))
	for l := range w.lines {
		again, all := 0, 0
		for _, n := range w.c.phrasesOf(l) {
			all++
			if repeated[max(n, ^n)] {
				again++
			}
		}
		if float64(again) > repeating*float64(all) {
			continue
		}
		for _, n := range w.c.TermsOf(l) {
			w.about[l] = w.about[l] || named[n]
		}
	}
}

// heeded returns by what the value of the lines of s is multiplied.
func (w *selection) heeded(s core.Span) float32 {
	for l := s.Start; l < s.End && w.about != nil; l++ {
		if w.about[l] {
			return aboutValue
		}
	}
	return 1
}

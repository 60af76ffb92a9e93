package score

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// A Need is a name that was needed after the cut, and how well a view keeps it.
type Need struct {
	Kind UnitKind `json:"kind"`
	Text string   `json:"text"`
	// Weight is its weight in the recall of names.
	Weight float64 `json:"weight"`
	// Credit is 0 if it is missing or without context, 1 if it is in its full context.
	Credit float64 `json:"credit"`
	// Verdict tells whether and how it is kept.
	Verdict Verdict `json:"verdict"`
	// Present reports whether it is anywhere in the view.
	Present bool `json:"present"`
	// Far reports whether it was last seen long before the cut.
	Far bool `json:"far"`
	// Last is the index of the last message before the cut that has it, By of the first message after
	// the cut that needs it.
	Last int `json:"last"`
	By   int `json:"by"`
	// Messages are the indices of all messages before the cut that have it.
	Messages []int `json:"messages"`
}

// Needs returns the names that were needed after the cut and how view keeps them, by falling weight.
func (s *Scorer) Needs(view []core.Message) []Need {
	r := s.read(view)
	reach := r.with(s.reached(view))
	out := make([]Need, len(s.units))
	for i := range s.units {
		u := &s.units[i]
		out[i] = Need{Kind: u.kind, Text: u.text, Weight: u.weight, Credit: r.credit[i], Verdict: r.verdict(i, reach), Present: r.present[i], Far: u.far, Last: u.last, By: u.message}
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

const (
	unitsPerMessage = 12.0 // maximum weight of the units of one later message
	gramsPerMessage = 60   // maximum number of 4-grams of one later message
	gramMessages    = 3    // a 4-gram in more messages of the prefix is boilerplate
	wordSources     = 4    // a plain word in more sources is common
)

// A later holds the references of one message of the future.
type later struct {
	units []int32 // indices of scorer.units
	grams []int32 // indices of scorer.grams
}

// A future collects the references of the agent and the user after the cut to content that was not shown again since.
type future struct {
	available map[uint64]struct{} // units, words, 4-grams
	messages  []later
	units     []need
	words     []need
	grams     []need
	unitAt    map[uint64]int32
	wordAt    map[uint64]int32
	gramAt    map[uint64]int32
}

// A need is a unit, a word or a 4-gram that was needed after the cut.
type need struct {
	hash    uint64
	kind    UnitKind // of a unit
	text    string   // of a unit or word
	df      int      // messages of the prefix that have it
	last    int      // the last of them
	weight  float64
	far     bool
	message int                 // index of the first message that needs it
	near    map[uint64]struct{} // words near a unit in the prefix
}

func newFuture() *future {
	return &future{available: map[uint64]struct{}{}, unitAt: map[uint64]int32{}, wordAt: map[uint64]int32{}, gramAt: map[uint64]int32{}}
}

// readFuture returns the references of the messages after the cut, to content of the prefix or not.
func readFuture(cut *Cut) *future {
	s := cut.Session
	f := newFuture()
	f.learn(s.System)
	for _, n := range s.names() {
		f.learn(n)
	}
	for m := cut.At; m < cut.End; m++ {
		f.messages = append(f.messages, later{})
		at := &f.messages[len(f.messages)-1]
		blocks(s.Messages[m].Parts, func(p int, text string) {
			switch s.Origin(m, p) {
			case OriginUser, OriginAgent:
				if c, ok := s.Messages[m].Parts[p].(core.ToolCall); ok {
					text = c.Args
				}
				f.refer(text, m, at)
			case OriginUnknown, OriginTool, OriginInjected:
			}
		})
		blocks(s.Messages[m].Parts, func(_ int, text string) { f.learn(text) })
	}
	return f
}

// learn makes all of text available.
func (f *future) learn(text string) {
	lines(text, func(line string) {
		var g grams
		for _, u := range appendUnits(nil, line) {
			f.available[u.hash] = struct{}{}
		}
		for _, w := range appendWords(nil, line) {
			f.available[w.hash] = struct{}{}
			if h, ok := g.push(w.hash); ok {
				f.available[h] = struct{}{}
			}
		}
	})
}

// refer adds the references of text, in message m, to content that is not available.
func (f *future) refer(text string, m int, at *later) {
	isNew := func(h uint64) bool { _, ok := f.available[h]; return !ok }
	lines(text, func(line string) {
		var g grams
		for _, u := range appendUnits(nil, line) {
			if _, ok := f.unitAt[u.hash]; !ok && isNew(u.hash) {
				f.unitAt[u.hash] = int32(len(f.units))
				at.units = append(at.units, int32(len(f.units)))
				f.units = append(f.units, need{hash: u.hash, kind: u.kind, text: line[u.start:u.end], message: m})
			}
		}
		for _, w := range appendWords(nil, line) {
			if _, ok := f.wordAt[w.hash]; w.plain && !ok && isNew(w.hash) && !isFunctionWord(w.hash) {
				f.wordAt[w.hash] = int32(len(f.words))
				f.words = append(f.words, need{hash: w.hash, text: line[w.start:w.end], message: m})
			}
			if h, ok := g.push(w.hash); ok && g.content() && isNew(h) {
				if _, ok := f.gramAt[h]; !ok {
					f.gramAt[h] = int32(len(f.grams))
					at.grams = append(at.grams, int32(len(f.grams)))
					f.grams = append(f.grams, need{hash: h, message: m})
				}
			}
		}
	})
}

// grams turns the words of a line into 4-grams. No 4-gram spans two lines, so choosing lines breaks none.
type grams struct {
	last [4]uint64
	n    int
}

// push adds a word and returns the 4-gram that ends with it.
func (g *grams) push(w uint64) (uint64, bool) {
	g.last[0], g.last[1], g.last[2], g.last[3] = g.last[1], g.last[2], g.last[3], w
	g.n++
	if g.n < 4 {
		return 0, false
	}
	return hashUint(hashUint(hashUint(hashUint(4, g.last[0]), g.last[1]), g.last[2]), g.last[3]), true
}

// tri returns the 3-gram that ends with the last word.
func (g *grams) tri() (uint64, bool) {
	if g.n < 3 {
		return 0, false
	}
	return trigram(g.last[1], g.last[2], g.last[3]), true
}

// content reports whether at most two of the last four words are function words.
func (g *grams) content() bool {
	n := 0
	for _, w := range g.last {
		if isFunctionWord(w) {
			n++
		}
	}
	return n <= 2
}

func trigram(a, b, c uint64) uint64 { return hashUint(hashUint(hashUint(3, a), b), c) }

package score

import (
	"slices"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// positionsPerLine limits the places of a line where its neighbours are compared. A line with more places, such as
// "return nil", has meaningless neighbours.
const positionsPerLine = 32

const (
	farTokens   = 0.10 // share of the tokens of the prefix that follow a far unit
	farMessages = 6    // messages that follow a far unit
)

// A Scorer measures views of the prefix of one cut. [NewScorer] takes time linear in the prefix and the
// future, [Scorer.Score] time linear in the view. A Scorer is safe for concurrent use.
type Scorer struct {
	cut   Cut
	units []need
	words []need
	grams []need

	unitAt, wordAt, gramAt map[uint64]int32

	prefix prefix
	user   []sentence
	// userTri maps the hash of a 3-gram of the user's sentences to its number.
	userTri map[uint64]int32
	recent  []uint64
	faults  int

	artefacts []artefact
	errors    []uint64
	unseen    map[uint64]struct{} // 4-grams of the future that the prefix does not have

	reachOnce sync.Once
	reach     *reachIndex
	going     going
}

// A prefix is the index of the messages before a cut.
type prefix struct {
	lines     []line
	positions map[uint64][]int32 // of lines, by their hash
	tri       map[uint64]struct{}
	// needed units and words by line hash
	units map[uint64][]int32
	words map[uint64][]int32
	names map[uint64][]uint64 // paths of artefacts by line hash
}

// A line is a line of the prefix that is not empty.
type line struct {
	hash        uint64
	message     int32
	first, last bool // in its block
	result      bool // of a tool
	text        string
	long        float64 // credit for its length alone
	units       []int32
	words       []int32
	grams       []int32  // that end here
	content     []uint64 // words that are not function words
}

// A sentence is a sentence that the user typed.
type sentence struct {
	weight float64 // words, at most 40
	tri    []int32
}

// NewScorer returns a scorer for cut, whose messages must be measured. With a nil background every name and word
// counts as rare.
func NewScorer(cut Cut, background *Background) *Scorer {
	f := readFuture(&cut)
	s := &Scorer{cut: cut, userTri: map[uint64]int32{}, unseen: map[uint64]struct{}{}}
	s.readArtefacts()
	s.prefix = readPrefix(&cut, f, s.artefactNames())
	s.choose(f, background)
	s.relate()
	s.readUser()
	s.recent = messageHashes(cut.Prefix()[max(0, cut.At-recentMessages):])
	s.faults = faults(cut.Prefix())
	s.readErrors()
	return s
}

// readPrefix indexes the prefix; the indices in its lines are indices of f.
func readPrefix(cut *Cut, f *future, artefacts map[uint64]bool) prefix {
	p := prefix{
		positions: map[uint64][]int32{}, tri: map[uint64]struct{}{},
		units: map[uint64][]int32{}, words: map[uint64][]int32{}, names: map[uint64][]uint64{},
	}
	seen := func(n *need, m int) {
		if n.df == 0 || n.last != m {
			n.df++
			n.last = m
		}
	}
	var units []unit
	var words []word
	for m, msg := range cut.Prefix() {
		blocks(msg.Parts, func(part int, text string) {
			_, result := msg.Parts[part].(core.ToolResult)
			start := len(p.lines)
			var runs grams // of three words, across the ends of lines
			lines(text, func(text string) {
				var g grams
				units, words = appendUnits(units[:0], text), appendWords(words[:0], text)
				l := line{hash: lineHash(text), message: int32(m), text: text, result: result, long: runCredit(len(words))}
				for _, u := range units {
					if artefacts[u.hash] && !slices.Contains(p.names[l.hash], u.hash) {
						p.names[l.hash] = append(p.names[l.hash], u.hash)
					}
					if at, ok := f.unitAt[u.hash]; ok && !slices.Contains(l.units, at) {
						seen(&f.units[at], m)
						l.units = append(l.units, at)
					}
				}
				for _, w := range words {
					if at, ok := f.wordAt[w.hash]; ok && w.plain && !slices.Contains(l.words, at) {
						seen(&f.words[at], m)
						l.words = append(l.words, at)
					}
					if !isFunctionWord(w.hash) {
						l.content = append(l.content, w.hash)
					}
					if h, ok := g.push(w.hash); ok {
						if at, ok := f.gramAt[h]; ok {
							seen(&f.grams[at], m)
							l.grams = append(l.grams, at)
						}
					}
					runs.push(w.hash)
					if h, ok := runs.tri(); ok {
						p.tri[h] = struct{}{}
					}
				}
				if l.hash != 0 {
					p.lines = append(p.lines, l)
				}
			})
			if len(p.lines) > start {
				p.lines[start].first = true
				p.lines[len(p.lines)-1].last = true
			}
		})
	}
	return p
}

// choose sets the units, words and 4-grams of the future that are in the prefix, and their weights.
func (s *Scorer) choose(f *future, b *Background) {
	n, source := s.cut.At, s.cut.Session.Source
	sizes := make([]int, n+1)
	for i, m := range s.cut.Prefix() {
		sizes[i+1] = sizes[i] + m.Tokens
	}
	unitTo, wordTo, gramTo := newMapping(len(f.units)), newMapping(len(f.words)), newMapping(len(f.grams))
	for _, msg := range f.messages {
		sum := 0.0
		for _, at := range msg.units {
			u := &f.units[at]
			if u.df > 0 {
				u.weight = u.kind.weight() * b.rarity(u.hash, source) * idf(u.df, n)
				sum += u.weight
			}
		}
		scale := 1.0
		if sum > unitsPerMessage {
			scale = unitsPerMessage / sum
		}
		for _, at := range msg.units {
			u := &f.units[at]
			if u.weight == 0 {
				continue
			}
			u.weight *= scale
			u.far = float64(sizes[n]-sizes[u.last+1]) > farTokens*float64(sizes[n]) && n-1-u.last > farMessages
			unitTo[at] = int32(len(s.units))
			s.units = append(s.units, *u)
		}
		counted := 0
		for _, at := range msg.grams {
			g := &f.grams[at]
			if g.df == 0 {
				s.unseen[g.hash] = struct{}{}
			}
			if g.df == 0 || g.df > gramMessages || counted == gramsPerMessage {
				continue
			}
			counted++
			g.weight = 1
			gramTo[at] = int32(len(s.grams))
			s.grams = append(s.grams, *g)
		}
	}
	for at := range f.words {
		w := &f.words[at]
		if w.df == 0 || float64(w.df) > max(2, 0.1*float64(n)) || b.others(w.hash, source)+1 > wordSources {
			continue
		}
		if w.weight = idf(w.df, n); w.weight == 0 {
			continue
		}
		wordTo[at] = int32(len(s.words))
		s.words = append(s.words, *w)
	}
	for i := range s.prefix.lines {
		l := &s.prefix.lines[i]
		l.units, l.words, l.grams = unitTo.apply(l.units), wordTo.apply(l.words), gramTo.apply(l.grams)
	}
	s.unitAt, s.wordAt, s.gramAt = index(s.units), index(s.words), index(s.grams)
}

// A mapping maps indices to new ones; -1 drops an index.
type mapping []int32

func newMapping(n int) mapping {
	m := make(mapping, n)
	for i := range m {
		m[i] = -1
	}
	return m
}

func (m mapping) apply(in []int32) []int32 {
	out := in[:0]
	out = append(out, plain.Each(plain.Only(in, func(i int32) bool { return m[i] >= 0 }), func(i int32) int32 { return m[i] })...)
	return out
}

func index(needs []need) map[uint64]int32 {
	out := make(map[uint64]int32, len(needs))
	for i := range needs {
		out[needs[i].hash] = int32(i)
	}
	return out
}

// relate sets the positions of every line and the words near the needed units.
func (s *Scorer) relate() {
	p := &s.prefix
	for i := range p.lines {
		l := &p.lines[i]
		if at := p.positions[l.hash]; len(at) < positionsPerLine {
			p.positions[l.hash] = append(at, int32(i))
		}
		if _, ok := p.units[l.hash]; !ok && len(l.units) > 0 {
			p.units[l.hash] = l.units
		}
		if _, ok := p.words[l.hash]; !ok && len(l.words) > 0 {
			p.words[l.hash] = l.words
		}
		for _, u := range l.units {
			n := &s.units[u]
			if n.near == nil {
				n.near = map[uint64]struct{}{}
			}
			if len(n.near) > 2000 {
				continue
			}
			for _, w := range l.content {
				n.near[w] = struct{}{}
			}
			if !l.first {
				for _, w := range p.lines[i-1].content {
					n.near[w] = struct{}{}
				}
			}
			if !l.last {
				for _, w := range p.lines[i+1].content {
					n.near[w] = struct{}{}
				}
			}
		}
	}
}

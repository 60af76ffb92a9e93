package score

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// The families of content: names, runs of four words, rare plain words.
const families = 3

// A use is content that a message of the agent or of the user takes from the messages before it.
type use struct {
	hash   uint64
	family int8
	weight float32
}

// Uses are the uses of every message of a session, at the moment of use. Unlike the needs of a [Cut] they have no
// future of their own, so they can be followed through several condensations. Uses is safe for concurrent use.
type Uses struct {
	uses   [][]use
	said   [][]uint64 // content of each message that later ones use
	wanted map[uint64]struct{}
}

// NewUses reads s. It takes time linear in s.
func NewUses(s *Session, b *Background) *Uses {
	u := &Uses{uses: make([][]use, len(s.Messages)), said: make([][]uint64, len(s.Messages)), wanted: map[uint64]struct{}{}}
	said := make([][]uint64, len(s.Messages))
	df := map[uint64]int32{}
	common := newFuture() // names that the agent knows without the conversation
	common.learn(s.System)
	for _, n := range s.names() {
		common.learn(n)
	}
	for m := range s.Messages {
		spoken := map[uint64]struct{}{}
		blocks(s.Messages[m].Parts, func(p int, text string) {
			origin := s.Origin(m, p)
			written := text
			if c, ok := s.Messages[m].Parts[p].(core.ToolCall); ok {
				written = c.Args
			}
			if origin == OriginUser || origin == OriginAgent {
				terms(written, func(h uint64, family int8, weight float32) {
					if df[h] == 0 {
						return // it is new
					}
					if _, ok := common.available[h]; ok {
						return
					}
					u.uses[m] = append(u.uses[m], use{h, family, weight})
				})
			}
			terms(text, func(h uint64, _ int8, _ float32) { spoken[h] = struct{}{} })
		})
		for h := range spoken {
			said[m] = append(said[m], h)
			df[h]++
		}
	}
	n := len(s.Messages)
	for m := range u.uses {
		seen := map[uint64]bool{}
		u.uses[m] = slices.DeleteFunc(u.uses[m], func(x use) bool {
			again := seen[x.hash]
			seen[x.hash] = true
			return again || x.family == 2 && (float64(df[x.hash]) > max(2, 0.1*float64(n)) || b.others(x.hash, s.Source)+1 > wordSources)
		})
		for i := range u.uses[m] {
			x := &u.uses[m][i]
			if x.family == 0 {
				x.weight *= float32(b.rarity(x.hash, s.Source))
			}
			if x.family != 1 {
				x.weight *= float32(idf(int(df[x.hash]), n))
			}
			u.wanted[x.hash] = struct{}{}
		}
	}
	for m := range said { // the rest is never asked for
		u.said[m] = append(u.said[m], plain.Only(said[m], func(h uint64) bool { _, ok := u.wanted[h]; return ok })...)
	}
	return u
}

// terms yields the names, the runs of four words and the plain words of text, with the weight of their kind.
func terms(text string, yield func(h uint64, family int8, weight float32)) {
	var units []unit
	var words []word
	lines(text, func(line string) {
		units, words = appendUnits(units[:0], line), appendWords(words[:0], line)
		for _, u := range units {
			yield(u.hash, 0, float32(u.kind.weight()))
		}
		var g grams
		for _, w := range words {
			if w.plain && !isFunctionWord(w.hash) {
				yield(w.hash, 2, 1)
			}
			if h, ok := g.push(w.hash); ok && g.content() {
				yield(h, 1, 1)
			}
		}
	})
}

// A Memory has the content of a model's view as a session goes on.
type Memory struct {
	uses *Uses
	have map[uint64]struct{}
	sum  [families]Share
}

// NewMemory returns the memory of an empty view.
func (u *Uses) NewMemory() *Memory { return &Memory{uses: u, have: map[uint64]struct{}{}} }

// Use counts the uses of message m of the session, and the used content that the view still has. Call it before
// [Memory.Add].
func (m *Memory) Use(message int) {
	for _, x := range m.uses.uses[message] {
		m.sum[x.family].Needed += float64(x.weight)
		if _, ok := m.have[x.hash]; ok {
			m.sum[x.family].Kept += float64(x.weight)
		}
	}
}

// Add appends message m of the session, as recorded, to the view.
func (m *Memory) Add(message int) {
	for _, h := range m.uses.said[message] {
		m.have[h] = struct{}{}
	}
}

// Read replaces the view.
func (m *Memory) Read(view []core.Message) {
	clear(m.have)
	for i := range view {
		m.Append(view[i])
	}
}

// Append appends a message to the view that differs from the recorded one.
func (m *Memory) Append(message core.Message) {
	blocks(message.Parts, func(_ int, text string) {
		terms(text, func(h uint64, _ int8, _ float32) {
			if _, ok := m.uses.wanted[h]; ok {
				m.have[h] = struct{}{}
			}
		})
	})
}

// Had returns the share of all used content that was in the view at the moment of use: the mean over names, runs of
// four words and rare words. It is false if nothing was used.
func (m *Memory) Had() (float64, bool) {
	sum, n := 0.0, 0
	for _, s := range m.sum {
		if v, ok := s.Value(); ok {
			sum += v
			n++
		}
	}
	return sum / float64(max(1, n)), n > 0
}

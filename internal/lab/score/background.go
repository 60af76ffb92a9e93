package score

import (
	"math"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Background knows which names and words are common to unrelated projects. An agent
// that later writes README.md or "config" need not have it from the conversation. It
// never changes and is safe for concurrent use.
type Background struct {
	sources map[string]bool
	count   map[uint64]uint16 // sources that have the unit or the word
	shift   int               // bits of the hash that count has dropped
}

// NewBackground learns from sessions. The outcome does not depend on their order.
func NewBackground(sessions []*Session) *Background {
	sorted := slices.Clone(sessions)
	slices.SortStableFunc(sorted, func(a, b *Session) int { return strings.Compare(a.Source, b.Source) })
	b := &Background{sources: map[string]bool{}, count: map[uint64]uint16{}}
	seen := map[uint64]struct{}{}
	var units []unit
	var words []word
	for i, s := range sorted {
		b.sources[s.Source] = true
		for m := range s.Messages {
			blocks(s.Messages[m].Parts, func(_ int, text string) {
				lines(text, func(line string) {
					units, words = appendUnits(units[:0], line), appendWords(words[:0], line)
					for _, u := range units {
						seen[u.hash] = struct{}{}
					}
					for _, w := range words {
						if w.plain {
							seen[w.hash] = struct{}{}
						}
					}
				})
			})
		}
		if i == len(sorted)-1 || sorted[i+1].Source != s.Source {
			for h := range seen {
				b.count[h]++
			}
			clear(seen)
		}
	}
	return b
}

// others returns how many sources other than the named one have the unit or word h, which
// the named one has.
func (b *Background) others(h uint64, source string) int {
	if b == nil {
		return 0
	}
	n := int(b.count[h>>b.shift])
	if n > 0 && b.sources[source] {
		n--
	}
	return n
}

// rarity is 1 for what only the source has, 0 for what four others have too.
func (b *Background) rarity(h uint64, source string) float64 {
	return max(0, 1-float64(b.others(h, source))/4)
}

// idf weights what df of n messages have: 1 for a single one, 0 for all of them.
func idf(df, n int) float64 {
	if n < 1 {
		return 0
	}
	v := math.Log((1+float64(n))/(0.5+float64(df))) / math.Log((1+float64(n))/1.5)
	return min(1, max(0, v))
}

// names returns the names of the tools of s and of their parameters, as far as its calls
// and its definitions show: the agent has them from elsewhere.
func (s *Session) names() []string {
	seen := map[string]bool{}
	for _, t := range s.Tools {
		seen[t] = true
	}
	for i := range s.Messages {
		for _, p := range s.Messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				seen[c.Name] = true
				for _, k := range keys(c.Args) {
					seen[k] = true
				}
			}
		}
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

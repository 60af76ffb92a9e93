package score

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// KeepLast returns the newest tool groups of messages that fit in budget tokens by c. The texts of the
// oldest of them are cut to their ends. It is a baseline: a strategy should be above it. Messages must be
// measured.
func KeepLast(messages []core.Message, budget int, c core.Counter) []core.Message {
	start, left := len(messages), budget
	for _, g := range slices.Backward(core.Groups(messages)) {
		group := messages[g.Start:g.End]
		n := 0
		for i := range group {
			n += group[i].Tokens
		}
		if n > left {
			return append(shorten(group, left, c), messages[start:]...)
		}
		left -= n
		start = g.Start
	}
	return messages[start:]
}

// shorten returns group with the ends of its texts in budget tokens, or nil if the calls alone exceed it.
func shorten(group []core.Message, budget int, c core.Counter) []core.Message {
	for limit := 1 << 16; limit >= 64; limit = limit * 3 / 4 {
		out := make([]core.Message, len(group))
		n := 0
		for i, m := range group {
			m.Parts = tails(m.Parts, limit)
			m.Tokens = core.MessageTokens(c, m)
			n += m.Tokens
			out[i] = m
		}
		if n <= budget {
			return out
		}
	}
	return nil
}

// tails returns parts with no text of more than limit bytes.
func tails(parts []core.Part, limit int) []core.Part {
	out := make([]core.Part, len(parts))
	for i, p := range parts {
		switch t := p.(type) {
		case core.Text:
			if len(t) > limit {
				p = core.Text(strings.ToValidUTF8(string(t[len(t)-limit:]), ""))
			}
		case core.ToolResult:
			t.Content = tails(t.Content, limit)
			p = t
		case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
		}
		out[i] = p
	}
	return out
}

// RandomLines returns random lines of the prefix as one message of at most budget tokens by c. It is a
// baseline.
func (s *Scorer) RandomLines(budget int, seed uint64, c core.Counter) []core.Message {
	return fitted(budget, c, func(size int) []core.Message { return s.randomLines(size, seed) })
}

// fitted returns the result of choose in budget tokens. As choose only estimates the cost of lines, it is called
// again with a smaller size if the result is too large.
func fitted(budget int, c core.Counter, choose func(size int) []core.Message) []core.Message {
	size := budget
	for range 5 {
		view := choose(size)
		n := 0
		for i := range view {
			n += core.MessageTokens(c, view[i])
		}
		if n <= budget {
			return view
		}
		size = size * budget / n * 98 / 100
	}
	return nil
}

func (s *Scorer) randomLines(budget int, seed uint64) []core.Message {
	keep := make([]bool, len(s.prefix.lines))
	sizes := s.lineTokens()
	used := 0.0
	for _, at := range rand.New(rand.NewPCG(seed, 2)).Perm(len(keep)) { //nolint:gosec // no secret
		if used+sizes[at] <= float64(budget) {
			used += sizes[at]
			keep[at] = true
		}
	}
	return s.render(keep)
}

// lineTokens returns the tokens of the lines of the prefix, estimated by their bytes.
func (s *Scorer) lineTokens() []float64 {
	bytes := 0
	for i := range s.prefix.lines {
		bytes += len(s.prefix.lines[i].text) + 1
	}
	perByte := 0.0
	if bytes > 0 {
		perByte = min(1, float64(s.cut.Tokens)/float64(bytes))
	}
	sizes := make([]float64, len(s.prefix.lines))
	for i := range sizes {
		sizes[i] = float64(len(s.prefix.lines[i].text)+1) * perByte
	}
	return sizes
}

// render returns the kept lines as one message with the role user.
func (s *Scorer) render(keep []bool) []core.Message {
	var parts []core.Part
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, core.Text(text.String()))
			text.Reset()
		}
	}
	for i := range s.prefix.lines {
		l := &s.prefix.lines[i]
		if l.first || i > 0 && !keep[i-1] {
			flush()
		}
		if keep[i] {
			text.WriteString(l.text)
			text.WriteByte('\n')
		}
	}
	flush()
	return []core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: parts}}
}

// Oracle returns, as one message of at most budget tokens by c, the lines of the prefix with the most value for the
// panel. It is the upper bound, as it knows the future. It is greedy: it repeatedly takes the line, or the run of up
// to seven lines around one, that adds most to the panel per token.
func (s *Scorer) Oracle(budget int, c core.Counter) []core.Message {
	return fitted(budget, c, s.oracle)
}

func (s *Scorer) oracle(budget int) []core.Message {
	o := newOracle(s)
	used := 0.0
	for o.queue.Len() > 0 {
		c := o.queue[0]
		gain, size := o.value(c.span)
		if size == 0 || gain <= 0 || used+size > float64(budget) {
			heap.Pop(&o.queue)
			continue
		}
		if rate := gain / size; rate < c.rate-1e-12 {
			o.queue[0].rate = rate
			heap.Fix(&o.queue, 0)
			continue
		}
		heap.Pop(&o.queue)
		o.take(c.span)
		used += size
	}
	return s.render(o.keep)
}

type oracle struct {
	s      *Scorer
	sizes  []float64
	keep   []bool
	credit []float64
	words  []bool
	grams  []bool
	queue  spans

	perUnit, perWord, perGram float64
}

type ratedSpan struct {
	span core.Span
	rate float64 // an upper bound of value per token, mostly
}

// spans is a heap with the best first. It implements [heap.Interface].
type spans []ratedSpan //nolint:recvcheck // the interface demands both

func (q spans) Len() int           { return len(q) }
func (q spans) Less(i, j int) bool { return q[i].rate > q[j].rate }
func (q spans) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push adds x.
func (q *spans) Push(x any) { *q = append(*q, x.(ratedSpan)) } //nolint:errcheck,forcetypeassert // only this file pushes

// Pop removes the last.
func (q *spans) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newOracle(s *Scorer) *oracle {
	o := &oracle{s: s, keep: make([]bool, len(s.prefix.lines)), credit: make([]float64, len(s.units)), words: make([]bool, len(s.words)), grams: make([]bool, len(s.grams))}
	o.sizes = s.lineTokens()
	var units, words float64
	for i := range s.units {
		units += s.units[i].weight
	}
	for i := range s.words {
		words += s.words[i].weight
	}
	if units > 0 {
		o.perUnit = 1 / units
	}
	if len(s.words) >= fewestWords {
		o.perWord = 1 / words
	}
	if len(s.grams) >= fewestGrams {
		o.perGram = 1 / float64(len(s.grams))
	}
	lines := s.prefix.lines
	for i := range lines {
		if len(lines[i].units)+len(lines[i].words)+len(lines[i].grams) == 0 {
			continue
		}
		start, end := i, i+1
		o.add(start, end)
		for range 3 {
			if !lines[start].first {
				start--
			}
			if !lines[end-1].last {
				end++
			}
			if start != i || end != i+1 {
				o.add(start, end)
			}
		}
	}
	heap.Init(&o.queue)
	return o
}

func (o *oracle) add(start, end int) {
	span := core.Span{Start: start, End: end}
	if gain, size := o.value(span); gain > 0 {
		o.queue = append(o.queue, ratedSpan{span: span, rate: gain / size})
	}
}

// lineCredit returns the credit that line i gives its units if the lines of span are kept.
func (o *oracle) lineCredit(i int, span core.Span) float64 {
	kept := func(j int) bool { return j >= span.Start && j < span.End || o.keep[j] }
	c := creditLine
	l := &o.s.prefix.lines[i]
	if l.first || kept(i-1) {
		c += creditNeighbour
	}
	if l.last || kept(i+1) {
		c += creditNeighbour
	}
	return max(c, l.long)
}

// value returns how much the lines of span add to the panel, and their tokens.
func (o *oracle) value(span core.Span) (gain, size float64) {
	lines := o.s.prefix.lines
	// Kept lines next to the span gain a neighbour.
	for i := max(0, span.Start-1); i < min(len(lines), span.End+1); i++ {
		l := &lines[i]
		inside := i >= span.Start && i < span.End
		if !inside && !o.keep[i] {
			continue
		}
		if len(l.units) > 0 {
			c := o.lineCredit(i, span)
			for _, u := range l.units {
				gain += max(0, c-o.credit[u]) * o.s.units[u].weight * o.perUnit
			}
		}
		if o.keep[i] {
			continue
		}
		size += o.sizes[i]
		for _, g := range l.grams {
			if !o.grams[g] {
				gain += o.perGram
			}
		}
		for _, w := range l.words {
			if !o.words[w] {
				gain += o.s.words[w].weight * o.perWord
			}
		}
	}
	return gain, size
}

// take keeps the lines of span.
func (o *oracle) take(span core.Span) {
	lines := o.s.prefix.lines
	for i := span.Start; i < span.End; i++ {
		o.keep[i] = true
	}
	for i := max(0, span.Start-1); i < min(len(lines), span.End+1); i++ {
		if !o.keep[i] {
			continue
		}
		l := &lines[i]
		c := o.lineCredit(i, core.Span{})
		for _, u := range l.units {
			o.credit[u] = max(o.credit[u], c)
		}
		for _, w := range l.words {
			o.words[w] = true
		}
		for _, g := range l.grams {
			o.grams[g] = true
		}
	}
}

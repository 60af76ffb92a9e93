package score

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// KeepLast returns the newest tool groups of messages that fit in budget tokens by c. The texts of the
// oldest of them are cut to their ends. It is a baseline: a strategy should be above it. Messages must be
// measured.
func KeepLast(messages []core.Message, budget int, c core.Counter) []core.Message {
	start, left := len(messages), budget
	for _, g := range slices.Backward(core.Groups(messages)) {
		group := messages[g.Start:g.End]
		n := plain.Sum(group, func(x core.Message) int { return x.Tokens })
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
		n := plain.Sum(view, func(x core.Message) int { return core.MessageTokens(c, x) })
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
	bytes := plain.Sum(s.prefix.lines, func(x line) int { return len(x.text) + 1 })
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

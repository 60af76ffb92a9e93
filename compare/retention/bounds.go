package retention

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// KeepLast returns the newest whole tool groups of messages that have no more than budget
// tokens: the lower bound that every strategy should be above. Messages must be measured.
func KeepLast(messages []core.Message, budget int) []core.Message {
	groups := core.Groups(messages)
	start, used := len(messages), 0
	for _, g := range slices.Backward(groups) {
		n := 0
		for i := g.Start; i < g.End; i++ {
			n += messages[i].Tokens
		}
		if used+n > budget {
			break
		}
		used, start = used+n, g.Start
	}
	return messages[start:]
}

// RandomGroups returns tool groups of messages, chosen at random, that have no more than
// budget tokens.
func RandomGroups(messages []core.Message, budget int, seed uint64) []core.Message {
	groups := core.Groups(messages)
	keep := make([]bool, len(groups))
	used := 0
	for _, at := range rand.New(rand.NewPCG(seed, 1)).Perm(len(groups)) { //nolint:gosec // no secret
		n := 0
		for i := groups[at].Start; i < groups[at].End; i++ {
			n += messages[i].Tokens
		}
		if used+n <= budget {
			used, keep[at] = used+n, true
		}
	}
	var out []core.Message
	for at, g := range groups {
		if keep[at] {
			out = append(out, messages[g.Start:g.End]...)
		}
	}
	return out
}

// RandomLines returns lines of the prefix, chosen at random, as one message of about
// budget tokens.
func (s *Scorer) RandomLines(budget int, seed uint64) []core.Message {
	keep := make([]bool, len(s.prefix.lines))
	sizes, _ := s.lineTokens()
	used := 0.0
	for _, at := range rand.New(rand.NewPCG(seed, 2)).Perm(len(keep)) { //nolint:gosec // no secret
		if used+sizes[at] <= float64(budget) {
			used += sizes[at]
			keep[at] = true
		}
	}
	return s.render(keep)
}

// lineTokens returns what the lines of the prefix cost, estimated by their bytes.
func (s *Scorer) lineTokens() (sizes []float64, total float64) {
	bytes := 0
	for i := range s.prefix.lines {
		bytes += len(s.prefix.lines[i].text) + 1
	}
	perByte := 0.0
	if bytes > 0 {
		perByte = min(1, float64(s.cut.Tokens)/float64(bytes))
	}
	sizes = make([]float64, len(s.prefix.lines))
	for i := range sizes {
		sizes[i] = float64(len(s.prefix.lines[i].text)+1) * perByte
		total += sizes[i]
	}
	return sizes, total
}

// render returns the lines to keep as one message of the user.
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

package value

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// Settings of habits. With 0.6 to 0.85 of the tokens as the past, and a prior of 1 to 20, the choice is as good or
// better on sessions and projects that the weights were not fitted to: docs/decisions/0017-line-selection.md.
const (
	habitTokens = 150_000 // tokens at the end of the conversation that are used
	habitKnown  = 0.75    // share of them that is the past; the rest is the future
	habitAfter  = 80      // most messages of the future
	habitPrior  = 3.0     // uses that weigh as much as the model's estimate for a group
	minSide     = 4       // least messages of past and future
)

// The families of estimates.
const (
	ofNames = iota
	ofWords
	ofPhrases
	estimates
)

// habitGroups is the number of groups of passages, one for each kind and family of tools.
const habitGroups = kinds * familyCount

// habits correct the model's estimates by the conversation's own past: for each group of passages, the actual use by
// the user and the agent divided by the expected use. One agent reads files again before it changes them, another
// does not; one project quotes the output of commands, another never does.
type habits [estimates][habitGroups]float32

// habits compares the model's estimates for an earlier part of messages with the use in the messages after it. It is
// nil if either part is too short. Messages must be measured. The cost is bounded.
func (m *Model) habits(messages []core.Message) *habits {
	before, after := habitSides(messages)
	if len(before) < minSide || len(after) < minSide {
		return nil
	}
	from := new(dialog.Reader)
	c := read(before, from.Read(before), false)
	e := m.Estimate(c)
	terms, phrases := c.reused(m, &Sequel{Before: before, After: after}, from)
	var want, got [estimates][habitGroups]float64
	for n := range c.terms {
		t := &c.terms[n]
		if t.messages == 0 {
			continue
		}
		f, v := ofNames, e.Names[n]
		if t.class == classWord {
			f, v = ofWords, e.Words[n]
		}
		g := c.habitGroup(t.lastLine)
		want[f][g] += float64(v)
		if terms[n] > 0 {
			got[f][g] += float64(terms[n]) * c.weight(n, m.rarity(c.termAt.keys[n]))
		}
	}
	for n := range c.phrases {
		if p := &c.phrases[n]; p.messages <= phraseMessages {
			g := c.habitGroup(p.lastLine)
			want[ofPhrases][g] += float64(e.Phrases[n])
			got[ofPhrases][g] += float64(phrases[n])
		}
	}
	h := &habits{}
	for f := range h {
		prior := habitPrior
		if f == ofPhrases {
			prior *= 3 // phrases come by the dozen
		}
		allWant, allGot := prior, prior
		for g := range want[f] {
			allWant += want[f][g]
			allGot += got[f][g]
		}
		for g := range h[f] {
			h[f][g] = float32((got[f][g]*allWant/allGot + prior) / (want[f][g] + prior))
		}
	}
	return h
}

// habitSides divides the end of messages into past and future.
func habitSides(messages []core.Message) (before, after []core.Message) {
	from, all := len(messages), 0
	for from > 0 && all < habitTokens {
		from--
		all += messages[from].Tokens
	}
	messages = messages[from:]
	at, known := 0, 0
	for at < len(messages) && (float64(known) < habitKnown*float64(all) || messages[at].Role != core.RoleAssistant) {
		known += messages[at].Tokens
		at++
	}
	return messages[:at:at], messages[at:min(len(messages), at+habitAfter)]
}

func (c *Conversation) habitGroup(line int32) int {
	p := &c.Passages[c.Lines[line].Passage]
	return int(p.Kind)*familyCount + int(p.family)
}

// follow corrects e, the estimate for c, by h; nil changes nothing.
func (e *Estimate) follow(h *habits, c *Conversation) {
	if h == nil {
		return
	}
	follow := func(v []float32, f int, lastLine func(n int) int32) (sum float64) {
		for n := range v {
			if v[n] > 0 {
				v[n] *= h[f][c.habitGroup(lastLine(n))]
				sum += float64(v[n])
			}
		}
		return sum
	}
	lineOfTerm := func(n int) int32 { return c.terms[n].lastLine }
	e.nameSum = follow(e.Names, ofNames, lineOfTerm)
	e.wordSum = follow(e.Words, ofWords, lineOfTerm)
	e.phraseSum = follow(e.Phrases, ofPhrases, func(n int) int32 { return c.phrases[n].lastLine })
}

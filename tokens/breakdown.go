package tokens

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// A Kind is a use of tokens.
type Kind string

// The kinds. The texts of a message, and its framing, are of the kind of its role.
const (
	KindSystem     Kind = "system"
	KindUser       Kind = "user"
	KindAssistant  Kind = "assistant"
	KindReasoning  Kind = "reasoning"
	KindToolCall   Kind = "tool_call"
	KindToolResult Kind = "tool_result"
	KindImage      Kind = "image" // in a message or in a tool result
	// KindSummary is inserted by a condensation, in any role: summaries, extracts and stubs.
	KindSummary Kind = "summary"

	// KindInjected and the two after it are written into the texts of users by programs. No [Counter] returns them,
	// because only a reader of texts can tell them apart; reports have them. These are reminders, commands and
	// notices.
	KindInjected Kind = "injected"
	// KindEnvironment is the state of the surroundings.
	KindEnvironment Kind = "environment"
	// KindProjectRules are instructions as in AGENTS.md.
	KindProjectRules Kind = "project_rules"
)

var kinds = [...]Kind{
	KindSystem, KindUser, KindAssistant, KindReasoning, KindToolCall, KindToolResult, KindImage, KindSummary,
	KindInjected, KindEnvironment, KindProjectRules,
}

// Kinds returns all kinds in the order in which a report should list them.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// Breakdown returns the tokens of messages by kind. The sum over all kinds is the sum of
// [core.MessageTokens]. Kinds without tokens are absent.
func (c *Counter) Breakdown(messages ...core.Message) map[Kind]int {
	var by amounts
	for i := range messages {
		c.breakDown(&by, &messages[i])
	}
	return by.byKind()
}

// BreakdownMeasured is [Counter.Breakdown] for messages that c has measured: their Tokens are set. It counts fewer
// texts, and for a message of one kind none: the kind with the most bytes receives the rest of the message's tokens.
func (c *Counter) BreakdownMeasured(messages ...core.Message) map[Kind]int {
	var by amounts
	for i := range messages {
		m := &messages[i]
		kind := kindOf(m)
		var bytes, counted amounts
		bytes.each(kind, m.Parts, func(_ int, p core.Part) int { return core.ContentBytes(p) })
		most := bytes.most(kind)
		counted.each(kind, m.Parts, func(k int, p core.Part) int {
			if k == most {
				return 0
			}
			return c.Count(p)
		})
		counted[kind] += core.FramingTokens
		rest := m.Tokens - counted.sum()
		if rest < 0 { // measured by another counter
			c.breakDown(&by, m)
			continue
		}
		counted[most] += rest
		by.add(&counted)
	}
	return by.byKind()
}

// breakDown adds the tokens of m.
func (c *Counter) breakDown(by *amounts, m *core.Message) {
	kind := kindOf(m)
	by[kind] += core.FramingTokens
	by.each(kind, m.Parts, func(_ int, p core.Part) int { return c.Count(p) })
}

// amounts has a number for each kind, by its index.
type amounts [atSummary + 1]int

// The indices.
const (
	atSystem = iota
	atUser
	atAssistant
	atReasoning
	atToolCall
	atToolResult
	atImage
	atSummary
)

// each adds amount(p) for each part p, by kind. For a tool result, amount is called for its
// content instead. Parts without a kind of their own are of the given one.
func (a *amounts) each(kind int, parts []core.Part, amount func(kind int, p core.Part) int) {
	for _, p := range parts {
		k := kind
		switch p := p.(type) {
		case core.ToolResult:
			a.each(atToolResult, p.Content, amount)
			continue
		case core.ToolCall:
			k = atToolCall
		case core.Image:
			k = atImage
		case core.Reasoning:
			k = atReasoning
		case core.Text, core.Opaque:
		}
		a[k] += amount(k, p)
	}
}

// most returns the kind with the largest amount, the given one if there is none.
func (a *amounts) most(kind int) int {
	for k := range a {
		if a[k] > a[kind] {
			kind = k
		}
	}
	return kind
}

func (a *amounts) sum() int {
	n := 0
	for _, m := range a {
		n += m
	}
	return n
}

func (a *amounts) add(b *amounts) {
	for k := range a {
		a[k] += b[k]
	}
}

func (a *amounts) byKind() map[Kind]int {
	by := make(map[Kind]int)
	for k, n := range a {
		if n > 0 {
			by[kinds[k]] = n
		}
	}
	return by
}

func kindOf(m *core.Message) int {
	if m.Kind != core.KindOriginal {
		return atSummary
	}
	switch m.Role {
	case core.RoleSystem:
		return atSystem
	case core.RoleAssistant:
		return atAssistant
	case core.RoleTool:
		return atToolResult
	case core.RoleUser:
	}
	return atUser // an unknown role counts as the user
}

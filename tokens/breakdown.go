package tokens

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// A Kind says what tokens are spent on.
type Kind string

// The kinds. What a message says in texts, and its framing, is of the kind of its role.
const (
	KindSystem     Kind = "system"
	KindUser       Kind = "user"
	KindAssistant  Kind = "assistant"
	KindReasoning  Kind = "reasoning"
	KindToolCall   Kind = "tool_call"
	KindToolResult Kind = "tool_result"
	KindImage      Kind = "image" // in a message or in a tool result
)

var kinds = []Kind{KindSystem, KindUser, KindAssistant, KindReasoning, KindToolCall, KindToolResult, KindImage}

// Kinds returns all kinds in the order in which a report should list them.
func Kinds() []Kind { return slices.Clone(kinds) }

// Breakdown returns the tokens of messages by kind. The sum over all kinds is the sum of
// [core.MessageTokens]. Kinds that have none are absent.
func (c *Counter) Breakdown(messages ...core.Message) map[Kind]int {
	by := make(map[Kind]int)
	for _, m := range messages {
		kind := kindOf(m.Role)
		by[kind] += core.FramingTokens
		c.book(by, kind, m.Parts)
	}
	return by
}

// book adds the tokens of parts; those without a kind of their own are of the given one.
func (c *Counter) book(by map[Kind]int, kind Kind, parts []core.Part) {
	for _, p := range parts {
		k := kind
		switch p := p.(type) {
		case core.ToolResult:
			c.book(by, KindToolResult, p.Content)
			continue
		case core.ToolCall:
			k = KindToolCall
		case core.Image:
			k = KindImage
		case core.Reasoning:
			k = KindReasoning
		case core.Text, core.Opaque:
		}
		if n := c.Count(p); n > 0 {
			by[k] += n
		}
	}
}

func kindOf(r core.Role) Kind {
	switch r {
	case core.RoleSystem:
		return KindSystem
	case core.RoleAssistant:
		return KindAssistant
	case core.RoleTool:
		return KindToolResult
	case core.RoleUser:
	}
	return KindUser // a role that is none of ours is some user's
}

package core

import (
	"slices"
	"strings"
)

// A FixedGroup is a tool group with the part of it that cannot be removed.
type FixedGroup struct {
	Span
	Tokens int
	// Pinned means that the group holds a system or protected message: it must be kept
	// verbatim.
	Pinned bool
	// Open means that the group is part of an unfinished turn: it may be cut but not hidden.
	// Least is its size when cut as short as possible.
	Open  bool
	Least int
}

// FixedGroups returns the groups of messages (see [Groups]) with the fixed part of each. System and protected
// messages are pinned. Open are a request that has no answer yet, and everything from the first tool call whose
// result is still to come: not even a note may follow such a call. The messages must be measured by c. The cost is
// linear.
func FixedGroups(c Counter, messages []Message) []FixedGroup {
	spans := Groups(messages)
	open := openTurn(messages)
	groups := make([]FixedGroup, len(spans))
	for k, span := range spans {
		in := messages[span.Start:span.End]
		g := &groups[k]
		*g = FixedGroup{Span: span, Tokens: TotalTokens(in), Pinned: anyPinned(in)}
		if span.End > open && !g.Pinned {
			_, least := Cut(c, in, 0)
			g.Open, g.Least = true, min(least, g.Tokens)
		}
	}
	return groups
}

// leastNote is the room, in tokens, for a note about removed content. It also prevents replacing a handful of short
// messages by a note.
const leastNote = 64

// FixedTokens returns the size below which a conversation cannot be reduced: pinned groups, open groups cut as short
// as possible (see [FixedGroups]), and a note about the rest. The messages must be measured by c. The cost is linear.
func FixedTokens(c Counter, messages []Message) int {
	all := TotalTokens(messages)
	if openTurn(messages) == len(messages) && !anyPinned(messages) {
		return min(all, leastNote)
	}
	fixed := leastNote
	for _, g := range FixedGroups(c, messages) {
		switch {
		case g.Pinned:
			fixed += g.Tokens
		case g.Open:
			fixed += g.Least
		}
	}
	return min(all, fixed)
}

// TotalTokens returns the sum of the messages' Tokens.
func TotalTokens(messages []Message) int {
	n := 0
	for i := range messages {
		n += messages[i].Tokens
	}
	return n
}

func anyPinned(messages []Message) bool {
	for i := range messages {
		if m := &messages[i]; m.Protected || m.Role == RoleSystem {
			return true
		}
	}
	return false
}

// openTurn returns the index of the first message of an unfinished turn; the number of
// messages if there is none.
func openTurn(messages []Message) int {
	start := len(messages)
	for i := range slices.Backward(messages) {
		if m := &messages[i]; m.Role != RoleSystem {
			if asks(m) {
				start = i
			}
			break
		}
	}
	if pending := Pending(messages); len(pending) > 0 {
		start = min(start, pending[0])
	}
	return start
}

// asks reports whether m holds content of the user, not only tool results.
func asks(m *Message) bool {
	if m.Role != RoleUser || m.Kind != KindOriginal {
		return false
	}
	return slices.ContainsFunc(m.Parts, func(p Part) bool {
		switch p := p.(type) {
		case Text:
			return strings.TrimSpace(string(p)) != ""
		case Image, Opaque:
			return true
		case ToolCall, ToolResult, Reasoning:
		}
		return false
	})
}

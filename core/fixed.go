package core

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A FixedGroup is a tool group with the part of it that cannot be removed.
type FixedGroup struct {
	Span
	Tokens int
	// Pinned means that the group is kept verbatim: its messages are system or protected messages.
	Pinned bool
	// Open means that the group may be cut but not hidden: it is part of an unfinished turn, holds the user's newest
	// request, or a pinned message next to others. Least is its size when cut as short as possible.
	Open  bool
	Least int

	holds []hold // of its messages
}

// A hold says what of a message cannot be cut.
type hold uint8

const (
	holdNothing hold = iota
	holdWords        // texts, images and blocks of its own, but not the content of results
	holdAll
)

// Cut is [Cut] for the group, one of those of req. What is fixed in it stays whole.
func (g *FixedGroup) Cut(req *Request, room int) (out []Message, tokens int) {
	return cutAround(req.Counter, req.Messages[g.Start:g.End], g.holds, room)
}

// FixedGroups returns the groups of the messages (see [Groups]) with the fixed part of each. System and protected
// messages are pinned. Open is everything from the first tool call whose result is still to come: not even a note may
// follow such a call. Requests of the user without an answer are held whole, the newest first, as long as they fit
// Budget.Limit next to all else that is fixed; the newest one stays, cut, even if it does not. The messages must be measured by
// req.Counter. The cost is linear.
func FixedGroups(req *Request) []FixedGroup {
	messages := req.Messages
	spans := Groups(messages)
	open := openTurn(messages)
	groups, holds := make([]FixedGroup, len(spans)), make([]hold, len(messages))
	left := req.Budget.Limit - req.Budget.Overhead - minNote
	for k, span := range spans {
		g := &groups[k]
		*g = FixedGroup{Span: span, Tokens: TotalTokens(messages[span.Start:span.End]), holds: holds[span.Start:span.End]}
		pinned := 0
		for i := span.Start; i < span.End; i++ {
			if anyPinned(messages[i : i+1]) {
				holds[i] = holdAll
				pinned++
			}
		}
		switch {
		case pinned == span.End-span.Start:
			g.Pinned = true
			left -= g.Tokens
		case pinned > 0 || span.End > open:
			g.open(req)
			left -= g.Least
		}
	}
	asked := req.Unanswered()
	k := len(groups)
	for n, i := range slices.Backward(asked) {
		if k < len(groups) && groups[k].Start <= i {
			continue // another message of this group is held already
		}
		k--
		for groups[k].Start > i {
			k--
		}
		if groups[k].Pinned {
			continue
		}
		tokens, ok := groups[k].HoldWords(req, left)
		if !ok {
			if n == len(asked)-1 && !groups[k].Open {
				groups[k].open(req)
			}
			break
		}
		left -= tokens
	}
	return groups
}

// Words returns how many tokens [FixedGroup.HoldWords] adds.
func (g *FixedGroup) Words(req *Request) int {
	held := g.held(req)
	return held.Least - g.Least
}

// HoldWords makes what the user typed and showed in the group part of its least size, if that adds at most room tokens
// to it. It returns how many it adds; for a group that might be hidden, that is all of its least size. The group stays then.
func (g *FixedGroup) HoldWords(req *Request, room int) (tokens int, ok bool) {
	held := g.held(req)
	if tokens = held.Least - g.Least; tokens > room {
		return 0, false
	}
	*g = held
	return tokens, true
}

func (g *FixedGroup) held(req *Request) FixedGroup {
	held := *g
	held.holds = slices.Clone(g.holds)
	for i := range held.holds {
		if held.holds[i] == holdNothing && req.FromUser(&req.Messages[g.Start+i]) {
			held.holds[i] = holdWords
		}
	}
	held.open(req)
	return held
}

// open makes g stay, and computes its least size.
func (g *FixedGroup) open(req *Request) {
	_, least := g.Cut(req, 0)
	g.Open, g.Least = true, min(least, g.Tokens)
}

// minNote is the room, in tokens, for a note about removed content. It also prevents replacing a handful of short
// messages by a note.
const minNote = 64

// FixedTokens returns the size below which the messages of req cannot be reduced: pinned groups, open groups cut as short
// as possible (see [FixedGroups]), and a note about the rest. The cost is linear.
func FixedTokens(req *Request) int {
	all := TotalTokens(req.Messages)
	if openTurn(req.Messages) == len(req.Messages) && !anyPinned(req.Messages) && len(req.Unanswered()) == 0 {
		return min(all, minNote)
	}
	fixed := minNote
	for _, g := range FixedGroups(req) {
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
	return slices.ContainsFunc(messages, func(m Message) bool { return m.Protected || m.Role == RoleSystem })
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

// Unanswered returns the indices, ascending, of the messages that hold something of the user (see [Request.FromUser]) and that
// no message of the assistant follows. Together they are the user's newest request, which no provider may hide or change.
func (r *Request) Unanswered() []int {
	var at []int
	for i := range slices.Backward(r.Messages) {
		m := &r.Messages[i]
		if m.Role == RoleAssistant && m.Kind == KindOriginal {
			break
		}
		if r.FromUser(m) {
			at = append(at, i)
		}
	}
	slices.Reverse(at)
	return at
}

// KeepRequest returns messages, a result for req, with the user's newest request as the rule keep-request wants it: what was hidden
// is there again, with the calls and results that belong to it cut as short as possible, and its words and pictures are whole.
func KeepRequest(req *Request, messages []Message) []Message {
	asked := req.Unanswered()
	if len(asked) == 0 {
		return messages
	}
	at := plain.Index(messages, func(x Message) string { return x.ID })
	newest, out, next := asked[len(asked)-1], slices.Clone(messages), len(messages)
	for _, g := range slices.Backward(FixedGroups(req)) {
		if g.End <= asked[0] {
			break
		}
		first := -1
		for i := g.End - 1; i >= g.Start; i-- {
			j, ok := at[req.Messages[i].ID]
			if !ok {
				continue
			}
			first = j
			if o, m := &req.Messages[i], &out[j]; (g.holds[i-g.Start] == holdWords || i == newest) && !req.says(o, m) {
				m.Parts, m.Source = withResults(o.Parts, m.Parts), nil
				m.Tokens = MessageTokens(req.Counter, *m)
			}
		}
		switch {
		case first >= 0:
			next = first
		case g.Open && slices.Contains(g.holds, holdWords):
			back, _ := g.Cut(req, 0)
			out = slices.Insert(out, next, back...)
		case g.Open:
			out = slices.Insert(out, next, req.Messages[g.Start:g.End]...)
		}
	}
	return out
}

// withResults returns parts with the tool results of another version of the message.
func withResults(parts, other []Part) []Part {
	now := map[string]Part{}
	for _, p := range other {
		if r, ok := p.(ToolResult); ok {
			now[r.CallID] = r
		}
	}
	out := slices.Clone(parts)
	for i, p := range out {
		if r, ok := p.(ToolResult); ok && now[r.CallID] != nil {
			out[i] = now[r.CallID]
		}
	}
	return out
}

// FromUser reports whether the user typed or showed something in m: it does not only hold tool results, and what the agent's
// program put there.
func (r *Request) FromUser(m *Message) bool {
	return asks(m) && (r.Typed == nil && !m.Program || r.Typed != nil && len(r.Typed(m)) > 0 || slices.ContainsFunc(m.Parts, isMedia))
}

// asks reports whether m holds content of the user, not only tool results.
func asks(m *Message) bool {
	return m.Role == RoleUser && m.Kind == KindOriginal && slices.ContainsFunc(m.Parts, func(p Part) bool {
		t, ok := p.(Text)
		return ok && strings.TrimSpace(string(t)) != "" || isMedia(p)
	})
}

// isMedia reports whether p is content of a message that is no text.
func isMedia(p Part) bool { return is[Image](p) || is[Opaque](p) }

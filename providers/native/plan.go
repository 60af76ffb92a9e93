package native

import (
	"fmt"
	"math"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/size"
)

// minGain is, in tokens, the least size of movable messages that is worth a summary, and the least room for
// one. Nothing useful is said in less.
const minGain = 64

// A plan says which messages of a request stay and which are summarized. It is made before
// anything is spent.
type plan struct {
	req    *core.Request
	groups []group
	before int // tokens of all messages
	room   int // tokens that the messages may have
	text   int // tokens for the text of each summary
	// sections holds, for every summary, the indices of the messages that it replaces.
	sections [][]int
	lost     int // tokens of the user's words that have no room next to the summary
}

// A group is a run of messages that stay or go together.
type group struct {
	core.Span
	tokens int
	pinned bool // holds a protected or a system message
	open   bool // of a turn whose results are still to come
	asks   bool // holds words of the user that have no answer yet
	keep   bool
	recent bool // stays because it is recent; the first to go if there is no room
}

func (g *group) messages() int { return g.End - g.Start }

// newPlan returns nil if there is nothing to gain, or nothing new to summarize in a
// conversation within its limit. The error says that there is no room for a summary at all.
func newPlan(req *core.Request, c *settings) (*plan, error) {
	p := &plan{req: req}
	pending := core.Pending(req.Messages)
	for _, span := range core.Groups(req.Messages) {
		g := group{Span: span, open: len(pending) > 0 && span.End > pending[0]}
		for i := span.Start; i < span.End; i++ {
			m := &req.Messages[i]
			g.tokens += m.Tokens
			g.pinned = g.pinned || m.Protected || m.Role == core.RoleSystem
		}
		g.keep = g.pinned || g.open
		p.before += g.tokens
		p.groups = append(p.groups, g)
	}
	asked := p.keepRequest()
	floor := p.kept()
	movable := p.before - floor
	switch {
	case movable < minGain,
		req.Tokens() <= req.Budget.Target && req.Trigger != core.TriggerManual,
		req.Tokens() <= req.Budget.Limit && p.settled(c):
		return nil, nil
	}
	p.room = req.Budget.Room()
	if asked > 0 && floor+max(minGain, min(c.MaxOutput, movable, p.room)/8) > p.room || floor+minGain > p.room {
		// Messages that must stay may exceed the target, but not the limit.
		p.room = req.Budget.Limit - req.Budget.Overhead
	}
	if floor+minGain > p.room {
		why := ""
		if asked > 0 {
			why = fmt.Sprintf(", %s of them the user's request, which has no answer yet", size.Group(asked))
		}
		return nil, fmt.Errorf("no room for a summary: %s tokens of messages are allowed, and %s must stay as they are%s", size.Group(max(p.room, 0)), size.Group(floor), why)
	}
	free := min(p.room-floor, movable-1)
	p.keepFirst(c.KeepFirst, free/4)
	p.keepUnread(free / 4)
	text := min(c.MaxOutput, free/2)
	if c.sectionMessages > 0 {
		p.keepSummaries(free / 4)
		text = free / 4 // of all sections; the rest is for recent messages
	}
	// The user's words come before recent messages, which they may be among.
	p.keepRecent(c, free-text-min(p.wordsTokens(), wordsBudget(req, c)))
	p.cut(c.sectionMessages)
	if len(p.sections) == 0 {
		return nil, nil
	}
	p.text = max(min(c.MaxOutput, text/len(p.sections)), min(minGain, c.MaxOutput))
	return p, nil
}

// settled reports whether a summary of the conversation would take up nothing but summaries, and messages that
// the settings keep word for word as long as there is room. It would only lose a part of the last one. The
// target is not looked at: for a user who asks by hand it is always below the present size.
func (p *plan) settled(c *settings) bool {
	wanted := plan{req: p.req, groups: slices.Clone(p.groups)}
	wanted.keepFirst(c.KeepFirst, math.MaxInt)
	wanted.keepUnread(math.MaxInt)
	wanted.keepRecent(c, math.MaxInt)
	summaries := false
	for i := range wanted.groups {
		g := &wanted.groups[i]
		for j := g.Start; j < g.End; j++ {
			m := &p.req.Messages[j]
			if c.said(m) && !g.keep {
				return false
			}
			summaries = summaries || summary(m) && !g.pinned
		}
	}
	return summaries
}

// summary reports whether m begins with a summary. Later words of the user may be in the same message, in
// formats that take turns.
func summary(m *core.Message) bool { return m.Kind != core.KindOriginal || dialog.HoldsInserted(m) }

// said reports whether m is part of the conversation, and not inserted by a condensation.
func (c *settings) said(m *core.Message) bool {
	switch {
	case dialog.AllInserted(m):
		return false
	case m.Role != core.RoleAssistant || c.acknowledgement == "" || len(m.Parts) != 1:
		return true
	}
	return m.Parts[0] != core.Text(c.acknowledgement) // from a format that records no kinds
}

// keepFirst keeps the groups of the first n messages while they are small compared with the room. A summary at
// the beginning was not the first message.
func (p *plan) keepFirst(n, allowed int) {
	for i := range p.groups {
		g := &p.groups[i]
		if g.pinned {
			continue
		}
		if allowed -= g.tokens; n <= 0 || allowed < 0 || summary(&p.req.Messages[g.Start]) {
			return
		}
		g.keep = true
		n -= g.messages()
	}
}

// keepRequest keeps the user's words at the end that have no answer yet, whatever their size, with the results of
// tools in the same group, and returns their tokens.
func (p *plan) keepRequest() (tokens int) {
	asked := p.req.Unanswered()
	for i := range p.groups {
		g, before := &p.groups[i], len(asked)
		for len(asked) > 0 && asked[0] < g.End {
			asked = asked[1:]
		}
		if !g.keep && len(asked) < before {
			g.keep, g.asks = true, true
			tokens += g.tokens
		}
	}
	return tokens
}

// keepUnread keeps other messages after the last answer, such as results that an agent sends as text.
func (p *plan) keepUnread(allowed int) {
	for i := len(p.groups) - 1; i >= 0; i-- {
		g := &p.groups[i]
		if g.keep {
			continue
		}
		m := &p.req.Messages[g.Start]
		if allowed -= g.tokens; allowed < 0 || g.messages() > 1 || !userTurn(m) {
			return
		}
		g.keep = true
	}
}

// keepSummaries keeps the summaries of earlier sections while they are small compared with the
// room; otherwise they are summarized again.
func (p *plan) keepSummaries(allowed int) {
	for i := range p.groups {
		if g := &p.groups[i]; section(&p.req.Messages[g.Start]) {
			allowed -= g.tokens
		}
	}
	for i := range p.groups {
		if g := &p.groups[i]; allowed >= 0 && section(&p.req.Messages[g.Start]) {
			g.keep = true
		}
	}
}

// section reports whether m is a summary, and not the mark of a truncation.
func section(m *core.Message) bool { return m.Kind != core.KindMarker && dialog.AllInserted(m) }

// userTurn reports whether m has words of the user, not the result of a tool.
func userTurn(m *core.Message) bool {
	return m.Role == core.RoleUser && m.Kind == core.KindOriginal && !m.Blank() &&
		!slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
}

// keepRecent keeps the newest groups within the limits of the settings and within room,
// which is left by fixed tokens and a summary.
func (p *plan) keepRecent(c *settings, room int) {
	if c.RecentMessages == 0 && c.RecentShare == 0 {
		return
	}
	limit := room
	for i := range p.groups {
		if g := &p.groups[i]; g.keep && !g.pinned && !g.open && !g.asks {
			room -= g.tokens
		}
	}
	messages := math.MaxInt
	if c.RecentMessages > 0 {
		messages = c.RecentMessages
	}
	if c.RecentShare > 0 {
		limit = min(limit, int(c.RecentShare*float64(p.req.Budget.Window)))
	}
	start, seen, tokens := len(p.groups), 0, 0
	for i := len(p.groups) - 1; i >= 0; i-- {
		g := &p.groups[i]
		if !g.keep {
			if room -= g.tokens; room < 0 || seen >= messages || tokens+g.tokens > limit {
				break
			}
		}
		seen += g.messages()
		if !g.pinned && !g.asks {
			tokens += g.tokens
		}
		start = i
	}
	if c.snapToUser {
		start = p.snap(start)
	}
	for i := start; i < len(p.groups); i++ {
		if g := &p.groups[i]; !g.keep {
			g.keep, g.recent = true, true
		}
	}
}

// snap returns the first group from start on that begins with a turn of the user; start
// itself if there is none, because a long chain of calls has no other place to cut.
func (p *plan) snap(start int) int {
	return start + max(0, slices.IndexFunc(p.groups[start:], func(g group) bool { return userTurn(&p.req.Messages[g.Start]) }))
}

// cut divides the other messages into sections of at least so many messages; one section if every is 0.
func (p *plan) cut(every int) {
	var section []int
	for i := range p.groups {
		g := &p.groups[i]
		if g.keep {
			continue
		}
		for j := g.Start; j < g.End; j++ {
			section = append(section, j)
		}
		if every > 0 && len(section) >= every {
			p.sections = append(p.sections, section)
			section = nil
		}
	}
	switch last := len(p.sections) - 1; {
	case len(section) == 0:
	case last >= 0 && len(section) < every/2:
		p.sections[last] = append(p.sections[last], section...) // too little for one of its own
	default:
		p.sections = append(p.sections, section)
	}
}

// hidden calls yield for every message that does not stay.
func (p *plan) hidden(yield func(i int, m *core.Message)) {
	for k := range p.groups {
		g := &p.groups[k]
		for i := g.Start; i < g.End && !g.keep; i++ {
			yield(i, &p.req.Messages[i])
		}
	}
}

// kept returns the tokens of the groups that stay.
func (p *plan) kept() int {
	n := 0
	for i := range p.groups {
		if p.groups[i].keep {
			n += p.groups[i].tokens
		}
	}
	return n
}

// dropRecent gives up the oldest group that stays only because it is recent, and returns
// the number of its messages; 0 if there is none.
func (p *plan) dropRecent() int {
	for i := range p.groups {
		if g := &p.groups[i]; g.keep && g.recent {
			g.keep, g.recent = false, false
			last := len(p.sections) - 1
			for j := g.Start; j < g.End; j++ {
				p.sections[last] = append(p.sections[last], j)
			}
			slices.Sort(p.sections[last])
			return g.messages()
		}
	}
	return 0
}

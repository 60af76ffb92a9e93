package apimessage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
)

// A link is a call, and where it went.
type link struct {
	id       string // on the wire
	turn     int
	answered bool
}

// pair finds the call that each result answers, by the rule of [core.Groups], and gives
// every call an ID that the wire accepts.
func (c *converter) pair(view []core.Message) {
	open := map[string][]int{}
	taken := map[string]int{}
	for i := range view {
		for _, p := range view[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if view[i].Role != core.RoleAssistant {
					continue // no other role can call
				}
				id := c.legalID(p.ID, len(c.calls)+1, taken)
				if id != p.ID {
					c.warn(view[i].ID, "the id of a tool call was changed to one that is valid and unique")
				}
				open[p.ID] = append(open[p.ID], len(c.calls))
				c.calls = append(c.calls, link{id: id})
			case core.ToolResult:
				answer := -1
				if calls := open[p.CallID]; len(calls) > 0 {
					answer, open[p.CallID] = calls[0], calls[1:]
				}
				c.answers = append(c.answers, answer)
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
}

// legalID returns id with a unique replacement for characters that the API does not accept.
func (c *converter) legalID(id string, n int, taken map[string]int) string {
	base := legalName(id, c.api.MaxID)
	if base == "" {
		base = fmt.Sprintf("call_%d", n)
	}
	legal := base
	for taken[legal] > 0 {
		taken[base]++
		suffix := fmt.Sprintf("_%d", taken[base])
		legal = base + suffix
		if c.api.MaxID > 0 && len(legal) > c.api.MaxID {
			legal = base[:c.api.MaxID-len(suffix)] + suffix
		}
	}
	taken[legal] = 1
	return legal
}

// legalName returns s in the characters that both vendors allow in names and IDs, cut
// at limit bytes unless that is zero.
func legalName(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	if limit > 0 && len(s) > limit {
		s = s[:limit]
	}
	return s
}

// call adds a call.
func (c *converter) call(role core.Role, p core.ToolCall) {
	if role != core.RoleAssistant {
		c.warn(c.current, "a tool call in a message that is not the assistant's became text")
		c.say(role, fmt.Sprintf("[call of tool %s: %s]", p.Name, p.Args))
		return
	}
	n := c.met // pair met the calls in this order too
	c.met++
	p.ID = c.calls[n].id
	name := cmp.Or(legalName(p.Name, c.api.MaxName), "unknown")
	if name != p.Name {
		c.warn(c.current, "the name of tool %q was changed to %q, which is valid", p.Name, name)
		p.Name = name
	}
	switch {
	case strings.TrimSpace(p.Args) == "":
		p.Args = "{}"
	case c.api.objects:
		object := string(Args(p.Args))
		if object != p.Args {
			c.warn(c.current, "arguments that are no object were wrapped in one")
		}
		p.Args = rawjson.Clean(object)
	}
	c.put(role, p)
	at := len(c.turns) - 1
	c.calls[n].turn = at
	c.turns[at].calls = append(c.turns[at].calls, n)
}

// result attaches a result to the turn with its call.
func (c *converter) result(role core.Role, p core.ToolResult) {
	n := c.answers[c.results]
	c.results++
	if n < 0 {
		c.warn(c.current, "a tool result without a call became text")
		c.say(role, "[result of a tool call that is not shown here]")
		for _, q := range p.Content {
			c.plain(role, q)
		}
		return
	}
	var content []core.Part
	for _, q := range p.Content {
		content = c.inner(content, q)
	}
	if p.IsError && !c.api.failed {
		c.warn(c.current, "the mark of a failed tool call was left out: %s has none", c.api.Name)
		p.IsError = false
	}
	if p.IsError && len(content) == 0 {
		content = append(content, core.Text("(no output)")) // refused without
	}
	call := &c.calls[n]
	last := len(c.turns) - 1
	joined := c.api.merge && c.turns[last].Role == core.RoleUser && call.turn == last-1 // the same message
	if call.turn < last && !joined {
		c.warn(c.current, "a tool result was moved up to its call")
	}
	c.dropHeld()
	call.answered = true
	p.CallID, p.Content = call.id, content
	t := &c.turns[call.turn]
	t.Results = append(t.Results, p)
}

// inner adds the part q of a result to content, as the wire has it.
func (c *converter) inner(content []core.Part, q core.Part) []core.Part {
	switch q := q.(type) {
	case core.Text:
		if strings.TrimSpace(string(q)) == "" {
			return content
		}
		return append(content, q)
	case core.Image:
		if img, ok := Sendable(q); ok {
			return append(content, img)
		}
		return c.innerNote(content, "image")
	case core.Opaque:
		if block, ok := SendableBlock(q, c.api.inner); ok {
			return append(content, block)
		}
		return c.innerNote(content, q.Kind)
	case core.ToolCall, core.ToolResult, core.Reasoning:
	}
	return c.innerNote(content, "unknown")
}

// Content returns the Content of a tool result as a accepts it.
func (a *API) Content(parts []core.Part) []core.Part {
	c := converter{api: a, warn: (&Input{}).warn()}
	var content []core.Part
	for _, p := range parts {
		content = c.inner(content, p)
	}
	return content
}

func (c *converter) innerNote(content []core.Part, kind string) []core.Part {
	c.warn(c.current, "content of kind %q in a tool result was replaced by a note: %s has no place for it", kind, c.api.Name)
	return append(content, core.Text(Note(kind)))
}

// complete answers the calls that have no result, except those at the very end, which may
// be pending.
func (c *converter) complete() {
	for i := range c.turns {
		t := &c.turns[i]
		if i == len(c.turns)-1 && len(t.Results) == 0 {
			return
		}
		for _, n := range t.calls {
			if !c.calls[n].answered {
				c.warn(t.ID, "a tool call without a result was given one that says so")
				t.Results = append(t.Results, core.ToolResult{
					CallID:  c.calls[n].id,
					Content: []core.Part{core.Text("No result of this call was recorded.")},
					IsError: c.api.failed,
				})
			}
		}
	}
}

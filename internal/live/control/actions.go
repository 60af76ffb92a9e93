package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// An Ask holds the parameters of an action, in the body of a POST to /condense/live/ID/ACTION and for [Controller.Do].
// Fields that the action does not use are ignored.
type Ask struct {
	Profile  string  `json:"profile,omitempty"` // for action now
	Provider string  `json:"provider,omitempty"`
	Tokens   int     `json:"tokens,omitempty"`
	Percent  float64 `json:"percent,omitempty"`
	Text     string  `json:"text,omitempty"` // for protect and unprotect
	Message  int     `json:"message,omitempty"`
}

// Actions lists the actions of [Controller.Do].
var Actions = []string{session.OrderNow, session.OrderUndo, "pause", "resume", "protect", "unprotect"}

// Do performs one of [Actions] on a conversation.
func (d *Controller) Do(ctx context.Context, c *Conversation, action string, a *Ask) error {
	p := session.Protection{Text: a.Text, Message: a.Message}
	defer func() { c.Next = c.next() }()
	switch action {
	case session.OrderNow:
		return d.Now(ctx, c, session.Order{Profile: a.Profile, Provider: a.Provider, Tokens: a.Tokens, Percent: a.Percent})
	case session.OrderUndo:
		return d.Undo(ctx, c)
	case "pause", "resume":
		return d.Pause(ctx, c, action == "pause")
	case "protect", "unprotect":
		return d.Protect(ctx, c, p, action == "protect")
	}
	return fmt.Errorf("there is no action %q: there are %s", plain.Clip(action), strings.Join(Actions, ", "))
}

// next says when the next epoch is expected, or for what it waits.
func (c *Conversation) next() string {
	switch o := c.Order; {
	case c.Observed:
		return "only observed"
	case o != nil && o.Waits != "":
		return o.Do + " waits: " + o.Waits
	case o != nil && o.Do == session.OrderUndo:
		return "undone with the next request"
	case o != nil:
		return "with the next request"
	case c.Paused:
		return "paused"
	case c.Refused.Lasting():
		return "NO ANSWER, " + c.Refused.Said()
	case c.Failing.Lasting():
		return "FAILS, " + c.Failing.Said()
	case c.Waits != "":
		return "due, waits for " + c.Waits
	case c.DueAt == 0:
		return "not known"
	case c.DueIn > 0:
		return "at " + size.Group(c.DueAt) + ", in about " + size.Plural(c.DueIn, "request")
	}
	return "at " + size.Group(c.DueAt)
}

// Troubles say what fails in the conversation, what that costs, and what to do; nothing if all is well.
func (c *Conversation) Troubles() (all []string) {
	add := func(f *session.Failing, what, cost, otherwise string) {
		all = append(all, fmt.Sprintf("%s, %s; %s: %s", what, f.Said(), cost, cmp.Or(Advice(f.Status), otherwise)))
	}
	if c.Refused.Lasting() {
		add(c.Refused, "the vendor does not answer", "the request is the agent's own", "see the agent's message")
	}
	if c.Failing.Lasting() {
		cost := fmt.Sprintf("every request has all %s tokens", size.Group(c.Size))
		if c.Priced {
			cost += fmt.Sprintf(", for %s from the cache", size.Dollars(float64(c.Size)*c.about.Read, 3))
		}
		cost += ", and is truncated at " + size.Group(c.Limit)
		add(c.Failing, "it is not condensed", cost, "the agent's own compaction, or a new session")
	}
	for _, i := range c.about.Missing {
		if i < len(c.Protections) && c.Protections[i].Text != "" {
			text := plain.Clip(c.Protections[i].Text)
			all = append(all, fmt.Sprintf("the protected text %q occurs nowhere, so nothing is kept for it", text))
		}
	}
	if c.Fallback != nil {
		add(c.Fallback, cmp.Or(c.about.Chain, "the chain")+" did not condense", c.Provider+" stood in, which keeps less of what matters",
			"mend it, or leave it out of the chain")
	}
	return all
}

// due estimates the size and the number of requests at which the next epoch is due.
func (c *Conversation) due() {
	at := c.Limit
	if t := c.about.Threshold; t > 0 && !c.Undone && !c.Paused {
		at = min(cmp.Or(at, t), t)
	}
	if c.Paused {
		at = c.Window
	}
	if c.Observed || at == 0 {
		return
	}
	c.DueAt = at
	if c.about.Grows > 0 && !c.Failing.Lasting() && !c.Refused.Lasting() {
		c.DueIn = max(1, (at-c.Size+c.about.Grows-1)/c.about.Grows)
	}
	if c.Order != nil && c.Order.Do == session.OrderNow {
		c.DueIn = 1
	}
}

// Advice says what to do about a failure with this status; empty if only its reason says it.
func Advice(status int) string {
	const class = 100
	return cmp.Or(advice[status], advice[status/class])
}

var advice = map[int]string{
	401: "check the key", 403: "check the key", 402: "the account needs credit", 429: "the vendor's limit is reached: wait, or use another model",
	5: "the vendor has a fault: later requests try again", // of all from 500 on
}

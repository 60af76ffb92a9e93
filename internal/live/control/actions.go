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

// An Ask holds the parameters of an action, in the body of a POST to /condense/live/ID/ACTION and for [Desk.Do].
// Fields that the action does not use are ignored.
type Ask struct {
	Profile  string  `json:"profile,omitempty"` // for action now
	Provider string  `json:"provider,omitempty"`
	Tokens   int     `json:"tokens,omitempty"`
	Percent  float64 `json:"percent,omitempty"`
	Text     string  `json:"text,omitempty"` // for protect and unprotect
	Message  int     `json:"message,omitempty"`
}

// Actions lists the actions of [Desk.Do].
var Actions = []string{session.OrderNow, session.OrderUndo, "pause", "resume", "protect", "unprotect"}

// Do performs one of [Actions] on a conversation.
func (d *Desk) Do(ctx context.Context, c *Conversation, action string, a *Ask) error {
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
	case c.Failing.Lasting():
		return fmt.Sprintf("FAILS, %s since %s: %s", size.Plural(c.Failing.Count, "time"), c.Failing.Since.Local().Format("15:04"), c.Failing.Why)
	case c.Waits != "":
		return "due, waits for " + c.Waits
	case c.DueAt == 0:
		return "not known"
	case c.DueIn > 0:
		return "at " + size.Group(c.DueAt) + ", in about " + size.Plural(c.DueIn, "request")
	}
	return "at " + size.Group(c.DueAt)
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
	if c.about.Grows > 0 && !c.Failing.Lasting() {
		c.DueIn = max(1, (at-c.Size+c.about.Grows-1)/c.about.Grows)
	}
	if c.Order != nil && c.Order.Do == session.OrderNow {
		c.DueIn = 1
	}
}

package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/plain"
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

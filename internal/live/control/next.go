package control

import (
	"cmp"

	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/size"
)

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
	if c.about.Grows > 0 {
		c.DueIn = max(1, (at-c.Size+c.about.Grows-1)/c.about.Grows)
	}
	if c.Order != nil && c.Order.Do == session.OrderNow {
		c.DueIn = 1
	}
}

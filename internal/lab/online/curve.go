package online

import (
	"slices"
	"time"

	"github.com/condensehq/condense/live"
)

// A Point is a turn of a conversation on its curve. Sizes are tokens, by the vendor's count as estimated.
type Point struct {
	Time    time.Time `json:"t"`
	History int       `json:"history"`         // of the client
	Sent    int       `json:"sent"`            // in its place
	Saved   float64   `json:"saved,omitempty"` // US dollars by the conversation so far
	Epoch   bool      `json:"epoch,omitempty"` // the first turn with a new condensation
}

// maxPoints is the number of points kept of a conversation. A longer conversation loses every second point that is no epoch.
const maxPoints = 240

// point adds a turn to the curve.
func (c *Evidence) point(t *live.Turn) {
	c.Window, c.DueAt = t.Window, t.DueAt
	c.Curve = append(c.Curve, Point{Time: t.Time, History: t.History, Sent: t.Tokens, Saved: c.Saved, Epoch: t.Epoch != nil})
	if len(c.Curve) > maxPoints {
		last, n := len(c.Curve)-1, -1
		c.Curve = slices.DeleteFunc(slices.Clone(c.Curve), func(p Point) bool {
			n++
			return n%2 == 1 && n != last && !p.Epoch
		})
	}
}

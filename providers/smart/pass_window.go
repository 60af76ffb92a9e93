package smart

import (
	"context"
	"fmt"
)

type windowSettings struct {
	KeepUsers int `json:"keep_users" doc:"newest messages of the user that never go"`
}

// Validate says which setting is out of range.
func (s *windowSettings) Validate() error {
	if s.KeepUsers < 0 {
		return fmt.Errorf("keep_users: %d is negative", s.KeepUsers)
	}
	return nil
}

var windowPass = define("window", classLossy,
	"Roo-Code's documented sliding window; the first message stays and pairs stay whole",
	"Hides whole messages, the oldest first, until the target is met. The first message and the last never go.",
	windowSettings{},
	func(_ context.Context, w *work, c windowSettings) error {
		groups := w.groups()
		about := w.scores()
		users := c.KeepUsers
		for k := len(groups) - 1; k >= 0 && users > 0; k-- {
			if s := about.group(groups[k].Span); s.user && !s.calls {
				users--
				groups[k].stays = true
			}
		}
		var order []int
		for k := range groups {
			w.looked()
			if !groups[k].stays {
				order = append(order, k)
			}
		}
		w.hideInOrder(groups, order)
		return nil
	})

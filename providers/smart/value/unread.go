package value

import (
	"context"
	"sort"

	"github.com/condensehq/condense/core"
)

// keepUnread takes the best lines of the results that the model has not read yet, those behind
// its last message, as far as the share goes. It asked for them, and what it will make of them
// cannot be told by what it used before.
func (w *work) keepUnread(ctx context.Context) error {
	unread := len(w.messages)
	for unread > 0 && w.messages[unread-1].Role != core.RoleAssistant {
		unread--
	}
	first := sort.Search(len(w.c.Passages), func(p int) bool { return w.c.Passages[p].Message >= unread })
	_, err := w.fill(ctx, newQueue(w.candidates(first)), w.spent()+w.o.Shares.Unread*float64(w.o.Room))
	return err
}

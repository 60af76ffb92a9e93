package live

import (
	"context"

	"github.com/condensehq/condense/internal/live/session"
)

// hold keeps a change that the vendor forced, such as an epoch after an overflow, in memory although the store cannot
// be written: recall does not work for it, and it is lost with the process unless a later request can store it.
func (x *exchange) hold(ctx context.Context, old *session.Entry, why error) error {
	c := x.claim
	x.fault("commit", why)
	c.Late(why)
	if err := c.Save(ctx, x.store, false, x.start); err != nil {
		return err
	}
	if x.epoch != nil {
		<-old.Turn
		x.announce()
	}
	return nil
}

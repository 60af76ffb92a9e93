package live

import (
	"context"
)

// hold keeps a change that the vendor forced, such as an epoch after an overflow, in memory although the store cannot
// be written: recall does not work for it, and it is lost with the process unless a later request can store it.
func (x *exchange) hold(ctx context.Context, old *entry, why error) error {
	c := x.claim
	x.fault("commit", why)
	c.late(why)
	if err := c.save(ctx, x.store, false, x.start); err != nil {
		return err
	}
	if x.epoch != nil {
		<-old.turn
		x.announce()
	}
	return nil
}

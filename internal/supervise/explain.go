package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// explain finds the reason why the process did not become ready: what the host held
// against it, else how it ended, else err.
func (i *instance) explain(err error) error {
	if i.child.pid() == 0 {
		return err
	}
	if i.child.link.isBroken() {
		// A call fails before the end of the process is known.
		select {
		case <-i.child.exited:
		case <-time.After(exitDelay):
		}
	}
	reason := i.child.reason()
	select {
	case <-i.child.exited:
		if reason == nil {
			return i.child.early()
		}
	default:
	}
	if dial := i.child.link.dialError(); reason == nil && dial != nil {
		return fmt.Errorf("it does not accept connections where it says it does: %w", dial)
	}
	if reason == nil {
		// Nothing is held against it, and it is still there: a refusal of its own.
		return short(err)
	}
	return reason
}

// explainCall says what the error of a call with ctx means: if the connection broke, how
// the process ended; if the time was over, no more than that.
func (i *instance) explainCall(ctx context.Context, err error) error {
	name := i.spec.Name
	end, limited := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("plugin %s: %w", name, context.Cause(ctx))
	case limited && !time.Now().Before(end): // gRPC may know before ctx does
		return &lateError{name}
	case !i.child.link.isBroken():
		return fmt.Errorf("plugin %s: %w", name, err)
	}
	select {
	case <-i.over:
		if i.crash != nil {
			return i.crash
		}
		return fmt.Errorf("plugin %s: its process was stopped: %w", name, ErrClosed)
	case <-time.After(2 * exitDelay):
		return fmt.Errorf("plugin %s: %w", name, err)
	}
}

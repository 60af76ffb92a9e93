package coretest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/condensehq/condense/core"
)

const (
	// CallTimeout is the deadline of every call of an examination. Calls to a language
	// model take seconds, at times tens of them.
	CallTimeout = time.Minute
	// Promptness is how long a provider may take to return once its context is done.
	Promptness = time.Second
)

// errStuck means that a call did not return after its context was done.
var errStuck = fmt.Errorf("still running %s after its context was done", Promptness)

// A lostError says that a call ended without returning.
type lostError struct{ how string }

func (e *lostError) Error() string { return e.how }

// call asks p in a goroutine of its own, so that what goes wrong there is a finding and
// not the end of the examination.
func call(ctx context.Context, p core.CondensationProvider, req *core.Request) (*core.Result, error) {
	type answer struct {
		res *core.Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: &lostError{"it ended its goroutine"}}
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: &lostError{fmt.Sprintf("it panicked: %v\n%s", v, debug.Stack())}}
			}
			answers <- a
		}()
		res, err := p.Condense(ctx, req)
		if err != nil {
			_ = err.Error() // a nil pointer in an error panics here or in its reader
		}
		a = answer{res, err}
	}()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(Promptness)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-timer.C:
		return nil, errStuck
	}
}

// isLost reports whether err says that the call did not return.
func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

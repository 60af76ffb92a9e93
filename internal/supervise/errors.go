package supervise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
)

// ErrClosed means that a [Process] was closed.
var ErrClosed = errors.New("closed")

// errRetired means that the generation of a call was replaced before the call began.
var errRetired = errors.New("replaced")

// An unavailableError says why a plugin is not asked. It wraps [core.ErrUnavailable] and
// the error of the call's context, if that is why. What became of the plugin before is in
// its text only: an error that wraps a [*CrashError] means that this very call met a crash.
type unavailableError struct {
	plugin string
	why    string
	ctx    error
	before error
}

// Error says why, and why that.
func (e *unavailableError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "plugin %s: %s", e.plugin, e.why)
	for _, err := range []error{e.ctx, e.before} {
		if err != nil {
			fmt.Fprintf(&text, " (%v)", err)
		}
	}
	return text.String()
}

// Unwrap returns [core.ErrUnavailable] and the error of the context.
func (e *unavailableError) Unwrap() []error {
	if e.ctx == nil {
		return []error{core.ErrUnavailable}
	}
	return []error{core.ErrUnavailable, e.ctx}
}

// A lateError says that a call was given up at its deadline. It wraps
// [context.DeadlineExceeded].
type lateError struct{ plugin string }

// Error names the plugin.
func (e *lateError) Error() string { return fmt.Sprintf("plugin %s: no answer in time", e.plugin) }

// Unwrap returns [context.DeadlineExceeded].
func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// A startError says why a plugin did not start.
type startError struct {
	plugin string
	err    error
}

// Error names the plugin.
func (e *startError) Error() string { return fmt.Sprintf("start plugin %s: %v", e.plugin, e.err) }

// Unwrap returns the reason.
func (e *startError) Unwrap() error { return e.err }

// A shortError is an error with no more text than a person would read, and none that a
// terminal would obey.
type shortError struct{ err error }

func short(err error) error { return &shortError{err} }

// Error returns the text.
func (e *shortError) Error() string {
	return clip(printable(strings.ReplaceAll(e.err.Error(), "\n", "; ")), maxAttrBytes)
}

// Unwrap returns the whole error.
func (e *shortError) Unwrap() error { return e.err }

// wait rounds d for people.
func wait(d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return 0
	case d < time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

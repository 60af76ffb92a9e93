package supervise

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/caller"
)

// A breaker refuses calls for a while when a plugin runs but repeatedly misses its deadline,
// panics or breaks the protocol. Failures of the process (to start, or a crash) are counted
// by [restarts].
type breaker struct {
	plugin string
	cb     *gobreaker.CircuitBreaker[*core.Result]
	opened func() // called when the breaker opens, with the lock of cb held

	until atomic.Int64 // Unix nanoseconds
	last  atomic.Pointer[error]
}

func newBreaker(plugin string, rule Breaker, opened func()) *breaker {
	b := &breaker{plugin: plugin, opened: opened}
	b.cb = gobreaker.NewCircuitBreaker[*core.Result](gobreaker.Settings{
		Timeout:      rule.Cooldown,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= rule.Failures },
		IsSuccessful: func(err error) bool { return blame(err) != blamePlugin },
		IsExcluded:   func(err error) bool { return blame(err) == blameNone },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.until.Store(time.Now().Add(rule.Cooldown).UnixNano())
				b.opened()
			}
		},
	})
	return b
}

// do makes a call unless the breaker is open.
func (b *breaker) do(call func() (*core.Result, error)) (*core.Result, error) {
	res, err := b.cb.Execute(func() (*core.Result, error) {
		res, err := call()
		if blame(err) == blamePlugin {
			b.last.Store(&err)
		}
		return res, err
	})
	switch {
	case errors.Is(err, gobreaker.ErrOpenState):
		return nil, b.unavailable()
	case errors.Is(err, gobreaker.ErrTooManyRequests):
		return nil, &unavailableError{plugin: b.plugin, why: "its last calls failed; one is being tried", before: b.lastError()}
	}
	return res, err
}

// left returns how long the breaker stays open; 0 if it is not.
func (b *breaker) left() time.Duration { return max(0, time.Until(time.Unix(0, b.until.Load()))) }

func (b *breaker) unavailable() error {
	return &unavailableError{
		plugin: b.plugin, why: fmt.Sprintf("its last calls failed; the next one is tried in %s", wait(b.left())), before: b.lastError(),
	}
}

func (b *breaker) lastError() error { return stored(&b.last) }

// stored returns the error in p, if there is one.
func stored(p *atomic.Pointer[error]) error {
	if err := p.Load(); err != nil {
		return *err
	}
	return nil
}

// The blame for an error of a call.
type blamed int

const (
	blameNone   blamed = iota // says nothing about later calls
	blameWork                 // the plugin works, but could not do this
	blamePlugin               // the plugin does not work
)

// blame classifies err.
func blame(err error) blamed {
	var remote *caller.RemoteError
	switch {
	case err == nil:
		return blameWork
	case errors.As(err, new(*unavailableError)), errors.As(err, new(*startError)), errors.As(err, new(*CrashError)),
		errors.Is(err, context.Canceled), errors.Is(err, ErrClosed):
		return blameNone
	case errors.As(err, new(*lateError)), errors.Is(err, caller.ErrProtocol):
		return blamePlugin
	case errors.As(err, &remote) && slices.Contains(brokenCodes, remote.Code):
		return blamePlugin
	}
	return blameWork
}

// brokenCodes are statuses that do not depend on the conversation: a panic or an invalid
// answer, a call that the plugin does not implement, an answer that is too large.
var brokenCodes = []codes.Code{codes.Internal, codes.Unimplemented, codes.ResourceExhausted}

// restarts records when a program failed and computes when it may be started again, from
// the times that it is given. It is not safe for concurrent use.
type restarts struct {
	rule   Restart
	failed []time.Time // within the window, oldest first
	last   error       // why it failed last
	until  time.Time   // no start before
	broken bool        // until ends a cooldown
}

// failure records that the program failed at now, for the reason err.
func (r *restarts) failure(now time.Time, err error) {
	for len(r.failed) > 0 && now.Sub(r.failed[0]) > r.rule.Window {
		r.failed = r.failed[1:]
	}
	r.failed = append(r.failed, now)
	r.last = err
	n := len(r.failed)
	if r.broken = n >= r.rule.Crashes; r.broken {
		r.until = now.Add(r.rule.Cooldown)
		// More than Crashes are not needed, and would fill the memory over years.
		r.failed = r.failed[n-r.rule.Crashes:]
		return
	}
	wait := r.rule.Max
	if shift := n - 1; shift < 32 && r.rule.Min<<shift < r.rule.Max {
		wait = r.rule.Min << shift
	}
	// Jitter, so that plugins that failed for one reason do not restart at the same time.
	r.until = now.Add(wait - rand.N(wait/2+1)) //nolint:gosec // G404: guessing it is useless
}

// wait returns how long after now the next start must wait.
func (r *restarts) wait(now time.Time) time.Duration { return max(0, r.until.Sub(now)) }

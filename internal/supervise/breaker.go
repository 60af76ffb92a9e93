package supervise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
)

// A breaker gives calls up for a while when a plugin runs but does not do its work: it
// lets its deadline pass, panics, or breaks the protocol, again and again. What the
// process does (not start, crash) is not its business but that of [restarts].
type breaker struct {
	plugin string
	cb     *gobreaker.CircuitBreaker[*core.Result]
	opened func() // called when calls are given up, with the lock of cb held

	until atomic.Int64 // Unix nanoseconds
	last  atomic.Pointer[error]
}

func newBreaker(plugin string, rule Breaker, opened func()) *breaker {
	b := &breaker{plugin: plugin, opened: opened}
	b.cb = gobreaker.NewCircuitBreaker[*core.Result](gobreaker.Settings{
		Timeout:      rule.Cooldown,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= rule.Failures },
		IsSuccessful: func(err error) bool { return blame(err) != blamePlugin },
		IsExcluded:   func(err error) bool { return blame(err) == blameNobody },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.until.Store(time.Now().Add(rule.Cooldown).UnixNano())
				b.opened()
			}
		},
	})
	return b
}

// do makes a call unless calls are given up.
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

// left returns for how much longer calls are given up; 0 if they are not.
func (b *breaker) left() time.Duration {
	return max(0, time.Until(time.Unix(0, b.until.Load())))
}

func (b *breaker) unavailable() error {
	return &unavailableError{
		plugin: b.plugin, why: fmt.Sprintf("its last calls failed; the next one is tried in %s", wait(b.left())), before: b.lastError(),
	}
}

func (b *breaker) lastError() error {
	if err := b.last.Load(); err != nil {
		return *err
	}
	return nil
}

// The blame for an error of a call.
type blamed int

const (
	blameNobody blamed = iota // says nothing about the calls to come
	blameWork                 // the plugin works; it could not do this
	blamePlugin               // the plugin does not work
)

// blame says whose fault err is.
func blame(err error) blamed {
	var remote *wire.RemoteError
	switch {
	case err == nil:
		return blameWork
	case errors.As(err, new(*unavailableError)), errors.As(err, new(*startError)), errors.As(err, new(*CrashError)),
		errors.Is(err, context.Canceled), errors.Is(err, ErrClosed), errors.Is(err, errRetired):
		return blameNobody
	case errors.As(err, new(*lateError)), errors.Is(err, wire.ErrProtocol):
		return blamePlugin
	case errors.As(err, &remote) && slices.Contains(brokenCodes, remote.Code):
		return blamePlugin
	}
	return blameWork
}

// brokenCodes are statuses that say something of the plugin and not of the conversation:
// a panic or an answer that cannot be read, a call that it does not have, an answer that
// is too large.
var brokenCodes = []codes.Code{codes.Internal, codes.Unimplemented, codes.ResourceExhausted}

package live

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/stats"
)

const (
	// longestWait is how long a request that the vendor would refuse waits for its turn. Without a condensation the
	// agent stops.
	longestWait = 30 * time.Second
	// leastTurns is the number of simultaneous condensations for waiting requests on machines with fewer processors.
	leastTurns = 2
)

// errQueue means that too many other condensations were running.
var errQueue = errors.New("too many condensations at the same time")

// turnsAtOnce limits the simultaneous condensations: more would only slow down all of them.
func turnsAtOnce() int64 { return int64(max(leastTurns, runtime.GOMAXPROCS(0))) }

// A pace is a chain's speed, averaged over the conversations that it has condensed.
type pace struct{ perThousand atomic.Int64 } // nanoseconds per thousand tokens; 0 if unknown

// of returns the expected time for a conversation of so many tokens.
func (p *pace) of(tokens int) time.Duration {
	return time.Duration(p.perThousand.Load() * int64(tokens) / 1000)
}

// took records the time that a conversation took.
func (p *pace) took(tokens int, d time.Duration) {
	const weight = 4 // of the previous average, against 1 for the new time
	n := int64(d) * 1000 / int64(max(1, tokens))
	if known := p.perThousand.Load(); known > 0 {
		n = ((weight-1)*known + n) / weight
	}
	p.perThousand.Store(max(1, n))
}

// stopped records that a conversation was not finished within d.
func (p *pace) stopped(tokens int, d time.Duration) {
	p.perThousand.Store(max(p.perThousand.Load(), 2*int64(d)*1000/int64(max(1, tokens))))
}

// payer identifies who pays for a waiting request: the tenant, or without tokens the credential.
func (x *exchange) payer() string { return cmp.Or(x.t.who.Tenant, x.key.Tenant) }

// inTurn runs a job that the request waits for. It first waits for its turn; then the chain has its share of the
// deadline, which shrinks as more requests wait. A forced job must succeed, or the vendor refuses the request: if its
// chain fails, the built-in chain takes over, and past its share truncation does. A job that is not forced is dropped:
// [errAsks] if the chain would ask a language model, [errQueue] if there is too little time.
func (x *exchange) inTurn(all context.Context, j *job, forced bool) (*prepared, error) {
	leave, err := x.turnOf(all, forced)
	if err != nil {
		return nil, err
	}
	defer leave()
	waiting, _ := x.bodies.Waiting()
	share := x.epochs.Share(x.s.Deadline, waiting)
	ctx, cancel := context.WithTimeout(all, share)
	defer cancel()
	p, err := x.paced(ctx, j, x.host, inline, &x.resolved.pace)
	asks := errors.Is(err, errAsks)
	switch {
	case err == nil || all.Err() != nil:
		return p, err
	case asks && !forced:
		x.resolved.asks.Store(true)
		return nil, errAsks
	case !forced:
		return nil, err
	case asks:
		x.resolved.asks.Store(true)
	case !late(err) && !j.named:
		x.fault("chain", err)
	}
	if !late(err) {
		p, err = x.runBuiltin(ctx, j)
	}
	if late(err) && all.Err() == nil {
		return x.truncate(all, j)
	}
	return p, err
}

// turnOf waits until a job may run. leave must be called when the job is done.
func (x *exchange) turnOf(ctx context.Context, forced bool) (leave func(), err error) {
	wait := x.s.Deadline
	if forced {
		wait = max(wait, longestWait)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if leave, err = x.epochs.Enter(limited, x.payer(), 1); err != nil && ctx.Err() == nil {
		x.stats.Fault("queue")
		err = errQueue
	}
	return leave, err
}

// nextTurn runs another step for a caller of /v1/compress that names no session, in a turn and a deadline of its own.
func (x *exchange) nextTurn(ctx context.Context, run func(context.Context) (*prepared, error)) (*prepared, error) {
	leave, err := x.turnOf(ctx, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, x.s.Deadline)
	defer cancel()
	return run(ctx)
}

// late reports whether a job had too little time.
func late(err error) bool {
	return errors.Is(err, errQueue) || errors.Is(err, context.DeadlineExceeded)
}

// paced runs a job if the known pace allows it to finish in time. Otherwise the error is [errQueue].
func (x *exchange) paced(ctx context.Context, j *job, host *condense.Host, to extent, known *pace) (*prepared, error) {
	end, _ := ctx.Deadline()
	began := time.Now()
	if known.of(j.tokens) > end.Sub(began) {
		return nil, errQueue
	}
	p, err := j.run(ctx, host, to)
	switch took := time.Since(began); {
	case err == nil:
		known.took(j.tokens, took)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		known.stopped(j.tokens, took)
	}
	return p, err
}

// runBuiltin condenses with the built-in chain after the profile's chain failed, or because that would ask a language
// model.
func (x *exchange) runBuiltin(ctx context.Context, j *job) (*prepared, error) {
	j.turn.Profile, j.turn.Mode = "", ""
	why := j.instead
	x.replaced(j)
	p, err := x.paced(ctx, j, x.builtin, whole, &x.builtinPace)
	if err == nil {
		p.maker.cause = cmp.Or(why, p.maker.cause)
	}
	return p, err
}

// hurried is the reason for using truncation instead of a chain.
const hurried = "too many requests waited for a condensation, or it took too long: truncation did it at once"

// truncate condenses as fast as possible, in time proportional to the conversation.
func (x *exchange) truncate(all context.Context, j *job) (*prepared, error) {
	ctx, cancel := context.WithTimeout(all, max(x.s.Deadline, defaultDeadline))
	defer cancel()
	x.stats.Fault("queue")
	by := condense.Truncation
	if len(x.resolved.Chain) > 0 {
		by = x.resolved.Chain[0].Name
	}
	x.attempted(stats.Attempt{Provider: by, Outcome: stats.Replaced, Mode: cmp.Or(x.mode, x.profile), Reason: hurried})
	j.turn.Profile, j.turn.Mode = "", ""
	p, err := j.run(ctx, x.truncation, whole)
	if err == nil {
		p.maker.cause = hurried
	}
	return p, err
}

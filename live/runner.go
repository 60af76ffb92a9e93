package live

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/queue"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/prefix"
)

const (
	// longestWait is how long a request that the vendor would refuse waits for its turn. Without a condensation the
	// agent stops.
	longestWait = 30 * time.Second
	// leastTurns is the number of simultaneous condensations for waiting requests on machines with fewer processors.
	leastTurns = 2
	// usualDeadline is the least time that truncation gets.
	usualDeadline = 5 * time.Second
)

// A runner runs jobs: those that requests wait for one after the other, and others in the background.
type runner struct {
	host    *condense.Host
	builtin *condense.Host // the built-in chain, which needs no language model
	inPlace *condense.Host // shortens results, and neither drops nor adds a message
	// truncation only hides old messages, which is the fastest way to condense.
	truncation *condense.Host

	bodies *queue.Queue // of large requests that are read
	epochs *queue.Queue // of jobs that requests wait for
	idle   *queue.Queue // of jobs in the background that need a processor

	builtinPace pace

	events
}

// events are what a runner reports, from any goroutine.
type events struct {
	attempted func(stats.Attempt)          // for each attempt that is counted
	fault     func(kind string, err error) // for each error that the client does not see
	crowded   func()                       // when there was no time for a job
}

// newRunner returns a runner whose jobs are condensed by host, which must stay open.
func newRunner(ctx context.Context, host *condense.Host, bodies *queue.Queue, e events) (*runner, error) {
	r := &runner{host: host, bodies: bodies, epochs: queue.New(turnsAtOnce()), idle: queue.New(alongsideAtOnce()), events: e}
	var err error
	if r.builtin, err = condense.Open(ctx, nil); err != nil {
		return nil, err
	}
	if r.inPlace, err = ingest.Open(ctx, ingest.Options{Lossless: true, Fit: true}); err != nil {
		return nil, err
	}
	truncation := config.Tuning{Chain: []string{condense.Truncation}}
	r.truncation, err = condense.Open(ctx, &condense.Options{Values: &config.Values{Tuning: truncation}})
	return r, err
}

// close frees resources. The host stays open.
func (r *runner) close() error {
	return errors.Join(r.builtin.Close(), r.inPlace.Close(), r.truncation.Close())
}

// A chain is what is learned about a chain of providers.
type chain struct {
	first string // the first provider
	// Whether the chain asks a language model other than the client's own; both false until known.
	asks, asksNot atomic.Bool
	pace          pace
}

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

// inTurn runs a job that the request waits for. It first waits for its turn; then the chain has its share of the
// deadline, which shrinks as more requests wait. A forced job must succeed, or the vendor refuses the request: if its
// chain fails, the built-in chain takes over, and past its share truncation does. A job that is not forced is dropped:
// [errAsks] if the chain would ask a language model, [errQueue] if there is too little time.
func (r *runner) inTurn(all context.Context, j *job, forced bool) (*prepared, error) {
	leave, err := r.turnOf(all, j, forced)
	if err != nil {
		return nil, err
	}
	defer leave()
	waiting, _ := r.bodies.Waiting()
	share := r.epochs.Share(j.owner.deadline, waiting)
	ctx, cancel := context.WithTimeout(all, share)
	defer cancel()
	p, err := r.paced(ctx, j, r.host, inline, &j.owner.chain.pace)
	asks := errors.Is(err, errAsks)
	switch {
	case err == nil || all.Err() != nil:
		return p, err
	case asks && !forced:
		j.owner.chain.asks.Store(true)
		return nil, errAsks
	case !forced:
		return nil, err
	case asks:
		j.owner.chain.asks.Store(true)
	case !late(err) && !j.named:
		r.fault("chain", err)
	}
	if !late(err) {
		p, err = r.runBuiltin(ctx, j)
	}
	if late(err) && all.Err() == nil {
		return r.truncate(all, j)
	}
	return p, err
}

// turnOf waits until a job may run. leave must be called when the job is done.
func (r *runner) turnOf(ctx context.Context, j *job, forced bool) (leave func(), err error) {
	wait := j.owner.deadline
	if forced {
		wait = max(wait, longestWait)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if leave, err = r.epochs.Enter(limited, j.owner.payer, 1); err != nil && ctx.Err() == nil {
		r.crowded()
		err = errQueue
	}
	return leave, err
}

// nextTurn runs another step for a caller of /v1/compress that names no session, in a turn and a deadline of its own.
func (r *runner) nextTurn(ctx context.Context, j *job, run func(context.Context) (*prepared, error)) (*prepared, error) {
	leave, err := r.turnOf(ctx, j, false)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, j.owner.deadline)
	defer cancel()
	return run(ctx)
}

// late reports whether a job had too little time.
func late(err error) bool {
	return errors.Is(err, errQueue) || errors.Is(err, context.DeadlineExceeded)
}

// paced runs a job if the known pace allows it to finish in time. Otherwise the error is [errQueue].
func (r *runner) paced(ctx context.Context, j *job, host *condense.Host, to extent, known *pace) (*prepared, error) {
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
func (r *runner) runBuiltin(ctx context.Context, j *job) (*prepared, error) {
	j.turn.Profile, j.turn.Mode = "", ""
	why := j.instead
	r.replaced(j)
	p, err := r.paced(ctx, j, r.builtin, whole, &r.builtinPace)
	if err == nil {
		p.maker.cause = cmp.Or(why, p.maker.cause)
	}
	return p, err
}

// hurried is the reason for using truncation instead of a chain.
const hurried = "too many requests waited for a condensation, or it took too long: truncation did it at once"

// truncate condenses as fast as possible, in time proportional to the conversation.
func (r *runner) truncate(all context.Context, j *job) (*prepared, error) {
	ctx, cancel := context.WithTimeout(all, max(j.owner.deadline, usualDeadline))
	defer cancel()
	r.crowded()
	by := cmp.Or(j.owner.chain.first, condense.Truncation)
	r.attempted(stats.Attempt{Provider: by, Outcome: stats.Replaced, Mode: j.owner.mode, Reason: hurried})
	j.turn.Profile, j.turn.Mode = "", ""
	p, err := j.run(ctx, r.truncation, whole)
	if err == nil {
		p.maker.cause = hurried
	}
	return p, err
}

// backgroundDeadline limits a condensation for which no request waits.
const backgroundDeadline = 10 * time.Minute

// A prepared view is the result of a condensation, and its basis.
type prepared struct {
	basis   *lineage.Basis
	after   []wire.Message
	handles bool // the view may contain handles
	passes  map[string]string
	journal []byte // the condensed conversation; nil without a watcher
	maker   maker
	order   int // number of the order that it fulfills; 0 for none
}

// alongsideAtOnce limits how many of them use a processor at a time, so that requests find the other processors free.
func alongsideAtOnce() int64 { return int64(max(1, runtime.GOMAXPROCS(0)/2)) }

// errNotEarly means that the chain asks no language model, so nothing is prepared before it is due.
var errNotEarly = errors.New("not early")

// alongside condenses in the background. Work on a processor waits for its turn; work that waits for a language model
// does not occupy one.
func (r *runner) alongside(ctx context.Context, j *job, to extent) (*prepared, error) {
	inTurn := func(run func() (*prepared, error)) (*prepared, error) {
		leave, err := r.idle.Enter(ctx, j.owner.payer, 1)
		if err != nil {
			return nil, err
		}
		defer leave()
		return run()
	}
	if j.client != nil {
		defer j.client.Forget()
		if j.owner.mayAsk() {
			return j.run(prefix.WithAsker(ctx, j.client.Ask), r.host, whole)
		}
		if to == probe {
			return nil, errNotEarly
		}
	}
	if !j.owner.chain.asks.Load() {
		try := inline
		if to == probe {
			try = probe
		}
		p, err := inTurn(func() (*prepared, error) { return j.run(ctx, r.host, try) })
		switch {
		case errors.Is(err, errAsks):
			j.owner.chain.asks.Store(true)
		case to == probe && err == nil:
			j.owner.chain.asksNot.Store(true)
			return nil, errNotEarly
		default:
			return p, err
		}
	}
	switch {
	case j.owner.mayAsk():
		return j.run(ctx, r.host, whole)
	case to == probe:
		return nil, errNotEarly
	}
	return inTurn(func() (*prepared, error) {
		limited, cancel := context.WithTimeout(ctx, backgroundDeadline)
		defer cancel()
		return r.runBuiltin(limited, j)
	})
}

// replaced counts that the built-in chain stands in for the chain of the job.
func (r *runner) replaced(j *job) {
	if j.asker != "" {
		r.attempted(stats.Attempt{
			Provider: j.asker, Outcome: stats.Replaced, Mode: j.owner.mode,
			Reason: "it asks a language model, and nothing was prepared: the built-in chain condensed in its place",
		})
	}
}

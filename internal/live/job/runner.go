package job

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/lab/truth"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/queue"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/prefix"
)

const (
	// LongestWait is how long a request that the vendor would refuse waits for its turn, apart from the deadline of its
	// condensation. Agents wait longer than a minute.
	LongestWait = 50 * time.Second
	// minTurns is the number of simultaneous condensations for waiting requests on machines with fewer processors.
	minTurns = 2
	// waitersAtOnce is the number if their chains wait for another process. Their memory has its own limit: that of the bodies.
	waitersAtOnce = 16
	// usualDeadline is the least time that truncation gets.
	usualDeadline = 5 * time.Second
)

// A Runner runs jobs: those that requests wait for one after the other, and others in the background.
type Runner struct {
	host    *condense.Host
	builtin *condense.Host // the built-in chain, which needs no language model
	InPlace *condense.Host // shortens results, and neither drops nor adds a message
	// truncation only hides old messages, which is the fastest way to condense.
	truncation *condense.Host

	Bodies *queue.Queue // of large requests that are read
	Epochs *queue.Queue // of jobs that requests wait for
	idle   *queue.Queue // of jobs in the background that need a processor

	builtinPace pace

	Events
}

// Replaced is the outcome of a provider that would have taken too long for the job.
const Replaced core.Outcome = "replaced"

// Events are called by a runner, from any goroutine.
type Events struct {
	// Attempted is called for each attempt that is counted. Mode is the mode, or the profile.
	Attempted func(provider string, outcome core.Outcome, reason, mode string)
	Fault     func(kind string, err error) // for each error that the client does not see
	Crowded   func()                       // when there was no time for a job
}

// New returns a runner whose jobs are condensed by host, which must stay open.
func New(ctx context.Context, host *condense.Host, bodies *queue.Queue, e Events) (*Runner, error) {
	r := &Runner{
		host: host, Bodies: bodies, Events: e,
		Epochs: queue.New(turnsAtOnce() * computes()), idle: queue.New(int64(max(1, runtime.GOMAXPROCS(0)/2)) * computes()),
	}
	var err error
	if r.builtin, err = condense.Open(ctx, nil); err != nil {
		return nil, err
	}
	if r.InPlace, err = ingest.Open(ctx, ingest.Options{Lossless: true, Fit: true}); err != nil {
		return nil, err
	}
	truncation := config.Tuning{Chain: []string{condense.Truncation}}
	r.truncation, err = condense.Open(ctx, &condense.Options{Values: &config.Values{Tuning: truncation}})
	return r, err
}

// Close frees resources. The host stays open.
func (r *Runner) Close() error {
	return errors.Join(r.builtin.Close(), r.InPlace.Close(), r.truncation.Close())
}

// Learned holds the findings of earlier jobs about a chain of providers.
type Learned struct {
	Names []string // of the providers
	Waits bool     // the first of them is another process, which does the work
	// Whether the chain asks a language model other than the client's own; both false until known.
	Asks, AsksNot atomic.Bool
	busy          atomic.Bool // it waits, but so many at once were too slow: that process needs the processors
	pace          pace
}

// waits reports whether the chain hardly uses a processor of this process.
func (l *Learned) waits() bool { return l.Waits && !l.busy.Load() }

// weight returns how much of the turns a job with this chain takes.
func (l *Learned) weight() int64 {
	if l.waits() {
		return turnsAtOnce()
	}
	return computes()
}

// ErrQueue means that too many other condensations were running.
var ErrQueue = errors.New("too many condensations at the same time")

// turnsAtOnce limits the simultaneous condensations that compute: more would only slow down all of them.
func turnsAtOnce() int64 { return int64(max(minTurns, runtime.GOMAXPROCS(0))) }

// computes is the weight of one of them: so many that wait are admitted in place of turnsAtOnce that compute.
func computes() int64 { return max(waitersAtOnce, turnsAtOnce()) }

// A pace is a chain's speed, averaged over the conversations that it has condensed.
type pace struct{ thousand, one atomic.Int64 } // nanoseconds per thousand tokens, and per conversation; 0 if unknown

// of returns the expected time for a conversation of so many tokens. For one that waits for another process it is not more than
// the others took: such a process is not always slower with a longer one.
func (p *pace) of(tokens int, waits bool) time.Duration {
	d := time.Duration(p.thousand.Load() * int64(tokens) / 1000)
	if waits {
		d = min(d, time.Duration(p.one.Load()))
	}
	return d
}

// took records the time that a conversation took.
func (p *pace) took(tokens int, d time.Duration) {
	const weight = 4 // of the previous average, against 1 for the new time
	average := func(of *atomic.Int64, n int64) {
		if known := of.Load(); known > 0 {
			n = ((weight-1)*known + n) / weight
		}
		of.Store(max(1, n))
	}
	average(&p.thousand, perThousand(tokens, d))
	average(&p.one, int64(d))
}

// stopped records that a conversation was not finished within d.
func (p *pace) stopped(tokens int, d time.Duration) {
	p.thousand.Store(max(p.thousand.Load(), 2*perThousand(tokens, d)))
	p.one.Store(max(p.one.Load(), 2*int64(d)))
}

func perThousand(tokens int, d time.Duration) int64 { return int64(d) * 1000 / int64(max(1, tokens)) }

// doubt makes a pace that was too slow for a job a little faster: the machine was perhaps busy, so it is tried again.
func (p *pace) doubt() {
	for _, of := range []*atomic.Int64{&p.thousand, &p.one} {
		of.Store(of.Load() * 7 / 8)
	}
}

// InTurn runs a job that the request waits for. It first waits for its turn; then the chain has the deadline, or less if
// the last of the waiting requests would otherwise wait for more than [LongestWait]. A forced job must succeed, or the
// vendor refuses the request: if its chain fails, the built-in chain takes over, and without time truncation does. A
// job that is not forced is dropped: [ErrAsks] if the chain would ask a language model, [ErrQueue] if there is too little
// time.
func (r *Runner) InTurn(all context.Context, j *Job, forced bool) (*Prepared, error) {
	came := time.Now()
	weight := j.Owner.Chain.weight()
	leave, err := r.turnOf(all, j, weight, forced)
	if forced && errors.Is(err, ErrQueue) {
		return r.truncate(all, j)
	}
	if err != nil {
		return nil, err
	}
	defer func() { leave() }()
	waiting, _ := r.Bodies.Waiting()
	share := min(j.Owner.Deadline, r.Epochs.Share(max(j.Owner.Deadline, LongestWait-time.Since(came)), int64(waiting)*weight))
	ctx, cancel := context.WithTimeout(all, share)
	defer cancel()
	p, err := r.paced(ctx, j, r.host, Inline, &j.Owner.Chain.pace)
	asks := errors.Is(err, ErrAsks)
	switch {
	case err == nil || all.Err() != nil:
		j.learn()
		return p, err
	case asks && !forced:
		j.learn()
		return nil, ErrAsks
	case !forced:
		return nil, err
	case asks:
		j.learn()
	case !late(err) && !j.Named:
		r.Fault("chain", err)
	}
	if !late(err) {
		if err = nil; weight < computes() { // the built-in chain computes
			leave()
			leave, err = r.Epochs.Enter(ctx, j.Owner.Tenant, computes())
		}
		if err == nil {
			p, err = r.RunBuiltin(ctx, j)
		}
	}
	if late(err) && all.Err() == nil {
		return r.truncate(all, j)
	}
	return p, err
}

// learn notes that the chain asks a language model, if it does.
func (j *Job) learn() {
	if j.asker != "" {
		j.Owner.Chain.Asks.Store(true)
	}
}

// turnOf waits until a job of a weight may run. leave must be called when the job is done.
func (r *Runner) turnOf(ctx context.Context, j *Job, weight int64, forced bool) (leave func(), err error) {
	wait := j.Owner.Deadline
	if forced {
		wait = max(wait, LongestWait)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if leave, err = r.Epochs.Enter(limited, j.Owner.Tenant, weight); err != nil && ctx.Err() == nil {
		r.Crowded()
		err = ErrQueue
	}
	return leave, err
}

// NextTurn runs another step for a caller of /v1/compress that names no session, in a turn and a deadline of its own.
func (r *Runner) NextTurn(ctx context.Context, j *Job, run func(context.Context) (*Prepared, error)) (*Prepared, error) {
	leave, err := r.turnOf(ctx, j, computes(), false)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, j.Owner.Deadline)
	defer cancel()
	return run(ctx)
}

// late reports whether a job had too little time.
func late(err error) bool {
	return errors.Is(err, ErrQueue) || errors.Is(err, context.DeadlineExceeded)
}

// paced runs a job if the known pace allows it to finish in time. Otherwise the error is [ErrQueue].
func (r *Runner) paced(ctx context.Context, j *Job, host *condense.Host, to Extent, known *pace) (*Prepared, error) {
	end, _ := ctx.Deadline()
	began := time.Now()
	waits := host == r.host && j.Owner.Chain.waits()
	if known.of(j.Tokens, waits) > end.Sub(began) {
		known.doubt()
		return nil, ErrQueue
	}
	p, err := j.Run(ctx, host, to)
	took := time.Since(began)
	switch _, crowd := r.Epochs.Waiting(); {
	case err == nil:
		known.took(j.Tokens, took)
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
	case waits && int64(crowd) > turnsAtOnce():
		j.Owner.Chain.busy.Store(true)
	default:
		known.stopped(j.Tokens, took)
	}
	return p, err
}

// RunBuiltin condenses with the built-in chain after the profile's chain failed, or because that would ask a language
// model.
func (r *Runner) RunBuiltin(ctx context.Context, j *Job) (*Prepared, error) {
	j.Turn.Profile, j.Turn.Mode = "", ""
	why := j.instead
	if j.asker != "" {
		r.Attempted(j.asker, Replaced, "it asks a language model, and nothing was prepared: the built-in chain condensed in its place", j.Owner.Mode)
	}
	p, err := r.paced(ctx, j, r.builtin, Whole, &r.builtinPace)
	if err == nil {
		p.Maker.Cause = cmp.Or(why, p.Maker.Cause)
	}
	return p, err
}

// hurried is the reason for using truncation instead of a chain.
const hurried = "too many requests waited for a condensation, or it took too long: truncation did it at once"

// truncate condenses as fast as possible, in time proportional to the conversation.
func (r *Runner) truncate(all context.Context, j *Job) (*Prepared, error) {
	r.Crowded()
	p, err := r.Truncate(all, j, Cause{Why: hurried})
	if err == nil {
		p.Hurried = true
	}
	return p, err
}

// Truncate only hides old messages, because the chain cannot condense for the given reason.
func (r *Runner) Truncate(all context.Context, j *Job, why Cause) (*Prepared, error) {
	ctx, cancel := context.WithTimeout(all, max(j.Owner.Deadline, usualDeadline))
	defer cancel()
	by := append(slices.Clip(j.Owner.Chain.Names), condense.Truncation)[0] // the first provider
	r.Attempted(by, Replaced, why.Why, j.Owner.Mode)
	j.Turn.Profile, j.Turn.Mode = "", ""
	p, err := j.Run(ctx, r.truncation, Whole)
	if err == nil {
		p.Maker.Cause = why
	}
	return p, err
}

// BackgroundDeadline limits a condensation for which no request waits.
const BackgroundDeadline = 10 * time.Minute

// A Prepared view is the result of a condensation, and its basis.
type Prepared struct {
	Basis   *lineage.Basis
	After   []wire.Message
	Handles bool // the view may contain handles
	Passes  map[string]string
	States  map[string][]byte // what providers leave for the next condensation
	Maker   Maker
	Order   int  // number of the order that it fulfills; 0 for none
	Hurried bool // truncation did it for want of time
	// Protected is the user's protections at the start of the job, as in [Job].
	Protected string
}

// ErrNotEarly means that the chain asks no language model, so nothing is prepared before it is due.
var ErrNotEarly = errors.New("not early")

// Alongside condenses in the background. Work on a processor waits for its turn; work that waits for a language model
// does not occupy one, and for another process only a little of one.
func (r *Runner) Alongside(ctx context.Context, j *Job, to Extent) (*Prepared, error) {
	inTurn := func(weight int64, run func() (*Prepared, error)) (*Prepared, error) {
		leave, err := r.idle.Enter(ctx, j.Owner.Tenant, weight)
		if err != nil {
			return nil, err
		}
		defer leave()
		return run()
	}
	if j.Client != nil {
		defer j.Client.Forget()
		if j.Turn.MayAsk() == nil {
			return j.Run(prefix.WithAsker(ctx, j.Client.Ask), r.host, Whole)
		}
		if to == Probe {
			return nil, ErrNotEarly
		}
	}
	if !j.Owner.Chain.Asks.Load() {
		try := Inline
		if to == Probe {
			try = Probe
		}
		p, err := inTurn(j.Owner.Chain.weight(), func() (*Prepared, error) { return j.Run(ctx, r.host, try) })
		switch {
		case errors.Is(err, ErrAsks):
			j.learn()
		case to == Probe && err == nil:
			j.Owner.Chain.AsksNot.Store(true)
			return nil, ErrNotEarly
		default:
			return p, err
		}
	}
	switch {
	case j.Turn.MayAsk() == nil:
		return j.Run(ctx, r.host, Whole)
	case to == Probe:
		return nil, ErrNotEarly
	}
	return inTurn(computes(), func() (*Prepared, error) {
		limited, cancel := context.WithTimeout(ctx, BackgroundDeadline)
		defer cancel()
		return r.RunBuiltin(limited, j)
	})
}

// Judge holds a view against the history that it stands for, in turn with the work in the background.
func (r *Runner) Judge(ctx context.Context, tenant string, api wire.API, history, view [][]byte) (*epoch.Truth, error) {
	leave, err := r.idle.Enter(ctx, tenant, computes())
	if err != nil {
		return nil, err
	}
	defer leave()
	before, err := messages.Read(api, history)
	if err != nil {
		return nil, err
	}
	after, err := messages.Read(api, view)
	if err != nil {
		return nil, err
	}
	return new(truth.Read(before.Journal.View(), nil).Measure(after.Journal.View()).Truth), nil
}

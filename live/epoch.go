package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/transcript"
)

// formats are the names of the APIs in package transcript.
var formats = map[wire.API]string{wire.Messages: "anthropic", wire.Chat: "openai", wire.Responses: "responses"}

// document reads messages.
func document(api wire.API, messages [][]byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(rawjson.Array(messages)), &transcript.ReadOptions{Format: formats[api]})
}

// rawOf returns messages as they were in the request.
func rawOf(messages []wire.Message) [][]byte {
	raw := make([][]byte, len(messages))
	for i := range messages {
		raw[i] = messages[i].Raw
	}
	return raw
}

// backgroundDeadline limits a condensation that no request waits for.
const backgroundDeadline = 10 * time.Minute

// A prepared view is the result of a condensation, and what it is of.
type prepared struct {
	basis   *lineage.Basis
	after   []wire.Message
	handles bool // it may have some
	passes  map[string]string
	journal []byte // of the condensed conversation; nil without a watcher
	maker   maker
}

// errNotDue means that the policy of the profile saw no reason, or no gain.
var errNotDue = errors.New("not due")

// epochIfDue begins an epoch if there is a reason for one.
func (x *exchange) epochIfDue(ctx context.Context, overflow bool) error {
	c := x.claim
	d := lineage.Due(c.state, x.r, x.question(overflow))
	if d.Reason == lineage.None {
		return x.prepareEarly(ctx, d)
	}
	ctx, span := x.telemetry.tracer.Start(ctx, "condense", trace.WithAttributes(aReason.String(string(d.Reason)), aMode.String(cmp.Or(x.mode, x.profile))))
	defer span.End()
	forced := d.Reason == lineage.Forced
	if x.tokens < c.triedAt() && !forced {
		return nil
	}
	x.must = overflow || c.overflowed() || x.tokens > x.window
	if x.away.now() && !x.must {
		return nil // what must be sent again could not be stored
	}
	began := time.Now()
	if x.recalls {
		n, err := x.store.KeptBytes(ctx)
		x.recalls = err == nil && n < x.s.Recall.MaxSize
	}
	if forced {
		x.awaitPrepared(ctx)
	}
	p := c.takePrepared(x.rolling)
	if p != nil && (p.handles && !x.recalls || p == x.made) { // what was sent of this one the vendor has refused
		p = nil
	}
	taken := p != nil
	x.shadowed = nil
	if x.s.Watch != nil && len(x.s.Shadow) > 0 {
		x.shadowed = x.job(d, overflow)
	}
	if p == nil {
		job := x.shadowed
		if job == nil {
			job = x.job(d, overflow)
		}
		var err error
		p, err = x.inTurn(ctx, job, forced)
		switch {
		case errors.Is(err, errAsks):
			x.prepare(job) //nolint:contextcheck // it outlives the request
			return nil
		case errors.Is(err, errQueue):
			x.stats.fault("queue") // the next request tries again
			return nil
		case err != nil:
			c.tried(x.tokens + x.minNew())
			if errors.Is(err, errNotDue) {
				return nil
			}
			return err
		}
	}
	next, err := c.state.Freeze(x.r, x.rolling, lineage.Condensed{Basis: p.basis, After: p.after, Forced: forced, Decision: d}, x.start)
	if err != nil {
		c.tried(x.tokens + x.minNew())
		if errors.Is(err, lineage.ErrRound) { // until the turn is over
			return nil
		}
		return err
	}
	before := x.tokens
	ours := x.ours
	was := *x
	x.look(next)
	smaller := x.ours < ours
	if forced && taken && x.tokens > x.limit { // too much has come since it was made
		x.view, x.altered, x.ours, x.tokens, x.original = was.view, was.altered, was.ours, was.tokens, was.original
		return x.epochIfDue(ctx, overflow)
	}
	if smaller && x.recalls {
		var kept *store.Kept
		if kept, err = x.keep(ctx, next, was.view); kept != nil {
			x.kept = kept // with what is kept of the round
		}
	}
	if !smaller || err != nil {
		x.view, x.altered, x.ours, x.tokens, x.original = was.view, was.altered, was.ours, was.tokens, was.original
		if err != nil { // no handles, then
			x.fault("recall", err)
			x.recalls = false
			return x.epochIfDue(ctx, overflow)
		}
		c.tried(x.tokens + x.minNew())
		return nil
	}
	x.passes.add(p.passes)
	predicted := *next.Epoch // the chain did what it could: that is the prediction
	predicted.After, next.Epoch = x.tokens, &predicted
	x.next, x.journal, x.made = next, p.journal, p
	x.epoch = &Epoch{
		Time: x.start, Agent: x.agent.Name, Model: x.r.Model, Lineage: c.conversation, Reason: string(d.Reason),
		Before: before, After: x.tokens, Turns: d.Turns, Millis: float64(time.Since(began).Microseconds()) / 1000,
		Provider: p.maker.provider, Outcome: p.maker.outcome, Fallback: p.maker.cause != "", Cause: p.maker.cause,
	}
	if overflow {
		x.epoch.Reason = overflowed
	}
	return nil
}

// errQueue means that too many other condensations were under way.
var errQueue = errors.New("too many condensations at the same time")

// inTurn runs a job that a request waits for, when fewer others run than there are processors: more at a time would only take longer, each of
// them. The wait is part of the deadline; a forced one waits longer, because without it the vendor refuses the request.
func (x *exchange) inTurn(all context.Context, j *job, forced bool) (*prepared, error) {
	ctx, cancel := context.WithTimeout(all, x.s.Deadline)
	defer cancel()
	select {
	case x.epochs <- struct{}{}:
	case <-ctx.Done():
		if !forced {
			return nil, errQueue
		}
		select {
		case x.epochs <- struct{}{}:
		case <-all.Done():
			return nil, all.Err()
		}
		ctx, cancel = context.WithTimeout(all, x.s.Deadline)
		defer cancel()
	}
	defer func() { <-x.epochs }()
	p, err := j.run(ctx, x.host, inline)
	asks := errors.Is(err, errAsks)
	if asks {
		x.resolved.asks.Store(true)
	}
	switch {
	case asks && !forced && !x.claim.busy() && len(x.preparing) == cap(x.preparing):
		return nil, errQueue
	case asks && !forced && (x.claim.busy() || x.mayAsk()):
		return nil, errAsks // next to the request
	case err != nil && (asks || forced):
		// If it is forced, the vendor refuses the request without it: that is worse than a wait.
		if !asks {
			x.fault("chain", err)
		}
		return x.runBuiltin(context.WithoutCancel(all), j)
	}
	return p, err
}

// overflowed is the reason of an epoch after the vendor has refused the request as too long.
const overflowed = "overflow"

// early is the share of the size at which a conversation is due from which on a chain that asks a
// language model begins to work.
const early = 0.85

// prepareEarly starts the preparation of the next epoch if the chain asks a language model.
func (x *exchange) prepareEarly(ctx context.Context, d lineage.Decision) error {
	due := x.limit
	if x.threshold > 0 {
		due = min(due, x.threshold)
	}
	if float64(x.tokens) < early*float64(due) || d.Wait || x.tokens < x.claim.triedAt() || x.resolved.asksNot.Load() || x.claim.busy() {
		return nil
	}
	if len(x.preparing) == cap(x.preparing) {
		return nil // the next request tries again
	}
	j := x.job(d, false)
	if !x.resolved.asks.Load() {
		select {
		case x.epochs <- struct{}{}:
		default:
			return nil
		}
		_, err := j.attempt(ctx, x.host, probe, len(x.r.Messages))
		<-x.epochs
		if !errors.Is(err, errAsks) {
			x.resolved.asksNot.Store(err == nil)
			return err
		}
		x.resolved.asks.Store(true)
	}
	if x.mayAsk() {
		x.prepare(j) //nolint:contextcheck // it outlives the request
	}
	return nil
}

// question is what lineage needs to decide.
func (x *exchange) question(overflow bool) lineage.Question {
	s := x.claim.state
	write, read := x.caching.Prices(x.r.TTL)
	fixed := s.Scale(s.HeadOur)
	auto := x.resolved.Auto
	q := lineage.Question{
		Now: x.start, Tokens: x.tokens, Fixed: fixed, Window: x.limit, Overflow: overflow || x.claim.overflowed(),
		Threshold: x.threshold, Floor: x.minSize(), MinGain: int(x.resolved.MinGain / 100 * float64(max(0, x.tokens-fixed))), MinNew: x.minNew(),
		Turns: x.turnsLeft(fixed), Write: write, Read: read, Risk: x.s.Epoch.Risk / 100, Lifetime: x.caching.Lifetime,
		IgnoreCold: x.s.Epoch.IgnoreCold || !auto, IgnorePayback: x.s.Epoch.IgnorePayback || !auto,
	}
	if target := x.targetTokens(); target > 0 && x.tokens > fixed {
		q.Share = float64(max(1, target-fixed)) / float64(x.tokens-fixed)
	} else if q.Share = x.leave(); s.Epoch != nil && s.Epoch.Before > fixed { // what the last one left is a better guess
		q.Share = max(q.Share, float64(s.Epoch.After-fixed)/float64(s.Epoch.Before-fixed))
	}
	return q
}

// leave is the share of what can be removed that an epoch leaves.
func (x *exchange) leave() float64 {
	return lineage.Leave(x.caching.Prices(x.r.TTL))
}

// turnsLeft is the number of turns in which an epoch can pay for itself: those that are expected, but only until the
// conversation is as long again as it is now.
func (x *exchange) turnsLeft(fixed int) int {
	s := x.claim.state
	expected := x.s.ExpectedTurns
	if expected == 0 {
		expected = s.Expected()
	}
	from, size := 0, x.ours-s.HeadOur
	if s.Epoch != nil {
		from, size = min(s.Epoch.Cut, len(x.r.Messages)), size-s.Epoch.Our
	}
	answers := 0
	for i := from; i < len(x.r.Messages); i++ {
		if x.r.Messages[i].Role == "assistant" && (i == from || x.r.Messages[i-1].Role != "assistant") {
			answers++
		}
	}
	growth := s.Scale(size) / max(1, answers)
	removed := int((1 - x.leave()) * float64(x.tokens-fixed))
	return max(1, min(expected, removed/max(1, growth)))
}

// minSize is the size from which on money is a reason.
func (x *exchange) minSize() int {
	if x.s.Epoch.MinSize > 0 {
		return x.s.Epoch.MinSize
	}
	return lineage.Floor(max(x.threshold, x.limit))
}

func (x *exchange) minNew() int {
	return max(1, x.resolved.MinNewTokens*x.window/max(1, x.resolved.Window))
}

// targetTokens is the configured target; 0 if there is none.
func (x *exchange) targetTokens() int {
	percent := x.s.Epoch.Target
	if percent == 0 {
		percent = x.resolved.Target
	}
	return int(percent / 100 * float64(x.window))
}

// A job is a condensation that can run next to the request.
type job struct {
	api      wire.API
	volatile []wire.Volatile
	body     []byte // of the request, with the view that is to be condensed
	turn     condense.Turn
	tokens   int // of the body, by the vendor's count
	target   int // tokens, by the vendor's count
	basis    *lineage.Basis
	block    int // messages at the front that the last epoch left
	pins     pins
	journal  bool                   // is wanted
	forced   bool                   // the vendor would refuse the body
	tries    func(*condense.Report) // counts what the providers did; nil: nothing
	instead  string                 // why the chain of the profile came to nothing, for the one that takes its place
	asker    string                 // the provider of that chain that would have asked a language model
}

// Pins are the IDs of messages of a view that stay as they are because the caller says so; with all, those too that need not if there is no other way.
// Nil for none.
type pins func(view []core.Message, all bool) []string

func (x *exchange) job(d lineage.Decision, overflow bool) *job {
	j := &job{
		api: x.r.API, volatile: x.volatile, body: x.r.With(x.view), tokens: x.tokens,
		turn:  condense.Turn{Profile: x.profile, Mode: x.mode, Window: x.window, MaxOutput: x.output, NoRecall: !x.recalls, API: x.holds()},
		basis: x.claim.state.Basis(x.rolling), pins: x.pins, journal: x.s.Watch != nil, tries: x.tries(),
	}
	if e := x.claim.state.Epoch; e != nil {
		j.block = len(x.view) - (len(x.r.Messages) - min(e.Cut, len(x.r.Messages)))
	}
	switch {
	case overflow || x.claim.overflowed():
		j.turn.Trigger = core.TriggerOverflow
	case d.Reason == lineage.Forced || d.Reason == lineage.Threshold:
		j.turn.Trigger, j.forced = core.TriggerAutomatic, d.Reason == lineage.Forced
	default: // the policy knows nothing of the vendor's cache
		j.turn.Trigger = core.TriggerManual
	}
	if j.target = x.targetTokens(); j.target == 0 {
		fixed := x.claim.state.Scale(x.claim.state.HeadOur)
		j.target = fixed + int(x.leave()*float64(max(0, x.tokens-fixed)))
	}
	return j
}

// errAsks means that the chain would ask a language model, which takes too long for a request to wait.
var errAsks = errors.New("the chain asks a language model")

// How far a condensation goes.
type extent int

const (
	whole  extent = iota // to the end
	inline               // not if it would ask a language model: [errAsks]
	probe                // only to find that out
)

// run condenses the body as condense run does.
func (j *job) run(ctx context.Context, host *condense.Host, to extent) (*prepared, error) {
	r, err := wire.Parse(j.api, j.body, &wire.Options{Volatile: j.volatile})
	if err != nil {
		return nil, err
	}
	// What the model has not answered yet stays as it is: a result that is cut before the agent has
	// read it makes it ask again. If that leaves too little room, it is condensed like the rest.
	p, err := j.attempt(ctx, host, to, min(wire.OpenRound(r.Messages), len(r.Messages)-1))
	if err == nil || errors.Is(err, errAsks) || ctx.Err() != nil {
		return p, err
	}
	return j.attempt(ctx, host, to, len(r.Messages))
}

// runBuiltin condenses with the built-in chain, where that of the profile has failed.
func (x *exchange) runBuiltin(ctx context.Context, j *job) (*prepared, error) {
	ctx, stop := context.WithTimeout(ctx, max(x.s.Deadline, defaultDeadline))
	defer stop()
	j.turn.Profile, j.turn.Mode = "", ""
	why := j.instead
	x.replaced(j)
	p, err := j.run(ctx, x.builtin, whole)
	if err == nil {
		p.maker.cause = cmp.Or(why, p.maker.cause)
	}
	return p, err
}

// attempt is run with the messages from an index on unchanged.
func (j *job) attempt(ctx context.Context, host *condense.Host, to extent, keep int) (*prepared, error) {
	doc, err := transcript.Read(bytes.NewReader(j.body), &transcript.ReadOptions{Format: formats[j.api]})
	if err != nil {
		return nil, err
	}
	c := condense.ResumeConversation(doc.Journal)
	view := c.View()
	var kept []string
	for _, m := range view[min(keep, len(view)):] {
		kept = append(kept, m.ID)
	}
	if keep < len(view) { // else everything was tried
		for _, i := range recall.Fresh(view[:max(0, keep)], j.block, j.target/2*bytesPerToken) {
			kept = append(kept, view[i].ID)
		}
	}
	if j.pins != nil {
		kept = append(kept, j.pins(view, keep < len(view))...)
	}
	for _, id := range kept {
		if err := c.Protect(id, true); err != nil {
			return nil, err
		}
	}
	t := j.turn
	t.System, t.Tools = doc.System, doc.Tools
	d, err := host.Check(c, t)
	if err != nil {
		return nil, err
	}
	if d.Used > 0 && j.tokens > 0 { // in the host's tokens
		ratio := min(max(float64(d.Used)/float64(j.tokens), leastRatio), mostRatio)
		t.Window, t.MaxOutput, t.Target = int(ratio*float64(t.Window)), int(math.Ceil(ratio*float64(t.MaxOutput))), int(ratio*float64(j.target))
	}
	if j.forced { // to the host it may fit, where it counts less than the bounds allow for: the vendor's count is the one that matters
		if d, err = host.Check(c, t); err != nil {
			return nil, err
		} else if !d.Act {
			t.Trigger = core.TriggerOverflow
		}
	}
	if to != whole {
		if asks, err := host.Estimate(ctx, c, t); err != nil || len(asks) > 0 {
			j.asks(asks, err)
			return nil, errors.Join(err, errAsks)
		}
	}
	if to == probe {
		return nil, nil
	}
	report, err := host.Manage(ctx, c, t)
	j.tried(report, err)
	if err != nil {
		return nil, err
	}
	if !report.Acted {
		return nil, fmt.Errorf("%w: %s", errNotDue, report.Reason)
	}
	var out bytes.Buffer
	apart := j.api != wire.Chat // many servers speak this API, and some refuse two user messages in a row
	if _, err := doc.WriteWith(&out, &transcript.WriteOptions{Format: formats[j.api], Apart: apart}); err != nil {
		return nil, err
	}
	after, err := wire.Parse(j.api, out.Bytes(), &wire.Options{Volatile: j.volatile})
	if err != nil {
		return nil, err
	}
	p := &prepared{basis: j.basis, after: after.Messages, handles: !t.NoRecall, passes: passesOf(report), maker: makerOf(report)}
	if j.journal {
		var text bytes.Buffer
		if _, err := doc.Write(&text, "condense"); err != nil {
			return nil, err
		}
		p.journal = text.Bytes()
	}
	return p, nil
}

// Bounds of the ratio of the host's count to the vendor's. What is outside is no count of the same.
const leastRatio, mostRatio = 0.2, 5

// mostPreparing is how many condensations for later requests run at a time. They wait for language models most of the time, but each holds its
// conversation several times.
const mostPreparing = 16

// prepare runs a job next to the requests, unless too many others run. A later request of the lineage uses the result, if what
// it condensed is still the beginning.
func (x *exchange) prepare(j *job) {
	c := x.claim
	if c.busy() || x.life.Err() != nil {
		return
	}
	select {
	case x.preparing <- struct{}{}:
	default:
		return
	}
	e, s, ended := c.entry, c.session, make(chan struct{})
	s.mu.Lock()
	e.preparing = ended
	s.mu.Unlock()
	x.background.Go(func() {
		defer func() { <-x.preparing }()
		ctx, cancel := context.WithTimeout(x.life, backgroundDeadline)
		defer cancel()
		var p *prepared
		err := x.safely("preparation", func() (err error) {
			p, err = j.run(ctx, x.host, whole)
			return err
		})
		if err != nil && !errors.Is(err, errNotDue) {
			x.fault("preparation", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		close(ended)
		e.preparing, e.prepared = nil, p
		if p == nil {
			e.retry = j.tokens + x.minNew()
		}
	})
}

// busy reports whether the next epoch is being prepared, or is ready.
func (c *claim) busy() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.preparing != nil || c.prepared != nil
}

// awaitPrepared waits for what is being prepared, as long as a condensation may take.
func (x *exchange) awaitPrepared(ctx context.Context) {
	x.claim.session.mu.Lock()
	ended := x.claim.preparing
	x.claim.session.mu.Unlock()
	if ended == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.s.Deadline)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// takePrepared returns what was prepared for the beginning of these messages; nil if nothing was.
func (c *claim) takePrepared(rolling []wire.Hash) *prepared {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	p := c.prepared
	c.prepared = nil
	if p == nil || !p.basis.Fits(c.state, rolling) {
		return nil
	}
	return p
}

// tried notes that there is no use in another attempt below a size.
func (c *claim) tried(until int) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.retry = until
}

func (c *claim) triedAt() int {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.retry
}

// overflowed reports whether the vendor has refused the last request of the lineage as too long, after
// the answer had begun.
func (c *claim) overflowed() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.refused
}

// announce counts an epoch and says so in the log.
func (x *exchange) announce() {
	e := x.epoch
	x.stats.epoch(*e)
	x.condensed(e)
	x.watch()
	x.s.audit("epoch", x.t.who, "agent", e.Agent, "lineage", e.Lineage, "reason", e.Reason, "before", e.Before, "after", e.After)
	by := []any{"provider", e.Provider, "outcome", e.Outcome, "fallback", e.Fallback}
	if e.Fallback {
		by = append(by, "cause", e.Cause)
	}
	x.s.Logger.Info("epoch", append([]any{"agent", e.Agent, "model", e.Model, "reason", e.Reason, "before", e.Before, "after", e.After, "ms", e.Millis}, by...)...)
}

package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
)

// early is the default of [EpochOptions.Prepare].
const early = 85

// prepareEarly starts the preparation of the next epoch if the chain asks a language model.
func (p *plan) prepareEarly(d epoch.Decision) {
	r := p.req
	due := r.limits.policy.Limit
	if r.limits.policy.Threshold > 0 {
		due = min(due, r.limits.policy.Threshold)
	}
	soon := 100*float64(p.tokens) >= cmp.Or(r.s.Epoch.Prepare, early)*float64(due)
	if !soon || d.Wait == epoch.ForTurn || p.tokens < r.lease.TriedAt() || r.limits.resolved.learned.AsksNot.Load() && !p.asksClient() {
		return
	}
	p.prepare(d, job.Probe, false)
}

// Limits of all simultaneous preparations: the bytes of their requests, and their number. Each request is held in
// memory several times, and a chain with a language model mostly waits for the model.
const (
	maxPrepared  = 64 << 20
	maxPreparing = 16
)

// prepare condenses in the background, unless too many preparations are running: then the next request of the lineage
// tries again. A later request uses the result if its messages still begin with the condensed ones. With extent probe,
// it continues only if the chain asks a language model.
func (p *plan) prepare(d epoch.Decision, to job.Extent, overflow bool) {
	if p.asksClient() {
		p.postponed = &postponed{d: d, to: to, overflow: overflow}
		return
	}
	if p.req.lease.Busy() { // checked first, because making a job is expensive
		return
	}
	j := p.job(d, overflow)
	p.req.prepareWith(j, func(ctx context.Context) (*job.Prepared, error) { return p.req.g.runner.Alongside(ctx, j, to) })
}

// prepareWith runs the condensation of a job in the background, and reports whether it started.
func (r *request) prepareWith(j *job.Job, run func(context.Context) (*job.Prepared, error)) bool {
	if r.lease.Busy() || r.g.life.Err() != nil {
		return false
	}
	leave, ok := r.g.preparing.Try(r.tenant(), max(int64(len(r.parsed.Body)), maxPrepared/maxPreparing))
	return ok && r.begin(j, leave, run)
}

// begin runs a condensation in the background, unless the lineage has one, and reports whether it started. leave is
// called when it has ended.
func (r *request) begin(j *job.Job, leave func(), run func(context.Context) (*job.Prepared, error)) bool {
	model := r.parsed.Model // r.parsed changes while the preparation runs
	safe := func(ctx context.Context) (p *job.Prepared, err error) {
		if len(j.Body) >= largeBody {
			defer payload.Burst()()
		}
		err = r.g.safely("preparation", func() (err error) {
			p, err = run(ctx)
			return err
		})
		abandoned := errors.Is(err, context.Canceled) && ctx.Err() != nil
		faulty := err != nil && !errors.Is(err, job.ErrNotDue) && !errors.Is(err, job.ErrNotEarly) && !abandoned
		if faulty && !j.Named {
			r.g.fault("preparation", err)
		}
		if why := j.Setback(); faulty || why != nil && err != nil && !abandoned {
			r.failed(ctx, model, cmp.Or(why, err), false)
		}
		return p, err
	}
	return r.lease.Prepare(r.g.life, &r.g.background, session.Preparation{Run: safe, Leave: leave, Retry: j.Retry, Later: r.limits.policy.LaterAfter(j.Tokens), Order: j.Order})
}

// awaitPrepared waits for a running preparation, for at most the time that a condensation may take, if a language
// model condenses (rather than writes an account). It cancels any other preparation: the request then condenses in a
// turn of its own, ahead of background work.
func (r *request) awaitPrepared(ctx context.Context) {
	ended, abandon := r.lease.UnderWay()
	if ended == nil {
		return
	}
	if !r.limits.resolved.learned.Asks.Load() || r.s.Account != AccountOff {
		abandon()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.s.Bounds.Deadline)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// job returns the condensation that a decision asks for.
func (p *plan) job(d epoch.Decision, overflow bool) *job.Job {
	r := p.req
	numbers, block, cached := p.numbers()
	facts := p.facts(false)
	j := &job.Job{
		API: r.parsed.API, Volatile: r.from.volatile, Reminders: r.from.agent.Reminders, Body: r.parsed.With(p.messages), Tokens: p.tokens, Target: d.Target,
		Turn: condense.Turn{
			Profile: r.limits.profile, Mode: r.limits.mode, Window: r.limits.policy.Window, MaxOutput: r.limits.output, NoRecall: !p.handles,
			API: r.holds(), Dir: r.s.folder(r.parsed), Numbers: numbers, Conversation: p.state.Family,
			MayAsk:  r.mayAsk(),
			MayWait: new(d.Reason != epoch.Forced && d.Reason != epoch.Asked),
		},
		Block: block, Basis: p.state.Basis(r.rolling), Pins: r.protected(), Protected: r.lease.Control().Protected(),
		Tries: r.tries(), Retry: r.limits.policy.RetryAfter(p.tokens),
		Owner: job.Owner{
			Tenant: r.tenant(), Mode: cmp.Or(r.limits.mode, r.limits.profile), Deadline: r.s.Bounds.Deadline, Chain: &r.limits.resolved.learned,
		},
	}
	if e := p.state.Epoch; e != nil && e.Cut <= len(r.parsed.Messages) {
		j.Turn.Earlier = earlier(r.parsed.API, r.unmarked(0)[:e.Cut])
	}
	if !facts.Cache.Used.IsZero() && cached > 0 {
		j.Turn.Cached = core.Cached{Messages: cached, Until: facts.Cache.Until()}
	}
	if j.Turn.Trigger = d.Reason.Trigger(); overflow || r.lease.Overflowed() {
		j.Turn.Trigger = core.TriggerOverflow
	} else {
		j.Forced = d.Reason == epoch.Forced
	}
	if p.state.Epoch != nil {
		j.Turn.States = p.state.Epoch.States
	}
	if j.Target == 0 { // the caller asked for a condensation without a target
		j.Target = epoch.Target(facts, r.limits.policy)
	}
	return j
}

// earlier returns a reader of the client's messages that an epoch replaced. They are copied, because the job may outlive the request.
func earlier(api wire.API, own [][]byte) func() ([]core.Message, error) {
	for i := range own {
		own[i] = bytes.Clone(own[i])
	}
	return func() ([]core.Message, error) {
		c, err := library.Conversation(api, own)
		if err != nil {
			return nil, err
		}
		all, places := slices.Clone(c.Own.Journal.Messages()), library.Places(api, own)
		for i := 0; i < len(all) && len(all) == len(places); i++ {
			all[i].Number = places[i]
		}
		return all, nil
	}
}

// numbers returns the number of the client's message that each message of the view is, shortened or not, 0 for none; how many messages
// the last epoch made; and how many the last request had.
func (p *plan) numbers() (numbers []int, block, cached int) {
	r := p.req
	own, origin := r.unmarked(0), p.state.Origin(r.parsed, r.rolling)
	places, answers := library.Places(r.parsed.API, own), map[string][]int{} // by the ID of a call or result
	for i := range own {
		for _, id := range idsOf(&r.parsed.Messages[i]) {
			answers[id] = append(answers[id], i)
		}
	}
	view, first := wire.Joined(r.parsed.API, p.messages)
	numbers, first = make([]int, len(view)), append(first, len(p.messages))
	sent := p.state.Cached(r.rolling, origin)
	at := 0
	for k, i := range first[:len(view)] {
		from := origin[i]
		if from < 0 { // the epoch wrote it, or left it
			block = k + 1
			raw := wire.Unmark(p.messages[i])
			from = at + slices.IndexFunc(own[at:], func(o []byte) bool { return bytes.Equal(o, raw) })
			if one, err := wire.ParseMessages(r.parsed.API, p.messages[i:i+1]); err == nil {
				if ids := idsOf(&one[0]); len(ids) > 0 && len(answers[ids[0]]) == 1 && slices.Equal(ids, idsOf(&r.parsed.Messages[answers[ids[0]][0]])) {
					from = answers[ids[0]][0]
				}
			}
		}
		if alone := len(view[k]) == len(p.messages[i]); alone && from >= at {
			numbers[k], at = places[from], from+1
		}
		if first[k+1] <= sent {
			cached = k + 1
		}
	}
	return numbers, block, cached
}

// idsOf returns the IDs of the calls and results of a message.
func idsOf(m *wire.Message) []string {
	calls := plain.Each(m.Calls, func(id string) string { return "call " + id })
	return append(calls, plain.Each(m.Results, func(id string) string { return "result " + id })...)
}

// tenant identifies who waits among others: the tenant, or without tokens the credential.
func (r *request) tenant() string { return cmp.Or(r.t.who.Tenant, r.from.key.Tenant) }

// tries returns a function that counts the attempts in a report, and logs why one failed. It may be called after r has
// ended.
func (r *request) tries() func(*condense.Report) {
	g, mode := r.g, cmp.Or(r.limits.mode, r.limits.profile)
	logger, conversation := r.s.Reports.Logger, r.lease.Conversation
	return func(report *condense.Report) {
		if report.Later != "" {
			logger.Info("epoch waits", "conversation", conversation, "mode", mode, "reason", report.Later)
		}
		for i := range report.Attempts {
			a := &report.Attempts[i]
			needed := a.Outcome != core.OutcomeSkipped || a.Err != nil
			if !needed || errors.Is(a.Err, context.Canceled) { // the client has gone
				continue
			}
			g.attempted(a.Provider, a.Outcome, a.Reason, mode)
		}
	}
}

// ingest shortens tool results that were never sent. The shortened form depends only on the result's round of tools
// and on the user's newest message before it, so it is the same after a restart. That of a user's own provider may not be, so the
// state is stored before the request is sent, shortened or not.
func (p *plan) ingest(ctx context.Context) error {
	r, o := p.req, p.req.s.Ingest
	if p.handles && o.MaxResult == 0 {
		o.MaxResult = r.s.Recall.MaxResult
	}
	builtin, own := !o.Off || o.MaxResult > 0, len(r.limits.resolved.Ingest) > 0
	if o.whole || !builtin && !own {
		return nil
	}
	var shortened, between [][]byte
	from := wire.OpenRound(r.parsed.Messages)
	short := sync.OnceValues(func() (after [][]byte, err error) {
		r.lease.Storing.Store(true) // until the lease ends
		whole := r.round(from)
		after = whole
		if own {
			p.durable = true
			if after, err = r.shorten(ctx, r.g.host, whole, p.state.Family); err != nil {
				return nil, err
			}
			between = slices.DeleteFunc(slices.Clone(after), func(raw []byte) bool {
				return slices.ContainsFunc(whole, func(w []byte) bool { return bytes.Equal(w, raw) })
			})
		}
		if builtin {
			host, err := r.g.ingesters.get(ctx, o)
			if err != nil {
				return nil, err
			}
			if after, err = r.shorten(ctx, host, after, ""); err != nil {
				return nil, err
			}
		}
		return after[len(whole)-1-len(r.parsed.Messages[from:]) : len(whole)-1], nil // without the user's message and the closing answer
	})
	var errs error
	p.state.Shorten(r.parsed, r.rolling, func(i int) []byte {
		m := &r.parsed.Messages[i]
		if i < from || len(m.Results) == 0 {
			return nil
		}
		all, err := short()
		if errs = err; err != nil {
			return nil
		}
		raw := all[i-from]
		if len(raw) >= len(m.Raw) || r.isProtected(m.Raw) {
			return nil
		}
		p.ingested++
		shortened = append(shortened, raw)
		return raw
	})
	if own && p.ingested > 0 && errs == nil { // a view that the vendor would refuse would stop epochs, too
		v := r.viewOf(p.state)
		errs = r.check(&v)
	}
	if errs != nil || !p.handles || len(shortened) == 0 {
		return errs
	}
	return p.keepRound(from, shortened, between)
}

// round returns the messages from an index on for a provider that shortens their results: after the user's last message,
// which shows why the results are read, and before an answer, because the last request is never changed.
func (r *request) round(from int) [][]byte {
	raw := append(messages.Raw(r.parsed.Messages[from:]), rawjson.Append(nil, wire.Of(r.parsed.API).Said, "."))
	for _, m := range slices.Backward(r.parsed.Messages[:from]) {
		if m.Role == "user" && m.Typed && len(m.Results) == 0 {
			return slices.Insert(raw, 0, m.Raw)
		}
	}
	return raw
}

// shorten returns the messages of a round with shorter results, as a host makes them: the gateway's own, for a conversation of that name,
// with the providers of the configuration, or one of the built-in passes. A provider that fails changes nothing, and is counted.
func (r *request) shorten(ctx context.Context, host *condense.Host, raw [][]byte, conversation string) ([][]byte, error) {
	doc, err := messages.Read(r.parsed.API, raw)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, r.s.Bounds.Deadline)
	defer cancel()
	turn := ingest.Turn()
	turn.NoRecall, turn.API, turn.Conversation = !r.handles, r.holds(), conversation
	if host == r.g.host {
		turn.Profile, turn.Mode, turn.Dir, turn.MayAsk = r.limits.profile, r.limits.mode, r.s.folder(r.parsed), r.mayAsk()
	}
	report, err := host.Manage(limited, condense.ResumeConversation(doc.Journal), turn)
	if host == r.g.host && report != nil && ctx.Err() == nil {
		if r.tries()(report); len(report.Attempts) > 0 {
			err = nil
		}
	}
	if err != nil || !report.Acted {
		return raw, err
	}
	out, err := messages.Write(r.parsed.API, doc, true)
	if err != nil {
		return nil, err
	}
	after := slices.Collect(rawjson.Elements(out))
	if len(after) != len(raw) {
		return nil, fmt.Errorf("ingest: %d messages became %d", len(raw), len(after))
	}
	for i := range after {
		if len(after[i]) >= len(raw[i]) {
			after[i] = raw[i]
		}
	}
	return after, nil
}

// ingesters has the hosts that shorten results without the configuration, by their options: functions that open one once.
type ingesters struct{ of sync.Map }

func (g *ingesters) get(ctx context.Context, o Ingest) (*condense.Host, error) {
	open, _ := g.of.LoadOrStore(o, sync.OnceValues(func() (*condense.Host, error) {
		return ingest.Open(context.WithoutCancel(ctx), ingest.Options{Lossless: !o.Off, MaxResult: o.MaxResult})
	}))
	return open.(func() (*condense.Host, error))() //nolint:errcheck,forcetypeassert // all are
}

func (g *ingesters) close() (err error) {
	for _, open := range g.of.Range {
		if h, failed := open.(func() (*condense.Host, error))(); failed == nil { //nolint:errcheck,forcetypeassert // all are
			err = errors.Join(err, h.Close())
		}
	}
	return err
}

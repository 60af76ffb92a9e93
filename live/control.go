package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
)

// order returns the waiting order of the kind do that this request must carry out, or nil. A request that leaves the
// branch, such as a side question, carries out no order.
func (p *plan) order(do string) *session.Order {
	c := p.req.lease
	o := c.Control().Order
	if o == nil || o.Do != do || o.Number <= p.state.Orders || c.Unread || p.req.s.Observe || c.Kind != lineage.Continue &&
		c.Kind != lineage.Rewind {
		return nil
	}
	return o
}

// paused reports whether the user has paused all epochs except those without which the vendor refuses a request.
func (r *request) paused() bool { return r.lease.Control().Paused }

// completeOrder notes that an order was carried out, or else, in result, why it had no effect.
func (p *plan) completeOrder(o *session.Order, result string) {
	done := *o
	done.Waits, done.Done, done.Result, done.Before = "", p.req.in.start, result, p.tokens
	p.obeys = &done
}

// rejectOrder notes that an order is given up, and why.
func (p *plan) rejectOrder(o *session.Order, why string) {
	p.completeOrder(o, why)
	p.obeys.After = p.tokens
	p.state.Orders, p.durable = o.Number, true
}

// deferOrder notes why an order has to wait for another request.
func (p *plan) deferOrder(o *session.Order, why string) {
	if o.Waits != why {
		waiting := *o
		waiting.Waits = why
		p.obeys = &waiting
	}
}

// reportOrder stores the outcome of an order for the user to see. Whether the order counts as done is in the lineage's
// state.
func (p *plan) reportOrder(ctx context.Context) {
	r := p.req
	o := p.obeys
	if p.obeys = nil; o == nil {
		return
	}
	c := r.lease
	known, err := session.Change(ctx, r.g.store, c.Session.Key, p.state.Family, r.in.start, func(all *session.Control) error {
		same := all.Order != nil && all.Order.Number == o.Number
		switch {
		case !o.Done.IsZero():
			all.Last = o
			if same {
				all.Order = nil
			}
		case same:
			all.Order.Waits = o.Waits
		}
		return nil
	})
	if err != nil {
		r.g.fault("order", err)
		return
	}
	c.SetControl(known)
	if !o.Done.IsZero() {
		r.s.Reports.Logger.InfoContext(ctx, "order", "do", o.Do, "changed", o.Changed, "before", o.Before, "after", o.After, "result", o.Result)
	}
}

// undoIfAsked undoes the last epoch if the user ordered that, and reports whether it did.
func (p *plan) undoIfAsked() (bool, error) {
	r := p.req
	o := p.order(session.OrderUndo)
	if o == nil {
		return false, nil
	}
	c := r.lease
	next, err := p.state.Undo(c.Former(), r.parsed, r.rolling, r.in.start)
	switch {
	case errors.Is(err, lineage.ErrNothing):
		p.rejectOrder(o, "there is no condensation to undo")
		return false, nil
	case errors.Is(err, lineage.ErrRound):
		p.deferOrder(o, "the model thinks in this turn: it can be had when the turn is over")
		return false, nil
	case err != nil:
		return false, err
	}
	trial := r.viewOf(next)
	size := trial.tokens
	if size > r.limits.policy.Limit || size > r.limits.policy.Window {
		p.rejectOrder(o, fmt.Sprintf("without it the request has about %d tokens, and at most %d fit", size, min(r.limits.policy.Limit, r.limits.policy.Window)))
		return false, nil
	}
	if r.check(&trial) != nil {
		p.deferOrder(o, "the vendor would refuse the request in the middle of this turn")
		return false, nil //nolint:nilerr // another request will do
	}
	next.Orders = o.Number
	p.next, p.undone = next, true
	p.completeOrder(o, "")
	p.obeys.Before, p.obeys.After, p.obeys.Changed = p.tokens, size, true
	p.view = trial
	return true, nil
}

// applyUserOrders adjusts a decision to the user's wishes. It returns the order that the decision carries out, or nil.
func (p *plan) applyUserOrders(d epoch.Decision, overflow bool) (epoch.Decision, *session.Order) {
	c, o := p.req.lease, p.order(session.OrderNow)
	refused := overflow || c.Overflowed() || p.tokens > p.req.limits.policy.Window
	switch {
	case o != nil && (d.Reason != epoch.Forced || p.req.paused() && !refused): // a paused one waits for what was ordered
		d.Reason, d.Wait, d.Turns = epoch.Asked, epoch.NoWait, 0
	case o != nil:
	case p.req.paused() && !refused, p.state.Held && d.Reason != epoch.Forced:
		d.Reason = epoch.None
	}
	if o != nil {
		if d.Target = o.Tokens; o.Percent > 0 {
			d.Target = int(o.Percent / 100 * float64(p.req.limits.policy.Window))
		}
	}
	return d, o
}

// hostFor returns the host for an order: one with only the order's provider, or the gateway's own. The caller must call
// leave when done.
func (r *request) hostFor(ctx context.Context, o *session.Order) (host *condense.Host, leave func() error, err error) {
	none := func() error { return nil }
	if o.Provider == "" {
		return r.g.host, none, nil
	}
	c := r.g.host.Config()
	p, err := c.Provider(o.Provider)
	if err != nil {
		return nil, none, err
	}
	host, err = r.g.host.With(context.WithoutCancel(ctx), c.Override(config.Override{Chain: []config.Provider{*p}}))
	if err != nil {
		return nil, none, err
	}
	return host, host.Close, nil
}

// obey condenses as an order asks. If that needs a language model, it runs in the background and a later request uses
// the result: then the error is [job.ErrAsks].
func (p *plan) obey(ctx context.Context, j *job.Job, o *session.Order) (*job.Prepared, error) {
	if o.Profile != "" && !slices.Contains(p.req.g.host.Config().Profiles(), o.Profile) {
		return nil, fmt.Errorf("this gateway has no profile %q", plain.Clip(o.Profile))
	}
	host, leave, err := p.req.hostFor(ctx, o)
	if err != nil {
		return nil, err
	}
	made, err := p.req.g.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) { return j.Run(ctx, host, job.Inline) })
	if !errors.Is(err, job.ErrAsks) {
		return made, errors.Join(err, leave())
	}
	if p.req.lease.Busy() { // or each request in the meantime would count
		return nil, errors.Join(job.ErrAsks, leave())
	}
	if err := j.Turn.MayAsk(); err != nil {
		return nil, errors.Join(err, leave())
	}
	started := p.req.prepareWith(j, func(ctx context.Context) (*job.Prepared, error) {
		made, err := j.Run(ctx, host, job.Whole)
		return made, errors.Join(err, leave())
	})
	if !started {
		return nil, errors.Join(job.ErrAsks, leave())
	}
	return nil, job.ErrAsks
}

// protected returns the request's pins combined with the user's protections.
func (r *request) protected() job.Pins {
	all := r.lease.Control().Protections
	if len(all) == 0 {
		return r.pins
	}
	own := r.pins
	is := map[string]bool{}
	for _, p := range all {
		if p.Text != "" {
			continue
		}
		at := slices.IndexFunc(r.rolling, func(h wire.Hash) bool { return session.At(h) == p.At })
		if at < 0 {
			continue // the client went back to a point before the message
		}
		doc, err := messages.Read(r.parsed.API, [][]byte{r.parsed.Messages[at].Raw})
		if err != nil {
			continue
		}
		for _, m := range doc.Journal.View() {
			is[messages.Identity(m)] = true
		}
	}
	return func(view []core.Message, rest bool) []string {
		var ids []string
		if own != nil {
			ids = own(view, rest)
		}
		for _, m := range view {
			if is[messages.Identity(m)] || session.Protects(all, messages.Text(m.Parts)) {
				ids = append(ids, m.ID)
			}
		}
		return ids
	}
}

// missing returns the indices of the protected texts that occur nowhere in the request.
func (r *request) missing() (all []int) {
	for i, p := range r.lease.Control().Protections {
		text := escaped(p.Text)
		if p.Text == "" || slices.ContainsFunc(r.parsed.Messages, func(m wire.Message) bool { return bytes.Contains(m.Raw, text) }) {
			continue
		}
		doc, err := messages.Read(r.parsed.API, messages.Raw(r.parsed.Messages)) // in another spelling, or over borders of blocks
		has := func(m core.Message) bool { return strings.Contains(messages.Text(m.Parts), p.Text) }
		if err == nil && !slices.ContainsFunc(doc.Journal.View(), has) {
			all = append(all, i)
		}
	}
	return all
}

// noteShreds adds the parts of the messages that are new to a description.
func (r *request) noteShreds(a *session.About) {
	size, from := 1<<min(max(9, bits.Len(uint(a.Original/8))), 14), 1+slices.Index(r.rolling, a.UpTo)
	if a.Shreds = slices.Clone(a.Shreds); from == 0 || len(a.Shreds) < size {
		a.Shreds, from = make(session.Shreds, size), 0
	}
	a.UpTo = r.rolling[len(r.rolling)-1]
	for _, m := range r.parsed.Messages[from:] {
		a.Shreds.Add(m.Raw) // with what is not text: to read it would cost six times its size
	}
}

// isProtected reports whether a message contains a text that the user protects, or cannot be parsed.
func (r *request) isProtected(raw []byte) bool {
	all := r.lease.Control().Protections
	if !slices.ContainsFunc(all, func(p session.Protection) bool { return p.Text != "" }) {
		return false
	}
	doc, err := messages.Read(r.parsed.API, [][]byte{raw})
	has := func(m core.Message) bool { return session.Protects(all, messages.Text(m.Parts)) }
	return err != nil || slices.ContainsFunc(doc.Journal.View(), has)
}

// describe updates the conversation's description, before its state is stored.
func (p *plan) describe() {
	c := p.req.lease
	a := *cmp.Or(c.Said(), &session.About{})
	if a.Agent == "" {
		a.Folder, a.Title = shortName(namedIn(p.req.parsed)), titleOf(p.req.parsed)
	}
	a.Agent, a.Profile, a.Window, a.Limit, a.Threshold = p.req.from.agent.Name, cmp.Or(p.req.limits.mode,
		p.req.limits.profile), p.req.limits.policy.Window, p.req.limits.policy.Limit, p.req.limits.policy.Threshold
	a.Missing, a.Parts = p.req.missing(), p.state.Parts(p.req.parsed)
	a.Tokens, a.Original, a.Waits = p.tokens, p.state.Estimate(p.original), string(p.awaits)
	p.req.noteShreds(&a)
	f := p.facts(false)
	a.Grows = f.Grown / f.Answers
	if len(p.req.limits.resolved.Chain) > 0 {
		a.Chain = p.req.limits.resolved.Chain[0].Name
	}
	if p.epoch != nil {
		if a.Provider, a.Failing = p.epoch.Provider, nil; p.epoch.Fallback {
			a.Fallback = a.Fallback.Again(p.made.Maker.Cause, p.req.in.start)
		} else {
			a.Fallback = nil
		}
	} else if e := p.state.Epoch; e != nil && e.Truth == nil {
		p.req.g.stats.Change(c.Conversation, e.Time, func(judged *Epoch) {
			now := *e
			now.Truth, p.state.Epoch = (*epoch.Truth)(judged.Truth), &now
		})
	}
	if price, known := p.req.tariff.prices(p.tokens); known {
		a.Input, a.Write, a.Read = price.input, price.write, price.read
	}
	c.Describe(a)
}

// Limits of the search for a folder or a title, and of the length of the result. Sizes are in bytes.
const (
	maxRead     = 256 << 10
	maxMessage  = 8 // messages that are searched, from the user's first one on: after Claude Code's own compaction it is the fifth
	longestName = 80
)

// titleOf returns the beginning of the first text that the user typed.
func titleOf(r *wire.Request) string {
	for _, m := range front(r) {
		if m.Role != "user" || len(m.Raw) > maxRead {
			continue
		}
		doc, err := messages.Read(r.API, [][]byte{m.Raw})
		if err != nil {
			continue
		}
		for _, m := range doc.Journal.View() {
			if typed := dialog.Typed(&m); len(typed) > 0 {
				return shortName(typed[0])
			}
		}
	}
	return ""
}

func shortName(text string) string {
	text = strings.TrimSpace(secret.Scrub(plain.Line(text[:min(len(text), maxRead)])))
	if len(text) > longestName {
		text = strings.ToValidUTF8(text[:longestName], "") + "…"
	}
	return text
}

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
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
func (x *known) order(do string) *session.Order {
	c := x.claim
	o := x.claim.Control().Order
	if o == nil || o.Do != do || o.Number <= c.State.Orders || c.Unread || x.s.Observe || c.Kind != lineage.Continue &&
		c.Kind != lineage.Rewind {
		return nil
	}
	return o
}

// paused reports whether the user has paused all epochs except those without which the vendor refuses a request.
func (x *known) paused() bool { return x.claim.Control().Paused }

// obeyed notes that an order was carried out, or else, in result, why it had no effect.
func (x *plan) obeyed(o *session.Order, result string) {
	done := *o
	done.Waits, done.Done, done.Result, done.Before = "", x.start, result, x.tokens
	x.obeys = &done
}

// dropped notes that an order is given up, and why.
func (x *plan) dropped(o *session.Order, why string) {
	x.obeyed(o, why)
	x.obeys.After = x.tokens
	x.claim.State.Orders, x.durable = o.Number, true
}

// waits notes why an order has to wait for another request.
func (x *plan) waits(o *session.Order, why string) {
	if o.Waits != why {
		waiting := *o
		waiting.Waits = why
		x.obeys = &waiting
	}
}

// reportOrder stores the outcome of an order for the user to see. Whether the order counts as done is in the lineage's
// state.
func (x *plan) reportOrder(ctx context.Context) {
	o := x.obeys
	if x.obeys = nil; o == nil {
		return
	}
	c := x.claim
	known, err := session.Change(ctx, x.store, c.Session.Key, c.State.Family, x.start, func(all *session.Control) error {
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
		x.fault("order", err)
		return
	}
	c.SetControl(known)
	if !o.Done.IsZero() {
		x.s.Reports.Logger.InfoContext(ctx, "order", "do", o.Do, "changed", o.Changed, "before", o.Before, "after", o.After, "result", o.Result)
	}
}

// undoIfAsked undoes the last epoch if the user ordered that, and reports whether it did.
func (x *plan) undoIfAsked() (bool, error) {
	o := x.order(session.OrderUndo)
	if o == nil {
		return false, nil
	}
	c := x.claim
	next, err := c.State.Undo(c.Former(), x.r, x.rolling, x.start)
	switch {
	case errors.Is(err, lineage.ErrNothing):
		x.dropped(o, "there is no condensation to undo")
		return false, nil
	case errors.Is(err, lineage.ErrRound):
		x.waits(o, "the model thinks in this turn: it can be had when the turn is over")
		return false, nil
	case err != nil:
		return false, err
	}
	trial := x.viewOf(next)
	size := trial.tokens
	if size > x.policy.Limit || size > x.policy.Window {
		x.dropped(o, fmt.Sprintf("without it the request has about %d tokens, and at most %d fit", size, min(x.policy.Limit, x.policy.Window)))
		return false, nil
	}
	if x.check(&trial) != nil {
		x.waits(o, "the vendor would refuse the request in the middle of this turn")
		return false, nil //nolint:nilerr // another request will do
	}
	next.Orders = o.Number
	x.next, x.undone = next, true
	x.obeyed(o, "")
	x.obeys.Before, x.obeys.After, x.obeys.Changed = x.tokens, size, true
	x.view = trial
	return true, nil
}

// wished adjusts a decision to the user's wishes. It returns the order that the decision carries out, or nil.
func (x *plan) wished(d epoch.Decision, overflow bool) (epoch.Decision, *session.Order) {
	c, o := x.claim, x.order(session.OrderNow)
	refused := overflow || c.Overflowed() || x.tokens > x.policy.Window
	switch {
	case o != nil && (d.Reason != epoch.Forced || x.paused() && !refused): // a paused one waits for what was ordered
		d.Reason, d.Wait, d.Turns = epoch.Asked, epoch.NoWait, 0
	case o != nil:
	case x.paused() && !refused, c.State.Held && d.Reason != epoch.Forced:
		d.Reason = epoch.None
	}
	if o != nil {
		if d.Target = o.Tokens; o.Percent > 0 {
			d.Target = int(o.Percent / 100 * float64(x.policy.Window))
		}
	}
	return d, o
}

// hostFor returns the host for an order: one with only the order's provider, or the gateway's own. The caller must call
// leave when done.
func (x *known) hostFor(ctx context.Context, o *session.Order) (host *condense.Host, leave func() error, err error) {
	none := func() error { return nil }
	if o.Provider == "" {
		return x.host, none, nil
	}
	c := x.host.Config()
	p, err := c.Provider(o.Provider)
	if err != nil {
		return nil, none, err
	}
	host, err = x.host.With(context.WithoutCancel(ctx), c.Override(config.Override{Chain: []config.Provider{*p}}))
	if err != nil {
		return nil, none, err
	}
	return host, host.Close, nil
}

// orderedJob returns the job that carries out an order to condense.
func (x *plan) orderedJob(d epoch.Decision, o *session.Order, overflow bool) *job.Job {
	j := x.job(d, overflow)
	j.Order = o.Number
	if o.Profile != "" {
		j.Turn.Profile, j.Turn.Mode = o.Profile, ""
	}
	return j
}

// obey condenses as an order asks. If that needs a language model, it runs in the background and a later request uses
// the result: then the error is [job.ErrAsks].
func (x *plan) obey(ctx context.Context, j *job.Job, o *session.Order) (*job.Prepared, error) {
	if o.Profile != "" && !slices.Contains(x.host.Config().Profiles(), o.Profile) {
		return nil, fmt.Errorf("this gateway has no profile %q", plain.Clip(o.Profile))
	}
	host, leave, err := x.hostFor(ctx, o)
	if err != nil {
		return nil, err
	}
	p, err := x.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) { return j.Run(ctx, host, job.Inline) })
	if !errors.Is(err, job.ErrAsks) {
		return p, errors.Join(err, leave())
	}
	if !x.mayAsk() {
		return nil, errors.Join(errors.New("the limit of condensations by a language model is reached"), leave())
	}
	started := x.prepareWith(j, func(ctx context.Context) (*job.Prepared, error) {
		p, err := j.Run(ctx, host, job.Whole)
		return p, errors.Join(err, leave())
	})
	if !started {
		return nil, errors.Join(job.ErrAsks, leave())
	}
	return nil, job.ErrAsks
}

// protected returns the request's pins combined with the user's protections.
func (x *known) protected() job.Pins {
	all := x.claim.Control().Protections
	if len(all) == 0 {
		return x.pins
	}
	own := x.pins
	var texts []string
	is := map[string]bool{}
	for _, p := range all {
		if p.Text != "" {
			texts = append(texts, p.Text)
			continue
		}
		at := slices.IndexFunc(x.rolling, func(h wire.Hash) bool { return session.At(h) == p.At })
		if at < 0 {
			continue // the client went back to a point before the message
		}
		doc, err := messages.Read(x.r.API, [][]byte{x.r.Messages[at].Raw})
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
			said := messages.Text(m.Parts)
			if is[messages.Identity(m)] || slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(said, t) }) {
				ids = append(ids, m.ID)
			}
		}
		return ids
	}
}

// isProtected reports whether a message contains a text that the user protects, or cannot be parsed.
func (x *known) isProtected(raw []byte) bool {
	all := x.claim.Control().Protections
	if !slices.ContainsFunc(all, func(p session.Protection) bool { return p.Text != "" }) {
		return false
	}
	doc, err := messages.Read(x.r.API, [][]byte{raw})
	if err != nil {
		return true
	}
	for _, m := range doc.Journal.View() {
		said := messages.Text(m.Parts)
		if slices.ContainsFunc(all, func(p session.Protection) bool { return p.Text != "" && strings.Contains(said, p.Text) }) {
			return true
		}
	}
	return false
}

// describe updates the conversation's description, before its state is stored.
func (x *plan) describe() {
	c := x.claim
	a := session.About{}
	if known := c.Said(); known != nil {
		a = *known
	}
	if a.Agent == "" {
		a.Folder, a.Title = folderOf(x.r), titleOf(x.r)
	}
	a.Agent, a.Profile, a.Window, a.Limit, a.Threshold = x.agent.Name, cmp.Or(x.mode,
		x.profile), x.policy.Window, x.policy.Limit, x.policy.Threshold
	a.Tokens, a.Original, a.Waits = x.tokens, c.State.Estimate(x.original), string(x.awaits)
	f := x.facts(false)
	a.Grows = f.Grown / f.Answers
	if len(x.resolved.Chain) > 0 {
		a.Chain = x.resolved.Chain[0].Name
	}
	if x.epoch != nil {
		a.Provider, a.Failing = x.epoch.Provider, nil
	}
	if p, known := x.prices(x.tokens); known {
		a.Input, a.Write, a.Read = p.input, p.write, p.read
	}
	c.Describe(a)
}

// Limits of the search for a folder or a title, and of the length of the result. Sizes are in bytes.
const (
	mostRead    = 256 << 10
	mostMessage = 4 // messages at the front that are searched
	longestName = 80
)

// folderOf returns the agent's working directory for people, if the request names it.
func folderOf(r *wire.Request) string {
	if named := namedIn(r); named != "" {
		return shortName(named)
	}
	return ""
}

// titleOf returns the beginning of the user's first message.
func titleOf(r *wire.Request) string {
	for i := range min(mostMessage, len(r.Messages)) {
		m := &r.Messages[i]
		if m.Role != "user" || len(m.Raw) > mostRead {
			continue
		}
		doc, err := messages.Read(r.API, [][]byte{m.Raw})
		if err != nil {
			continue
		}
		for _, m := range doc.Journal.View() {
			for _, p := range m.Parts {
				// Text that begins with < was written by a program.
				if t, ok := p.(core.Text); ok && t != "" && !strings.HasPrefix(strings.TrimSpace(string(t)), "<") {
					return shortName(string(t))
				}
			}
		}
	}
	return ""
}

func shortName(text string) string {
	text = strings.TrimSpace(secret.Scrub(plain.Line(text[:min(len(text), mostRead)])))
	if len(text) > longestName {
		text = strings.ToValidUTF8(text[:longestName], "") + "…"
	}
	return text
}

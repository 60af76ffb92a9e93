package live

import (
	"cmp"

	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/live/internal/payload"
)

// watched calls a method of the watcher. A panic in it does not affect the conversation.
func (g *Gateway) watched(f func()) {
	if err := g.safely("watch", func() error { f(); return nil }); err != nil {
		g.fault("watch", err)
	}
}

// watch passes a turn to the watcher.
func (p *plan) watch() {
	if p.req.s.Reports.Watch == nil || p.req.lease == nil || p.req.t.count {
		return
	}
	p.req.g.watched(p.show)
}

func (p *plan) show() {
	r := p.req
	t := &Turn{
		Time: r.in.start, Conversation: r.lease.Conversation, Tenant: r.from.key.Tenant, Agent: r.from.agent.Name, Model: r.parsed.Model,
		Profile: r.limits.profile, Mode: r.limits.mode, Messages: len(r.parsed.Messages), Tokens: p.tokens, Observe: r.s.Observe,
	}
	t.History, t.Window = p.state.Estimate(p.original), r.limits.policy.Window
	if t.DueAt = r.limits.policy.Limit; r.limits.policy.Threshold > 0 {
		t.DueAt = min(cmp.Or(r.limits.policy.Limit, r.limits.policy.Threshold), r.limits.policy.Threshold)
	}
	if p.epoch != nil {
		e := *p.epoch
		t.Epoch = &e
	}
	r.s.Reports.Watch.Turn(t)
}

// judge has the view of the epoch held against the client's whole history, beside the requests, and says the result where the epoch is
// shown. Without capacity for that, the epoch stays unmeasured.
func (p *plan) judge() {
	e, view, g, tenant, watch := *p.epoch, p.messages, p.req.g, p.req.tenant(), p.req.s.Reports.Watch
	api, history, size := p.req.parsed.API, messages.Raw(p.req.parsed.Messages), len(p.req.parsed.Body)
	leave, ok := g.preparing.Try(tenant, max(int64(size), maxPrepared/maxPreparing))
	if !ok {
		return
	}
	g.background.Go(func() {
		defer leave()
		if size >= largeBody {
			defer payload.Burst()()
		}
		err := g.safely("truth", func() error {
			of, err := g.runner.Judge(g.life, tenant, api, history, view)
			if err != nil {
				return err
			}
			g.stats.Change(e.Lineage, e.Time, func(o *Epoch) { o.Truth = (*Truth)(of) })
			if watch != nil {
				g.watched(func() { watch.Later(e.Lineage, e.Time, Finding{Truth: (*Truth)(of)}) })
			}
			return nil
		})
		if err != nil && g.life.Err() == nil {
			g.fault("truth", err)
		}
	})
}

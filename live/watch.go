package live

import (
	"cmp"

	"github.com/condensehq/condense/internal/live/watching"
)

// watched calls a method of the watcher. A panic in it does not affect the conversation.
func (g *Gateway) watched(f func()) {
	if err := g.safely("watch", func() error { f(); return nil }); err != nil {
		g.fault("watch", err)
	}
}

// watch passes a turn to the watcher.
func (x *plan) watch() {
	if x.s.Reports.Watch == nil || x.claim == nil || x.t.count {
		return
	}
	x.watched(x.show)
}

func (x *plan) show() {
	t := &watching.Turn{
		Time: x.start, Conversation: x.claim.Conversation, Tenant: x.key.Tenant, Agent: x.agent.Name, Model: x.r.Model,
		Profile: x.profile, Mode: x.mode, Messages: len(x.r.Messages), Tokens: x.tokens, Observe: x.s.Observe,
	}
	t.History, t.Window = x.claim.State.Estimate(x.original), x.policy.Window
	if t.DueAt = x.policy.Limit; x.policy.Threshold > 0 {
		t.DueAt = min(cmp.Or(x.policy.Limit, x.policy.Threshold), x.policy.Threshold)
	}
	if x.epoch != nil {
		e := *x.epoch
		t.Epoch = &e
	}
	x.s.Reports.Watch.Turn(t)
}

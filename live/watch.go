package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/watching"
	"github.com/condensehq/condense/internal/live/wire"
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
		Profile: x.profile, Mode: x.mode, Format: messages.Formats[x.r.API],
		Messages: make([][]byte, len(x.r.Messages)), System: x.r.System, Tools: x.r.Tools, Tokens: x.tokens, Observe: x.s.Observe,
	}
	t.History, t.Window = x.claim.State.Estimate(x.original), x.policy.Window
	if t.DueAt = x.policy.Limit; x.policy.Threshold > 0 {
		t.DueAt = min(cmp.Or(x.policy.Limit, x.policy.Threshold), x.policy.Threshold)
	}
	for i := range t.Messages {
		t.Messages[i] = wire.Unmark(x.r.Messages[i].Raw)
	}
	if x.epoch != nil {
		e := *x.epoch
		t.Epoch, t.View, t.Journal = &e, x.messages, x.journal
		defer x.shadows(t)
	}
	x.s.Reports.Watch.Turn(t)
}

// compares reports whether the profiles of [Options.Shadow] condense too, for comparison.
func (s *settings) compares() bool { return s.Reports.Watch != nil && len(s.Reports.Shadow) > 0 }

// mostShadows limits the waiting condensations for comparison; further ones are skipped.
const mostShadows = 16

// errNoShadow means that a condensation for comparison was skipped.
var errNoShadow = errors.New("too many epochs at the same time")

// idle is the interval at which a condensation for comparison checks whether requests still wait for theirs.
const idle = 20 * time.Millisecond

// shadows repeats the condensation of an epoch with the chains of other profiles, in the background and one after the
// other. Each begins when no request waits for a condensation.
func (x *plan) shadows(t *watching.Turn) {
	shadowed := x.shadowed
	if shadowed == nil {
		return
	}
	for _, profile := range x.s.Reports.Shadow {
		report := func(view [][]byte, err error) { x.s.Reports.Watch.Shadow(t.Conversation, t.Time, profile, view, err) }
		select {
		case x.waiting <- struct{}{}:
		default:
			report(nil, errNoShadow)
			continue
		}
		j := *shadowed
		// Do not count the attempts: a comparison is not part of the statistics.
		j.Turn.Profile, j.Turn.Mode, j.Journal, j.Tries = profile, "", false, nil
		x.background.Go(func() {
			defer func() { <-x.waiting }()
			x.shading.Lock()
			defer x.shading.Unlock()
			for x.runner.Epochs.Busy() && x.life.Err() == nil {
				select {
				case <-time.After(idle):
				case <-x.life.Done():
				}
			}
			ctx, cancel := context.WithTimeout(x.life, job.BackgroundDeadline)
			defer cancel()
			var view [][]byte
			err := x.safely("shadow", func() error {
				p, err := j.Run(ctx, x.host, job.Inline) // a comparison is not worth the price of a language model
				if err == nil {
					view = messages.Raw(p.After)
				}
				return err
			})
			x.watched(func() { report(view, err) })
		})
	}
}

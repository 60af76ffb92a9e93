package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

// A due is a decision to condense.
type due struct {
	reason  string
	trigger core.Trigger
	target  int // tokens of the whole prompt; 0 for the rule's
}

// decide says whether the next request should be condensed, and why.
func (x *play) decide(k int) (due, bool) {
	if !x.policy.Money {
		d := x.rule.Decide(x.sizes(), x.state, core.TriggerAutomatic)
		return due{reason: string(d.Reason), trigger: core.TriggerAutomatic}, d.Act
	}
	f := x.facts(k)
	d := epoch.Decide(f, x.when)
	if l := x.game.opts.Logger; l != nil {
		l.Debug("decision", "session", x.game.name, "request", k, "facts", f, "policy", x.when, "decision", d)
	}
	return due{reason: string(d.Reason), trigger: d.Reason.Trigger(), target: d.Target}, d.Reason != epoch.None
}

// facts returns the numbers that the decision before request k rests on, as the gateway would know them.
func (x *play) facts(k int) epoch.Facts {
	t := x.bills[0].tariff
	x.live.Counts = x.counts
	f := x.live.Facts(x.request(k), x.prompt(), x.game.starts[k])
	f.Retry = x.retry
	f.Cache.Write, f.Cache.Read = t.Caching.Prices(t.life())
	if t.Caching.Automatic { // else the client asks for one
		f.Cache.Usual = t.Life
	}
	return f
}

// request returns request k as far as the gateway's records of a conversation need it.
func (x *play) request(k int) *wire.Request {
	t := x.bills[0].tariff
	return &wire.Request{Model: t.Name, TTL: t.life(), Messages: x.authors[:x.game.turns[k]]}
}

// whenOf returns the policy that the gateway would follow: the rule's, adjusted by the replayed policy.
func whenOf(r policy.Rule, p *Policy) epoch.Policy {
	when := epoch.Of(r)
	when.MinSize, when.Share, when.Risk = p.Floor, p.Leave, p.Risk
	when.IgnoreCold, when.IgnorePayback = when.IgnoreCold || !p.Cold, when.IgnorePayback || !p.Payback
	return when
}

// life is the requested lifetime of cache entries; 0 if prefixes are cached automatically.
func (t *Tariff) life() time.Duration {
	if t.Caching.Automatic {
		return 0
	}
	return t.Life
}

// rates are the prices for a prompt of that size, relative to the price of input.
func (t *Tariff) rates(prompt int) lineage.Rates {
	p := t.info.PriceFor(prompt)
	write, read := t.Caching.Prices(t.life())
	return lineage.Rates{Write: cmp.Or(write, 1), Read: cmp.Or(read, 1), Answer: p.Output / p.Input}
}

// epoch condenses the view if it is due.
func (x *play) epoch(ctx context.Context, k, t int) error {
	if x.policy.Recorded {
		x.compacted(k, t)
		return nil
	}
	if x.policy.Strategy == nil {
		return nil
	}
	d, ok := x.decide(k)
	before := x.prompt()
	// A program that nothing checks may leave more than the limit: it is not asked again at every request either.
	must := d.reason == string(policy.ReasonLimit) && !x.policy.Strategy.Unchecked
	if !ok || !x.policy.Money && before < x.retry && !must {
		return nil
	}
	if !x.policy.Money {
		view, err := x.condensed(ctx, d)
		if view != nil {
			x.begin(k, t, d, before, view)
		}
		return err
	}
	// As in the gateway, no request waits for a condensation but one that the window forces: the next request uses it.
	forced := d.reason == string(epoch.Forced)
	view := x.takeReady()
	if view != nil && forced && x.sizeOf(view) > x.when.Limit { // too much has come since
		view = nil
	}
	if view == nil {
		made, err := x.condensed(ctx, d)
		if made == nil || err != nil {
			return err
		}
		if !forced {
			x.ready, x.since = made, x.played
			return nil
		}
		view = made
	}
	if x.sizeOf(view) >= before {
		x.retry = x.when.RetryAfter(before)
		return nil
	}
	x.begin(k, t, d, before, view)
	return nil
}

// takeReady returns the view that was condensed next to an earlier request, with the messages since; nil if there is none.
func (x *play) takeReady() []core.Message {
	if x.ready == nil {
		return nil
	}
	view := append(slices.Clip(x.ready), x.view[len(x.view)-(x.played-x.since):]...)
	x.ready = nil
	return view
}

// sizeOf returns the vendor's count of a request with a view.
func (x *play) sizeOf(view []core.Message) int { return x.head + x.scaled(core.TotalTokens(view)) }

// condensed returns the strategy's result for the view; nil if it fails or saves too little.
func (x *play) condensed(ctx context.Context, d due) ([]core.Message, error) {
	before := x.prompt()
	decision := x.rule.Decide(x.sizes(), x.state, d.trigger)
	budget := decision.Budget
	if d.target > 0 {
		budget.Target = min(budget.Limit, max(d.target, x.head+1))
	}
	after := before
	view, err := x.condense(ctx, budget, d.trigger)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		after = x.sizeOf(view)
	} else if x.fault == "" {
		x.fault = err.Error()
	}
	x.state = x.state.After(decision, after)
	if x.policy.Strategy.Unchecked && after > budget.Limit {
		x.retry = x.when.RetryAfter(after)
	}
	if !decision.Worth(after) && (!x.policy.Money || after >= before) {
		x.retry = x.when.RetryAfter(before)
		return nil, nil
	}
	return view, nil
}

// condense runs the strategy, which counts as we do. Messages that the model has not answered yet stay unchanged,
// unless that leaves too little room.
func (x *play) condense(ctx context.Context, budget core.Budget, trigger core.Trigger) ([]core.Message, error) {
	budget = core.Budget{
		Window: x.ours(budget.Window), Reserve: x.ours(budget.Reserve), Overhead: x.ours(budget.Overhead), Limit: x.ours(budget.Limit), Target: x.ours(budget.Target),
	}
	key := viewKey{x.policy.Strategy, x.blocks[len(x.blocks)-1].Sum, budget, trigger, len(x.epochs) + 1, x.policy.Money}
	if view, ok := x.game.views[key]; ok {
		return view, nil
	}
	view, err := x.attempt(ctx, budget, trigger)
	if err == nil {
		x.game.views[key] = view
	}
	return view, err
}

func (x *play) attempt(ctx context.Context, budget core.Budget, trigger core.Trigger) ([]core.Message, error) {
	open := len(x.view)
	for open > 0 && x.view[open-1].Role != core.RoleAssistant {
		open--
	}
	for open > 0 && x.view[open-1].Role == core.RoleAssistant {
		open--
	}
	if x.policy.Strategy.Unchecked {
		return x.unchecked(ctx, budget, trigger, open)
	}
	var first error
	for _, keep := range []int{open, len(x.view)} {
		chain, err := x.policy.Strategy.open(len(x.epochs)+1, x.game.opts.Now)
		if err != nil {
			return nil, err
		}
		messages := slices.Clone(x.view)
		for i := keep; i < len(messages); i++ {
			messages[i].Protected = true
		}
		out, err := chain.Run(ctx, &core.Request{
			Messages: messages, Trigger: trigger, Mode: x.game.session.Mode, System: x.game.session.System, Budget: budget, Typed: dialog.Typed, Counter: x.game.counter, NoRecall: x.policy.Money,
		})
		if err == nil && out.Provider != "" {
			for i := range out.Messages {
				out.Messages[i].Protected = false
			}
			return out.Messages, nil
		}
		first = cmp.Or(first, err)
		if ctx.Err() != nil || keep == len(x.view) {
			break
		}
	}
	if first == nil {
		return x.view, nil
	}
	return nil, first
}

// unchecked returns the result of a strategy that nothing checks, valid or not. It gets the messages that the model has answered; with no
// room for the others, all.
func (x *play) unchecked(ctx context.Context, budget core.Budget, trigger core.Trigger, open int) ([]core.Message, error) {
	rest := core.TotalTokens(x.view[open:])
	if open == 0 || budget.Room() <= rest {
		open, rest = len(x.view), 0
	}
	budget.Overhead += rest
	res, err := x.policy.Strategy.Provider.Condense(ctx, &core.Request{
		Messages: slices.Clone(x.view[:open]), Trigger: trigger, Mode: x.game.session.Mode, System: x.game.session.System, Budget: budget, Typed: dialog.Typed, Counter: x.game.counter,
	})
	if err != nil {
		return nil, err
	}
	view := res.Messages
	for i := range view {
		if view[i].ID == "" {
			view[i].ID = fmt.Sprintf("new-%d-%d", len(x.epochs)+1, i)
		}
		view[i].Tokens = core.MessageTokens(x.game.counter, view[i])
	}
	return append(view, x.view[open:]...), nil
}

// compacted replays a recorded compaction.
func (x *play) compacted(k, t int) {
	s := x.game.session
	for x.compact < len(s.Compactions) && s.Compactions[x.compact].At <= t {
		c := s.Compactions[x.compact]
		x.compact++
		if c.Summary == "" {
			continue
		}
		view := []core.Message{{ID: "summary-" + string(rune('a'+x.compact)), Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(c.Summary)}}}
		view[0].Tokens = core.MessageTokens(x.game.counter, view[0])
		x.summary += x.scaled(view[0].Tokens)
		view = append(view, s.Messages[c.KeptFrom:t]...)
		x.begin(k, t, due{reason: "recorded"}, x.prompt(), view)
	}
}

// begin makes view the next one that is sent.
func (x *play) begin(k, t int, d due, before int, view []core.Message) {
	kept := x.kept(view)
	x.cut = t - kept
	block, rest := view[:len(view)-kept], view[len(view)-kept:]
	if x.bills[0].tariff.Caching.Bound { // thinking after the old history is not valid after the new one
		block, rest = withoutReasoning(block, x.game.counter), withoutReasoning(rest, x.game.counter)
	}
	old := x.blocks
	x.reset(block)
	ours := x.talk()
	for i := range rest {
		x.add(rest[i])
	}
	x.memory.Read(view)
	clear(x.gone)
	unchanged := map[int]bool{}
	for i := range x.view {
		if at, ok := x.game.index[x.view[i].ID]; ok && x.view[i].Equal(x.game.session.Messages[at]) {
			unchanged[at] = true
		}
	}
	for i := range x.played {
		if !unchanged[i] {
			x.gone[i] = true
		}
	}
	after := x.prompt()
	e := PlayedEpoch{Request: k, At: t, Reason: d.reason, Before: before, After: after}
	x.judge(t, &e)
	x.live.Epoch = &lineage.Epoch{N: len(x.epochs) + 1, Cut: x.cut, Our: ours, Reason: epoch.Reason(d.reason), Time: x.game.starts[k], Before: before, After: after}
	x.ends = [2]int{len(x.blocks) - 1, 0}
	same := 0
	for same < min(len(old), len(x.blocks)) && old[same].Sum == x.blocks[same].Sum {
		same++
	}
	head := 0
	if same > 0 {
		head = old[same-1].End
	}
	for i := range x.bills {
		d := &x.bills[i]
		b := debt{epoch: len(x.epochs), saved: before - after}
		if w, r := d.tariff.Caching.Prices(d.tariff.life()); after < before && r > 0 {
			turns := 0.0
			if k > 0 && x.game.starts[k].Sub(x.game.starts[k-1]) < d.tariff.Life {
				turns = max(0, (w*float64(after-head)-r*float64(before-head))/(r*float64(before-after)))
			}
			b.predicted = &turns
		}
		d.debts = append(d.debts, b)
	}
	x.epochs = append(x.epochs, e)
}

// kept returns the number of messages at the end of a condensed view that are the session's own, unchanged since the last cut. The
// gateway freezes only the messages before them.
func (x *play) kept(view []core.Message) int {
	n, most := 0, min(len(view), len(x.view), x.played-x.cut)
	for n < most && view[len(view)-1-n].ID == x.view[len(x.view)-1-n].ID && view[len(view)-1-n].Equal(x.view[len(x.view)-1-n]) {
		n++
	}
	return n
}

func withoutReasoning(view []core.Message, c core.Counter) []core.Message {
	out := make([]core.Message, 0, len(view))
	for _, m := range view {
		if slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok }) {
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok })
			if len(m.Parts) == 0 {
				continue
			}
			m.Tokens = core.MessageTokens(c, m)
		}
		out = append(out, m)
	}
	return out
}

// judge measures the view of an epoch against the messages after message t, and the truth of it against those before.
func (x *play) judge(t int, e *PlayedEpoch) {
	key := markKey{t, x.blocks[len(x.blocks)-1].Sum}
	if m, ok := x.game.marks[key]; ok {
		e.Panel, e.User, e.Truth = m.Panel, m.User, m.Truth
		return
	}
	end, turns := len(x.game.session.Messages), 0
	for _, at := range x.game.turns {
		if at >= t {
			if turns++; turns > score.TurnsOfTheFuture {
				end = at
				break
			}
		}
	}
	s := x.game.scorer(t, end).Score(x.view)
	if turns >= score.TurnsAfter {
		e.Panel = value(s.Panel())
	}
	if e.User = value(s.UIR.Value()); turns > 0 {
		e.Truth = new(Truth(x.game.session, t).Measure(x.view).Truth)
	}
	x.game.marks[key] = e
}

func (g *game) scorer(at, end int) *score.Scorer {
	k := scorerKey{nil, at, end}
	if g.scorers[k] == nil {
		g.scorers[k] = score.NewScorer(score.Cut{Session: g.session, At: at, End: end, Compaction: -1}, score.Common())
	}
	return g.scorers[k]
}

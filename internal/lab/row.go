package lab

import (
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

// A Row is what one strategy made of one cut under one budget.
type Row struct {
	Strategy string `json:"strategy"`
	Budget   string `json:"budget"`
	Session  string `json:"session"` // [SessionInfo.Name]
	Source   string `json:"source"`
	Mode     string `json:"mode"`
	Cut      string `json:"cut"`
	At       int    `json:"at"` // messages before the cut
	// Before, Room and After are tokens of the messages: as they were, as they may be,
	// as they are.
	Before int `json:"before"`
	Room   int `json:"room"`
	After  int `json:"after"`
	// Outcome is [core.OutcomeApplied] if the result is on target, insufficient, no-op,
	// rejected or failed. Of the last two there is no result to measure.
	Outcome core.Outcome `json:"outcome"`
	// Provider is the last candidate of a chain that contributed.
	Provider string `json:"provider,omitempty"`
	// Error says why it was rejected or failed.
	Error string `json:"error,omitempty"`
	// Setbacks are the candidates of a chain that failed or were rejected while another
	// one did the work; Error is then the first of theirs.
	Setbacks int `json:"setbacks,omitempty"`
	// Values are the measures by name; one that is not defined here is absent.
	Values map[string]float64 `json:"values"`
	// KindsBefore and KindsAfter are tokens by kind, see tokens.Kind.
	KindsBefore map[tokens.Kind]int `json:"kinds_before"`
	KindsAfter  map[tokens.Kind]int `json:"kinds_after"`
	Usage       core.Usage          `json:"usage,omitzero"`
}

// measured reports whether there is a result to judge.
func (r *Row) measured() bool {
	return r.Outcome != core.OutcomeRejected && r.Outcome != core.OutcomeFailed
}

// overSize is the share of the budget above which a result is not what was asked for.
const overSize = 1.03

// A bench is where the strategies work on one cut.
type bench struct {
	session *score.Session
	name    string
	counter *tokens.Counter
	scorer  *score.Scorer
	task    task
	system  int // tokens
	seed    uint64
	now     func() time.Time
}

func (b *bench) row(strategy string) Row {
	return Row{
		Strategy: strategy, Budget: b.task.budget, Session: b.name, Source: b.session.Source, Mode: b.session.Mode,
		Cut: b.task.cut.Name, At: b.task.cut.At, Before: b.task.cut.Tokens, Room: b.task.room, Values: map[string]float64{},
	}
}

// request returns what a host would ask, with no limit but the target: a strategy that
// does not reach it is judged by what it reached.
func (b *bench) request(messages []core.Message, trigger core.Trigger) *core.Request {
	before := 0
	for i := range messages {
		before += messages[i].Tokens
	}
	target := b.system + b.task.room
	limit := max(target, b.system+before)
	return &core.Request{
		Messages: messages, Trigger: trigger, Mode: b.session.Mode, System: b.session.System, Counter: b.counter,
		Budget: core.Budget{Window: limit, Overhead: b.system, Limit: limit, Target: target},
	}
}

// bounded returns the row of one of the bounds.
func (b *bench) bounded(name string) Row {
	r := b.row(name)
	start := b.now()
	view := b.boundView(name)
	r.Values["ms"] = milliseconds(b.now().Sub(start))
	r.Outcome = core.OutcomeApplied
	b.judge(&r, view)
	delete(r.Values, "payback")
	return r
}

// boundView returns what one of the bounds makes.
func (b *bench) boundView(name string) []core.Message {
	switch name {
	case Oracle:
		return b.scorer.Oracle(b.task.room, b.counter)
	case Random:
		return b.scorer.RandomLines(b.task.room, b.seed, b.counter)
	case KeepLast:
		return score.KeepLast(b.task.cut.Prefix(), b.task.room, b.counter)
	}
	return nil
}

// run returns the row of a strategy. The error is that of ctx.
func (b *bench) run(ctx context.Context, s *Strategy) (Row, error) {
	r := b.row(s.Name)
	out, took, err := b.condense(ctx, s, b.task.cut.Prefix(), 1)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	r.Values["ms"] = milliseconds(took)
	if err != nil {
		r.Outcome, r.Error = core.OutcomeFailed, err.Error()
		return r, nil //nolint:nilerr // that a strategy fails is a result
	}
	r.Usage, r.Provider = out.Usage, out.Provider
	r.Outcome, r.Error = outcome(out)
	if r.Outcome == core.OutcomeRejected {
		r.Values["lawful"] = 0
	}
	if !r.measured() {
		return r, nil
	}
	r.Values["lawful"] = 1
	for _, a := range out.Attempts {
		if a.Outcome == core.OutcomeRejected {
			r.Values["lawful"] = 0
		}
		if a.Outcome == core.OutcomeRejected || a.Outcome == core.OutcomeFailed {
			if r.Setbacks++; r.Error == "" && a.Err != nil {
				r.Error = a.Provider + ": " + a.Err.Error()
			}
		}
	}
	r.Values["calls"], r.Values["usd"] = float64(out.Usage.Calls), out.Usage.USD
	b.judge(&r, out.Messages)
	if out.Usage.Calls == 0 {
		again, _, err := b.condense(ctx, s, out.Messages, 2)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Values["stable"] = 0
		if err == nil && again.Edit.Empty() {
			r.Values["stable"] = 1
		}
	}
	return r, nil
}

// condense asks s.
func (b *bench) condense(ctx context.Context, s *Strategy, messages []core.Message, round int) (*core.ChainResult, time.Duration, error) {
	chain, err := s.open(round, b.now)
	if err != nil {
		return nil, 0, err
	}
	out, err := chain.Run(ctx, b.request(messages, core.TriggerAutomatic))
	if err != nil {
		return nil, 0, err
	}
	var took time.Duration
	for _, a := range out.Attempts {
		took += a.Duration
	}
	return out, took, nil
}

// outcome returns what came of a chain as a whole, and why nothing did.
func outcome(c *core.ChainResult) (core.Outcome, string) {
	worst := core.OutcomeNoOp
	var errs []error
	for _, a := range c.Attempts {
		switch a.Outcome {
		case core.OutcomeApplied:
			return core.OutcomeApplied, ""
		case core.OutcomeRejected, core.OutcomeFailed:
			errs = append(errs, a.Err)
			if worst == core.OutcomeNoOp {
				worst = a.Outcome
			}
		case core.OutcomeInsufficient, core.OutcomeNoOp, core.OutcomeSkipped:
		}
	}
	if c.Provider != "" {
		return core.OutcomeInsufficient, ""
	}
	if err := errors.Join(errs...); err != nil {
		return worst, err.Error()
	}
	return worst, ""
}

// judge measures view.
func (b *bench) judge(r *Row, view []core.Message) {
	prefix := b.task.cut.Prefix()
	for i := range view {
		r.After += core.MessageTokens(b.counter, view[i])
	}
	scores(r.Values, b.scorer.Score(view))
	r.Values[MeasureSize] = float64(r.After) / float64(r.Room)
	r.Values[MeasureKept] = float64(r.After) / float64(max(1, r.Before))
	r.KindsBefore, r.KindsAfter = b.counter.Breakdown(prefix...), b.counter.Breakdown(view...)
	same, sameTokens, sameBytes := 0, 0, 0
	for same < min(len(prefix), len(view)) && prefix[same].Equal(view[same]) {
		sameTokens += prefix[same].Tokens
		sameBytes += core.ContentBytes(prefix[same].Parts...)
		same++
	}
	all := 0
	for i := range prefix {
		all += core.ContentBytes(prefix[i].Parts...)
	}
	r.Values["head_messages"] = float64(same) / float64(max(1, len(prefix)))
	r.Values["head_bytes"] = float64(sameBytes) / float64(max(1, all))
	if turns, ok := payback(r.Before, r.After, sameTokens, r.Usage); ok {
		r.Values["payback"] = turns
	}
}

// What a cached token costs to read and to write, and one of output, of one of input:
// the prices of Anthropic's models.
const (
	cacheRead  = 0.1
	cacheWrite = 1.25
	output     = 5
)

// payback returns after how many turns a condensation has paid for itself: what is written
// anew to the cache, and the model's work, over what every turn reads less.
func payback(before, after, head int, u core.Usage) (float64, bool) {
	if after >= before {
		return 0, false
	}
	model := float64(u.InputTokens-u.CachedTokens) + cacheRead*float64(u.CachedTokens) + output*float64(u.OutputTokens)
	once := cacheWrite*float64(max(0, after-head)) + model
	return once / (cacheRead * float64(before-after)), true
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

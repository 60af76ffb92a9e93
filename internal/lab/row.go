package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/lab/truth"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// A Row is the result of one strategy at one cut and budget.
type Row struct {
	Strategy string `json:"strategy"`
	Budget   string `json:"budget"`
	Session  string `json:"session"` // [SessionInfo.Name]
	Source   string `json:"source"`
	Mode     string `json:"mode"`
	Cut      string `json:"cut"`
	At       int    `json:"at"` // messages before the cut
	// Before, Room and After are tokens of messages: before the strategy, of the budget, and after the strategy.
	Before int `json:"before"`
	Room   int `json:"room"`
	After  int `json:"after"`
	// Outcome is applied if the result meets the target, else insufficient, no-op, rejected or failed.
	// After the last two there is no result to measure.
	Outcome core.Outcome `json:"outcome"`
	// Provider is the last provider of the chain that contributed.
	Provider string `json:"provider,omitempty"`
	// Error is the reason of a rejection or failure.
	Error string `json:"error,omitempty"`
	// Setbacks is the number of providers of the chain that failed, were rejected or could not work while another one
	// contributed. Error is then the first of their errors.
	Setbacks int `json:"setbacks,omitempty"`
	// SavedBy has the tokens that each provider of the chain saved, if any.
	SavedBy map[string]int `json:"saved_by,omitempty"`
	// Values are the defined measures by name.
	Values map[string]float64 `json:"values"`
	// KindsBefore and KindsAfter are tokens by kind, see tokens.Kind.
	KindsBefore map[tokens.Kind]int `json:"kinds_before"`
	KindsAfter  map[tokens.Kind]int `json:"kinds_after"`
	// Usage is the sum over all runs.
	Usage core.Usage `json:"usage,omitzero"`
	// Runs are present if the strategy ran several times. Values, After and KindsAfter are then means over the runs
	// with a result, and Outcome is the first such run's.
	Runs []Repetition `json:"runs,omitempty"`
	// passing reports that a provider failed or could not work: the next run may have another result.
	passing bool
}

// measured reports whether there is a result to measure.
func (r *Row) measured() bool {
	return r.Outcome != core.OutcomeRejected && r.Outcome != core.OutcomeFailed
}

// overSize is the share of the budget above which a result counts as over the budget.
const overSize = 1.03

// A trial runs strategies on one cut.
type trial struct {
	session *score.Session
	name    string
	counter *tokens.Counter
	scorer  *score.Scorer
	task    task
	system  int // tokens
	limit   int // tokens; 0: the size of the conversation
	seed    uint64
	now     func() time.Time
	outputs *outputs
	truth   *truth.History // of the cut, once it is needed
}

func (b *trial) row(strategy string) Row {
	return Row{
		Strategy: strategy, Budget: b.task.budget, Session: b.name, Source: b.session.Source, Mode: b.session.Mode,
		Cut: b.task.cut.Name, At: b.task.cut.At, Before: b.task.cut.Tokens, Room: b.task.room, Values: map[string]float64{},
	}
}

// request returns a host's request, except that its limit is the size of the conversation: a strategy that misses the
// target is measured at the size that it reached.
func (b *trial) request(messages []core.Message) *core.Request {
	target := b.system + b.task.room + core.TotalTokens(b.task.cut.Before)
	limit := max(target, cmp.Or(b.limit, b.system+core.TotalTokens(messages)))
	return &core.Request{
		Messages: messages, Trigger: core.TriggerAutomatic, Mode: b.session.Mode, System: b.session.System, Typed: dialog.Typed, Counter: b.counter,
		Budget: core.Budget{Window: limit, Overhead: b.system, Limit: limit, Target: target},
	}
}

// shown returns the messages that a strategy condenses. If they end with a result that is measured by itself, an
// answer is added, because the last message of a conversation is never changed.
func (b *trial) shown() []core.Message {
	cut := &b.task.cut
	if cut.Before == nil {
		return cut.Prefix()
	}
	end := core.Message{ID: "answer", Role: core.RoleAssistant, Parts: []core.Part{core.Text(".")}}
	end.Tokens = core.MessageTokens(b.counter, end)
	return append(slices.Concat(cut.Before, cut.Prefix()), end)
}

// bounded returns the row of a bound.
func (b *trial) bounded(name string) Row {
	r := b.row(name)
	start := b.now()
	view := b.boundView(name)
	r.Values["ms"] = milliseconds(b.now().Sub(start))
	r.Outcome = core.OutcomeApplied
	b.judge(&r, view)
	b.outputs.result(b, name, r.After, view)
	delete(r.Values, "payback")
	return r
}

// boundView returns the view of a bound.
func (b *trial) boundView(name string) []core.Message {
	switch name {
	case Random:
		return b.scorer.RandomLines(b.task.room, b.seed, b.counter)
	case KeepLast:
		return score.KeepLast(b.task.cut.Prefix(), b.task.room, b.counter)
	}
	return nil
}

// run returns the row of a strategy. It fails only if ctx is done.
func (b *trial) run(ctx context.Context, s *Strategy) (Row, error) {
	r := b.row(s.Name)
	out, took, err := b.condense(ctx, s, b.shown(), 1)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	r.Values["ms"], r.Values[MeasureFailed] = milliseconds(took), 1
	if err != nil {
		r.Outcome, r.Error = core.OutcomeFailed, err.Error()
		return r, nil //nolint:nilerr // a failing strategy is a result
	}
	r.Usage, r.Provider = out.Usage, out.Provider
	r.Outcome, r.Error = outcome(out)
	if r.Outcome == core.OutcomeRejected {
		r.Values["lawful"] = 0
	}
	if !r.measured() {
		return r, nil
	}
	r.Values[MeasureFailed] = 0
	if r.Setbacks, r.Error, r.passing = setbacks(out); r.Setbacks > 0 {
		r.Values[MeasureFailed] = 1
	}
	r.attribute(out, s.Truncation)
	if b.task.cut.Before != nil {
		id := b.task.cut.Prefix()[0].ID
		b.judge(&r, slices.DeleteFunc(slices.Clone(out.Messages), func(m core.Message) bool { return m.ID != id }))
		return r, nil
	}
	if s.Unchecked {
		b.judge(&r, out.Messages)
		b.outputs.result(b, s.Name, r.After, out.Messages)
		return r, nil
	}
	r.Values["lawful"] = 1
	for _, a := range out.Attempts {
		if a.Outcome == core.OutcomeRejected {
			r.Values["lawful"] = 0
		}
	}
	r.Values["calls"], r.Values["usd"] = float64(out.Usage.Calls), out.Usage.USD
	b.judge(&r, out.Messages)
	b.outputs.result(b, s.Name, r.After, out.Messages)
	if out.Usage.Calls == 0 {
		b := *b
		b.limit = b.request(b.shown()).Budget.Limit // the same budget
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

// condense runs s, and returns the time that its providers took.
func (b *trial) condense(ctx context.Context, s *Strategy, messages []core.Message, round int) (*core.ChainResult, time.Duration, error) {
	ctx = b.withSummary(ctx)
	if s.Unchecked {
		return b.unchecked(ctx, s, messages, round)
	}
	req := b.request(messages)
	chain, err := s.openFor(req, round, b.now)
	if err != nil {
		return nil, 0, err
	}
	out, err := chain.Run(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	took := plain.Sum(out.Attempts, func(a core.Attempt) time.Duration { return a.Duration })
	return out, took, nil
}

// unchecked returns the result of the provider of s in the form of a chain's, valid or not.
func (b *trial) unchecked(ctx context.Context, s *Strategy, messages []core.Message, round int) (*core.ChainResult, time.Duration, error) {
	start := b.now()
	res, err := s.Provider.Condense(ctx, b.request(messages))
	took := b.now().Sub(start)
	if err != nil {
		return nil, took, err
	}
	out := &core.ChainResult{Messages: res.Messages, Provider: s.Name, Usage: res.Usage}
	for i := range out.Messages {
		out.Messages[i].ID = cmp.Or(out.Messages[i].ID, fmt.Sprintf("new-%d-%d", round, i))
	}
	if sizeOf(b.counter, out.Messages) <= b.task.room {
		out.Attempts = []core.Attempt{{Provider: s.Name, Outcome: core.OutcomeApplied, Duration: took}}
	}
	return out, took, nil
}

// setbacks returns how many providers of a chain failed, were rejected or could not work, and the first of their
// errors. Passing reports whether one of them may do better the next time: a rejected result would be the same again.
func setbacks(c *core.ChainResult) (n int, first string, passing bool) {
	for _, a := range c.Attempts {
		if a.Err == nil { // also if it was not needed
			continue
		}
		if n++; n == 1 {
			first = a.Provider + ": " + a.Err.Error()
		}
		passing = passing || a.Outcome != core.OutcomeRejected
	}
	return n, first, passing
}

// attribute notes the savings of each provider of the chain. Truncation is the last one.
func (r *Row) attribute(c *core.ChainResult, truncation string) {
	r.SavedBy = map[string]int{}
	all := 0
	for _, a := range c.Attempts {
		if saved := a.TokensBefore - a.TokensAfter; saved > 0 {
			r.SavedBy[a.Provider] += saved
			all += saved
		}
	}
	if all > 0 {
		r.Values[MeasureOwn] = 1 - float64(r.SavedBy[truncation])/float64(all)
	}
}

// outcome returns the outcome of a chain as a whole, and the error if there is no result.
func outcome(c *core.ChainResult) (core.Outcome, string) {
	worst := core.OutcomeNoOp
	var errs []error
	for _, a := range c.Attempts {
		switch a.Outcome {
		case core.OutcomeApplied:
			return core.OutcomeApplied, ""
		case core.OutcomeRejected, core.OutcomeFailed, core.OutcomeSkipped:
			if a.Err == nil {
				continue // it was not needed
			}
			errs = append(errs, a.Err)
			switch {
			case worst != core.OutcomeNoOp:
			case a.Outcome == core.OutcomeRejected:
				worst = core.OutcomeRejected
			default:
				worst = core.OutcomeFailed
			}
		case core.OutcomeInsufficient, core.OutcomeNoOp, core.OutcomeLater:
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

// sizeOf counts messages again, whatever they say of their size.
func sizeOf(c core.Counter, messages []core.Message) (tokens int) {
	return plain.Sum(messages, func(x core.Message) int { return core.MessageTokens(c, x) })
}

// judge adds all measures of view to r.
func (b *trial) judge(r *Row, view []core.Message) {
	b.measure(r, view)
	continuation(r.Values, b.scorer.Continuation(view))
	if b.truth == nil {
		b.truth = Truth(b.session, b.task.cut.At)
	}
	truths(r.Values, b.truth.Measure(view).Truth)
}

// measure adds the measures of view to r that take little memory.
func (b *trial) measure(r *Row, view []core.Message) {
	prefix := b.task.cut.Prefix()
	r.After = sizeOf(b.counter, view)
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
	all := plain.Sum(prefix, func(x core.Message) int { return core.ContentBytes(x.Parts...) })
	r.Values["head_messages"] = float64(same) / float64(max(1, len(prefix)))
	r.Values["head_bytes"] = float64(sameBytes) / float64(max(1, all))
	if turns, ok := ratiosOf(b.session).payback(r.Before, r.After, sameTokens, r.Usage); ok {
		r.Values["payback"] = turns
	}
}

// Ratios are prices of a token relative to a token of input: read from the cache, written to the cache, output.
type ratios struct{ read, write, output float64 }

// usualRatios are those of most of Anthropic's models.
var usualRatios = ratios{0.1, 1.25, 5}

// ratiosOf returns the prices of the model that answered a session last, usual ones if it is not known.
func ratiosOf(s *score.Session) ratios {
	last := -1
	for i, u := range s.Usage {
		if u.Model != "" {
			last = max(last, i)
		}
	}
	name := s.Usage[last].Model
	m, err := catalog.Lookup(name)
	if err != nil || m.Price.Input <= 0 {
		return usualRatios
	}
	c := catalog.CachingOf(name, m.Price)
	if c.Read <= 0 {
		return usualRatios
	}
	return ratios{c.Read, cmp.Or(c.Write, 1), m.Price.Output / m.Price.Input}
}

// payback returns the number of turns after which a condensation has paid for itself: the cost of writing to the
// cache and of the model, divided by the savings of a turn.
func (r ratios) payback(before, after, head int, u core.Usage) (float64, bool) {
	if after >= before {
		return 0, false
	}
	model := float64(u.InputTokens-u.CachedTokens) + r.read*float64(u.CachedTokens) + r.output*float64(u.OutputTokens)
	once := r.write*float64(max(0, after-head)) + model
	return once / (r.read * float64(before-after)), true
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

package condense

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
)

// A Report explains a call of [Host.Manage], with every number it used. All tokens
// are by the host's counter.
type Report struct {
	Acted    bool          `json:"acted"`
	Decision policy.Reason `json:"decision"` // why it acted, or why not
	Reason   string        `json:"reason"`   // the same as a sentence, with the numbers
	Trigger  core.Trigger  `json:"trigger"`
	Profile  string        `json:"profile"`
	Mode     string        `json:"mode,omitempty"`

	Budget   BudgetReport    `json:"budget"`
	Tokens   TokenReport     `json:"tokens"`
	Attempts []AttemptReport `json:"attempts"`
	// Estimates are the costs that were expected before, if Turn.Estimate was set.
	Estimates []Estimate `json:"estimates,omitempty"`
	// CondensationID names the condensation in the journal; empty if there is none.
	CondensationID string `json:"condensation_id,omitempty"`
	// Later is why a provider wants to wait: nothing was condensed.
	Later string `json:"later,omitempty"`
	// States are the states of its providers for the next one: see [Turn].
	States map[string][]byte `json:"-"`
	// Originals is the file with the messages that the condensation hid or rewrote; empty if none was
	// written.
	Originals string        `json:"originals,omitempty"`
	Messages  MessageReport `json:"messages"`
	// Words are the tokens of the words that the user typed in the view before, and of those that are also in the view
	// after, in messages or quoted. Zero if nothing was condensed.
	Words Change     `json:"words,omitzero"`
	Usage core.Usage `json:"usage,omitzero"`
	// Warnings are for the user: an option that had no effect, a target that
	// had to be raised.
	Warnings []string `json:"warnings,omitempty"`
}

// A BudgetReport is the formula with its numbers, in tokens unless said otherwise.
type BudgetReport struct {
	Window           int     `json:"window"`
	Reserve          int     `json:"reserve"`
	Limit            int     `json:"limit"`
	Target           int     `json:"target"`
	ThresholdPercent float64 `json:"threshold_percent"`
	Percent          float64 `json:"percent"` // of the window that is used
	Floor            int     `json:"floor"`   // fixed tokens, which cannot be removed
}

// A TokenReport is the size of the conversation before and after.
type TokenReport struct {
	Before int                    `json:"before"`
	After  int                    `json:"after"`
	ByKind map[tokens.Kind]Change `json:"by_kind"`
}

// A Change is a number before and after.
type Change struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// An AttemptReport is a [core.Attempt] for a report.
type AttemptReport struct {
	core.Attempt
	DurationMS float64 `json:"duration_ms"`
}

// A MessageReport counts messages of the view.
type MessageReport struct {
	Before    int `json:"before"`
	After     int `json:"after"`
	Hidden    int `json:"hidden"`
	Rewritten int `json:"rewritten"`
	Inserted  int `json:"inserted"`
}

func newReport(p *plan) *Report {
	d := p.decision
	r := &Report{
		Decision: d.Reason, Reason: d.String(), Trigger: d.Trigger, Profile: p.set.Profile, Mode: p.set.Mode,
		Budget: BudgetReport{
			Window: d.Budget.Window, Reserve: d.Budget.Reserve, Limit: d.Budget.Limit, Target: d.Budget.Target,
			ThresholdPercent: d.Threshold, Percent: d.Percent, Floor: d.Floor,
		},
		Messages: MessageReport{Before: len(p.view), After: len(p.view)},
		Attempts: []AttemptReport{},
	}
	switch {
	case p.partErr != nil:
		r.Warnings = append(r.Warnings, onlyInJournal(p.partErr))
	case p.set.Originals == config.OriginalsParts && p.request != nil && p.part == "":
		r.Warnings = append(r.Warnings, "originals: parts has no effect, because the conversation has no file to write them next to")
	}
	return r
}

// A failedError says that a condensation that was asked for failed.
type failedError struct {
	text string
	errs []error
}

func (e *failedError) Error() string   { return e.text }
func (e *failedError) Unwrap() []error { return e.errs }

// unchanged reports that the attempts changed nothing: as an error if the user asked for a
// condensation, as a warning otherwise, and not at all if there was nothing to gain.
func (r *Report) unchanged(p *plan, got *core.ChainResult) error {
	var why []string
	var errs []error
	for _, a := range got.Attempts {
		if a.Err != nil {
			why = append(why, fmt.Sprintf("%s: %s, %s", a.Provider, a.Outcome, a.Reason))
			errs = append(errs, a.Err)
		}
	}
	text := fmt.Sprintf("nothing was condensed and nothing is lost: the %s tokens are within the limit of %s", size.Group(p.decision.Used), size.Group(p.decision.Budget.Limit))
	switch {
	case len(errs) == 0 && got.Edit.Empty():
		r.Reason = fmt.Sprintf("nothing to do: no provider found anything to condense in %s", size.Plural(p.decision.Used, "token"))
		return nil
	case len(errs) == 0 || p.decision.Used > p.decision.Budget.Limit:
		return nil
	case p.decision.Trigger == core.TriggerManual:
		return &failedError{text + "; " + strings.Join(why, "; "), errs}
	default:
		r.Warnings = append(r.Warnings, text)
		return nil
	}
}

func (r *Report) attempts(attempts []core.Attempt) {
	for _, a := range attempts {
		r.Usage = r.Usage.Add(a.Usage)
		r.Attempts = append(r.Attempts, AttemptReport{a, float64(a.Duration.Microseconds()) / 1000})
	}
}

// losses warns of the losses that the user should know of in a result that is used.
func (r *Report) losses(req *core.Request, got *core.ChainResult) {
	for _, a := range got.Attempts {
		for i := range a.Steps {
			if text := a.Steps[i].Warning; text != "" && (a.Outcome == core.OutcomeApplied || a.Outcome == core.OutcomeInsufficient) {
				r.Warnings = append(r.Warnings, a.Provider+": "+plain.Line(text))
			}
		}
	}
	said := func(m *core.Message) int { // tokens, without the results of tools
		return req.Counter.Count(slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })...)
	}
	rewritten := map[string]*core.Message{}
	for i := range got.Messages {
		rewritten[got.Messages[i].ID] = &got.Messages[i]
	}
	was, is := 0, 0
	for _, i := range req.Unanswered() {
		if m := &req.Messages[i]; rewritten[m.ID] != nil {
			was, is = was+said(m), is+said(rewritten[m.ID])
		}
	}
	if is < was {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the user's request, which has no answer yet, was cut from %s to %s tokens: more has no room", size.Group(was), size.Group(is)))
	}
}

// fill adds the tokens of the view by kind, before and after, to those of the system prompt
// and the tools.
func (r *Report) fill(p *plan, before, after map[tokens.Kind]int) {
	overhead := map[tokens.Kind]int{tokens.KindSystem: p.system + p.tools}
	r.Tokens = TokenReport{ByKind: map[tokens.Kind]Change{}}
	for _, kind := range tokens.Kinds() { // every kind, so that readers need no check
		c := Change{overhead[kind] + before[kind], overhead[kind] + after[kind]}
		r.Tokens.ByKind[kind] = c
		r.Tokens.Before += c.Before
		r.Tokens.After += c.After
	}
}

// An Estimate is the most that asking a provider is expected to cost. An answer that is cut
// off, or too long, may have to be asked for again and cost more.
type Estimate struct {
	Provider string     `json:"provider"`
	Usage    core.Usage `json:"usage"`
	// Problem is why there is no estimate, for instance because the model has no key; Usage
	// is zero then.
	Problem string `json:"problem,omitempty"`
}

// Estimate returns the tokens that [Host.Manage] might spend on language models, for each provider in
// the order of the chain. It asks no model. A provider is used only if the previous ones
// were not enough, so the sum is the worst case. Providers that use no models, or give no
// estimate, are left out. The result is nil if no condensation is due.
func (h *Host) Estimate(ctx context.Context, c *Conversation, t Turn) ([]Estimate, error) {
	s, release := h.use()
	p, err := s.plan(c, t)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	estimates, err := s.estimates(ctx, p)
	return estimates, errors.Join(err, release())
}

func (s *setup) estimates(ctx context.Context, p *plan) ([]Estimate, error) {
	if p.request == nil {
		return nil, nil
	}
	var estimates []Estimate
	for _, c := range p.set.Chain {
		provider, err := s.provider(ctx, c, p.set.Model.Name)
		if err != nil {
			return nil, err
		}
		if _, ok := provider.(core.CostEstimator); !ok || p.free() {
			continue
		}
		req := p.request.Clone()
		req.State, req.States = req.States[c.Name], nil
		usage, err := estimate(ctx, c, provider, req)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errors.ErrUnsupported), err == nil && usage == core.Usage{}:
		case err != nil:
			estimates = append(estimates, Estimate{Provider: c.Name, Problem: plain.Line(err.Error())})
		default:
			estimates = append(estimates, Estimate{Provider: c.Name, Usage: usage})
		}
	}
	return estimates, nil
}

// estimate asks one provider. A panic becomes an error.
func estimate(ctx context.Context, c config.Provider, p core.CondensationProvider, req *core.Request) (u core.Usage, err error) {
	defer func() {
		if v := recover(); v != nil {
			u, err = core.Usage{}, fmt.Errorf("panic: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return core.EstimateCost(ctx, p, req)
}

// announce reports the possible cost of the turn, and passes it to the observer.
func (s *setup) announce(ctx context.Context, p *plan, r *Report) error {
	estimates, err := s.estimates(ctx, p)
	if err != nil {
		return err
	}
	r.Estimates = estimates
	for _, e := range estimates {
		s.host.observe(Event{Kind: EventEstimated, Profile: p.set.Profile, Mode: p.set.Mode, Provider: e.Provider, Estimate: e})
	}
	return nil
}

// An EventKind is the kind of an event.
type EventKind string

// The kinds of events. A turn in which nothing is due has none.
const (
	EventStarted   EventKind = "started"   // a condensation begins: Decision
	EventEstimated EventKind = "estimated" // the possible cost of a provider, if Turn.Estimate is set: Provider, Estimate
	EventAsking    EventKind = "asking"    // a provider is asked: Provider
	EventAttempt   EventKind = "attempt"   // it has answered: Provider, Attempt
	EventFinished  EventKind = "finished"  // the condensation has ended: Report, Err
	EventReloaded  EventKind = "reloaded"  // watched files have changed: Err, if they are invalid
)

// An Event is something that happened, for [Options]. Kind says which other fields are set.
type Event struct {
	Kind          EventKind
	Profile, Mode string
	Decision      policy.Decision
	Provider      string
	Estimate      Estimate
	Attempt       core.Attempt
	Report        *Report
	Err           error
}

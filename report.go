package condense

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/tokens"
)

// A Report says what [Host.Manage] did and why, with every number it used. All tokens
// are by the host's counter.
type Report struct {
	Acted    bool          `json:"acted"`
	Decision policy.Reason `json:"decision"` // why it acted, or why not
	Reason   string        `json:"reason"`   // the same for people, with the numbers
	Trigger  core.Trigger  `json:"trigger"`
	Profile  string        `json:"profile"`
	Mode     string        `json:"mode,omitempty"`

	Budget   BudgetReport    `json:"budget"`
	Tokens   TokenReport     `json:"tokens"`
	Attempts []AttemptReport `json:"attempts"`
	// Estimates are what was said before of the costs, if Turn.Estimate was set.
	Estimates []Estimate `json:"estimates,omitempty"`
	// CondensationID names the condensation in the journal; empty if there is none.
	CondensationID string `json:"condensation_id,omitempty"`
	// Originals is the file with what the condensation hid or rewrote; empty if there is
	// none.
	Originals string        `json:"originals,omitempty"`
	Messages  MessageReport `json:"messages"`
	Usage     core.Usage    `json:"usage,omitzero"`
	// Warnings are what a person should know: an option that had no effect, a target
	// that had to be raised.
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
	Floor            int     `json:"floor"`   // what may not be removed
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
		Decision: d.Reason, Reason: d.String(), Trigger: d.Trigger, Profile: p.Profile, Mode: p.Mode,
		Budget: BudgetReport{
			Window: d.Budget.Window, Reserve: d.Budget.Reserve, Limit: d.Budget.Limit, Target: d.Budget.Target,
			ThresholdPercent: d.Threshold, Percent: d.Percent, Floor: d.Floor,
		},
		Messages: MessageReport{Before: len(p.view), After: len(p.view)},
		Attempts: []AttemptReport{},
	}
	if p.Originals == config.OriginalsParts && p.request != nil && p.part == "" {
		r.Warnings = append(r.Warnings, "originals: parts has no effect, because the conversation has no file to write them beside")
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

// unchanged reports that the attempts changed nothing: as an error if a person asked, and
// as a warning if not. Neither is needed if there was nothing to gain.
func (r *Report) unchanged(p *plan, got *core.Condensed) error {
	var why []string
	var errs []error
	for _, a := range got.Attempts {
		if a.Err != nil {
			why = append(why, fmt.Sprintf("%s: %s, %s", a.Provider, a.Outcome, a.Reason))
			errs = append(errs, a.Err)
		}
	}
	text := fmt.Sprintf("nothing was condensed and nothing is lost: the %d tokens are within the limit of %d", p.decision.Used, p.decision.Budget.Limit)
	switch {
	case len(errs) == 0 && got.Edit.Empty():
		r.Reason = fmt.Sprintf("nothing to do: no provider found anything to condense in %d tokens", p.decision.Used)
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

// fill adds the tokens of the view by kind, before and after, to what is sent beside it.
func (r *Report) fill(p *plan, before, after map[tokens.Kind]int) {
	beside := p.system + p.tools
	r.Tokens = TokenReport{
		Before: beside, After: beside,
		ByKind: map[tokens.Kind]Change{},
	}
	for _, kind := range tokens.Kinds() {
		r.Tokens.ByKind[kind] = Change{} // every kind, so that readers need not ask
	}
	r.Tokens.ByKind[tokens.KindSystem] = Change{beside, beside}
	for kind, n := range before {
		c := r.Tokens.ByKind[kind]
		c.Before += n
		r.Tokens.ByKind[kind] = c
		r.Tokens.Before += n
	}
	for kind, n := range after {
		c := r.Tokens.ByKind[kind]
		c.After += n
		r.Tokens.ByKind[kind] = c
		r.Tokens.After += n
	}
}

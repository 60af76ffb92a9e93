package condense

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/core/policy"
)

// A Turn is what a host program knows when it is about to send a conversation to the
// model. The zero Turn is an automatic one under the default profile.
type Turn struct {
	// Profile and Mode choose the configuration. An empty profile means that of the
	// mode, and the default profile if there is no mode either.
	Profile, Mode string
	// Trigger says why; empty means [core.TriggerAutomatic]. A program whose request the
	// model's API refused as too large ([Host.Overflow]) sets [core.TriggerOverflow] and
	// sends what is left.
	Trigger core.Trigger
	// System is the system prompt and Tools the definitions of the tools, if they are
	// sent beside the messages. They count against the window.
	System string
	Tools  json.RawMessage
	// Window is the context window of the model and MaxOutput the longest answer that the
	// request asks for, both in tokens. If not 0 they replace those of the configuration.
	Window, MaxOutput int
	// Environment, Dir, FilesRead and Instructions are handed to the providers: see
	// [core.Request]. With a Dir and without FilesRead these are found out, see [FilesRead].
	Environment  string
	Dir          string
	FilesRead    []string
	Instructions string
	// Estimate has the providers say what they might cost before one is asked: see
	// [Report.Estimates] and [EventEstimated]. It takes some time.
	Estimate bool
}

// Check says what [Host.Manage] would decide, and changes nothing. After the first call
// the cost does not depend on the length of the conversation, but on what was added.
func (h *Host) Check(c *Conversation, t Turn) (policy.Decision, error) {
	s, release := h.use()
	p, err := s.plan(c, t)
	if err := errors.Join(err, release()); err != nil {
		return policy.Decision{}, err
	}
	return p.decision, nil
}

// Manage condenses the conversation if it is due, and reports what it did and why. It is
// to be called before every request to the model.
//
// The report is nil only if the configuration has no such profile. The error wraps
// [policy.ErrFloorExceedsWindow] if what may not be removed is too large, which is found
// before any provider is asked; it is a [*core.ExhaustedError] if no provider, not even
// truncation, brought the conversation to its limit, and wraps ctx.Err() if ctx ended. On
// any error the conversation is as it was.
//
// If providers fail and the conversation is within its limit, it stays as it was. That is
// an error, which wraps those of the providers, only if the trigger is
// [core.TriggerManual]; else a warning in the report says so, and the work can go on.
func (h *Host) Manage(ctx context.Context, c *Conversation, t Turn) (*Report, error) {
	s, release := h.use()
	r, err := s.manage(ctx, c, t)
	return r, errors.Join(err, release())
}

func (s *setup) manage(ctx context.Context, c *Conversation, t Turn) (*Report, error) {
	p, err := s.plan(c, t)
	if err != nil {
		return nil, err
	}
	r := newReport(p)
	before := c.kinds(p.counter)
	if !p.decision.Act {
		r.fill(p, before, before)
		return r, p.decision.Err()
	}
	s.host.observe(Event{Kind: EventStarted, Profile: p.Profile, Mode: p.Mode, Decision: p.decision})
	if t.Estimate {
		err = s.announce(ctx, p, r)
	}
	if err == nil {
		err = s.condense(ctx, c, p, r)
	}
	r.fill(p, before, c.kinds(p.counter))
	s.host.observe(Event{Kind: EventFinished, Profile: p.Profile, Mode: p.Mode, Report: r, Err: err})
	return r, err
}

// condense asks the chain and records what it made of the conversation.
func (s *setup) condense(ctx context.Context, c *Conversation, p *plan, r *Report) error {
	var made []core.Attempt
	chain, err := s.chain(ctx, p, func(a core.Attempt) { made = append(made, a) })
	if err != nil {
		return err
	}
	got, err := chain.Condense(ctx, p.request)
	if err != nil {
		r.attempts(made) // what they spent is spent, also if a person has stopped them
		if errors.As(err, new(*core.ExhaustedError)) {
			c.state = c.state.After(p.decision, p.decision.Used)
		}
		return err
	}
	r.attempts(got.Attempts)
	if got.Edit.Empty() || !p.decision.Worth(got.TokensAfter) {
		c.state = c.state.After(p.decision, p.decision.Used)
		if !got.Edit.Empty() {
			r.Reason = fmt.Sprintf("a result of %d tokens was dropped: it saves less than %d", got.TokensAfter, p.decision.MinGain)
		}
		return r.unchanged(p, got)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	// The originals first: once the condensation is in force, its summary points there.
	originals, undo, err := p.keepOriginals(c, &got.Edit)
	if err != nil {
		return err
	}
	err = c.journal.Condense(history.Condensation{
		ID: id.String(), Provider: got.Provider, Trigger: p.decision.Trigger, Time: time.Now(),
		Edit: got.Edit, TokensBefore: got.TokensBefore, TokensAfter: got.TokensAfter,
		Attempts: got.Attempts, Originals: originals,
	})
	if err != nil {
		return errors.Join(err, undo())
	}
	r.Originals = originals
	c.state = c.state.After(p.decision, got.TokensAfter)
	c.changed()
	r.Acted = true
	r.CondensationID = id.String()
	r.Messages = MessageReport{
		Before: len(p.view), After: len(got.Messages),
		Hidden: len(got.Edit.Hide), Rewritten: len(got.Edit.Rewrite), Inserted: len(got.Edit.Insert),
	}
	return nil
}

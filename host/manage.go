package host

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
	// Trigger says why; empty means [core.TriggerAutomatic].
	Trigger core.Trigger
	// System is the system prompt and Tools the definitions of the tools, if they are
	// sent beside the messages. They count against the window.
	System string
	Tools  json.RawMessage
	// Environment, FilesRead and Instructions are handed to the providers: see
	// [core.Request].
	Environment  string
	FilesRead    []string
	Instructions string
}

// Check says what [Host.Manage] would decide, and changes nothing. After the first call
// the cost does not depend on the length of the conversation, but on what was added.
func (h *Host) Check(c *Conversation, t Turn) (policy.Decision, error) {
	p, err := h.plan(c, t)
	if err != nil {
		return policy.Decision{}, err
	}
	return p.decision, nil
}

// Manage condenses the conversation if it is due, and reports what it did and why. It is
// to be called before every request to the model.
//
// The report is never nil if the configuration could be resolved. The error wraps
// [policy.ErrFloorExceedsWindow] if what may not be removed is too large, which is found
// before any provider is asked; it is a [*core.ExhaustedError] if no provider, not even
// truncation, brought the conversation to its limit, and wraps ctx.Err() if ctx ended. On
// any error the conversation is as it was.
func (h *Host) Manage(ctx context.Context, c *Conversation, t Turn) (*Report, error) {
	p, err := h.plan(c, t)
	if err != nil {
		return nil, err
	}
	r := newReport(p)
	if !p.decision.Act {
		r.fill(p, p.view, core.Edit{})
		return r, p.decision.Err()
	}
	chain, err := h.chain(ctx, p)
	if err != nil {
		return r, err
	}
	got, err := chain.Condense(ctx, p.request)
	if err != nil {
		r.fill(p, p.view, core.Edit{})
		if exhausted := (*core.ExhaustedError)(nil); errors.As(err, &exhausted) {
			r.attempts(exhausted.Attempts)
			c.state = c.state.After(p.decision, p.decision.Used)
		}
		return r, err
	}
	r.attempts(got.Attempts)
	r.Usage = got.Usage
	if got.Edit.Empty() || !p.decision.Worth(got.TokensAfter) {
		c.state = c.state.After(p.decision, p.decision.Used)
		r.fill(p, p.view, core.Edit{})
		if !got.Edit.Empty() {
			r.Reason = fmt.Sprintf("a result with %d tokens was dropped: it saves less than %d", got.TokensAfter, p.decision.MinGain)
		}
		return r, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return r, err
	}
	err = c.journal.Condense(history.Condensation{
		ID: id.String(), Provider: got.Provider, Trigger: p.decision.Trigger, Time: time.Now(),
		Edit: got.Edit, TokensBefore: got.TokensBefore, TokensAfter: got.TokensAfter,
	})
	if err != nil {
		return r, err
	}
	c.state = c.state.After(p.decision, got.TokensAfter)
	c.pinned, c.counted = 0, 0
	r.Acted = true
	r.CondensationID = id.String()
	r.fill(p, got.Messages, got.Edit)
	return r, nil
}

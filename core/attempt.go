package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// An Outcome is the outcome of an [Attempt].
type Outcome string

// The outcomes.
const (
	OutcomeApplied      Outcome = "applied"      // valid and on target
	OutcomeInsufficient Outcome = "insufficient" // valid, saves something, not on target; kept
	OutcomeNoOp         Outcome = "no-op"        // valid, saves nothing; dropped
	OutcomeRejected     Outcome = "rejected"     // breaks a rule; dropped
	OutcomeFailed       Outcome = "failed"       // error, panic or no answer in time
	OutcomeSkipped      Outcome = "skipped"      // not asked, or it could not work
	OutcomeLater        Outcome = "later"        // it wants to wait; the chain ends, and nothing is condensed
)

// An Attempt is a call of one provider of a [Chain]. Tokens are the host's count of the whole
// conversation; they are equal if the result was dropped.
type Attempt struct {
	Provider     string        `json:"provider"`
	Outcome      Outcome       `json:"outcome"`
	Reason       string        `json:"reason,omitempty"`
	TokensBefore int           `json:"tokens_before"`
	TokensAfter  int           `json:"tokens_after"`
	Duration     time.Duration `json:"-"`
	Usage        Usage         `json:"usage,omitzero"`
	Steps        []Step        `json:"steps,omitempty"` // the provider's own report
	Err          error         `json:"-"`               // why it failed or was rejected
}

// attempt asks one provider to continue the work of earlier ones. The result is nil unless it is to be used.
func (c *Chain) attempt(ctx context.Context, p *NamedProvider, req *Request, state *ChainResult) (Attempt, *Result) {
	work := *req
	if work.Messages, work.State, work.States = state.Messages, nil, nil; len(req.States) > 0 {
		work.State = req.States[p.key(ctx)]
	}
	warm := &work.Cached.Messages // of the conversation as it is now
	most := min(*warm, len(req.Messages), len(state.Messages))
	for *warm = 0; *warm < most && state.Messages[*warm].Equal(req.Messages[*warm]); *warm++ { //nolint:revive // it counts
	}
	signatures := plain.Sum(work.Messages, func(m Message) int { return signed(req.Counter, m.Parts) })
	work.Budget.Target = min(work.Budget.Target+signatures, req.Budget.Limit)
	start := c.opts.Now()
	res, err := c.ask(ctx, p, work.Clone())
	att := Attempt{Provider: p.Name, Duration: c.opts.Now().Sub(start), TokensBefore: state.TokensAfter, TokensAfter: state.TokensAfter}
	if res != nil {
		att.Usage, att.Steps = plausible(res.Usage), res.Steps
	}
	_, chained := p.Provider.(*Chain)
	fail := func(o Outcome, err error) (Attempt, *Result) {
		att.Outcome, att.Reason, att.Err = o, reason(err), err
		return att, nil
	}
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, errors.ErrUnsupported):
		return fail(OutcomeSkipped, err)
	case undeclared(err):
		return fail(OutcomeRejected, err)
	case err == nil && res != nil && len(res.State) > MaxState && !chained: // whose providers have a limit each
		err = fmt.Errorf("a state of %s bytes, more than %s", size.Group(len(res.State)), size.Group(MaxState))
		fallthrough
	case err != nil:
		return fail(OutcomeFailed, err)
	}
	res, added := framed(p, &work, res)
	work.Abilities = cmp.Or(p.Abilities, AbilitiesOf(p.Provider)) // those of a plugin are known by now
	if err := (&verifier{req: &work, uncut: p.Uncut, added: added}).verify(res); err != nil {
		return fail(OutcomeRejected, err)
	}
	messages, tokens, changed := c.adopt(&work, res.Messages)
	if changed && tokens >= state.TokensAfter {
		att.Outcome, att.Reason = OutcomeNoOp, "the changes save no tokens"
		return att, nil
	}
	if changed && state.Provider != "" {
		// Two changes may be valid separately but not together: one provider replaces an
		// image by a text, the other removes the text.
		if err := (&verifier{req: req, adopted: true, uncut: p.Uncut}).verify(&Result{Messages: messages}); err != nil {
			return fail(OutcomeRejected, err)
		}
	}
	switch {
	case !changed && res.Later != "":
		att.Outcome, att.Reason = OutcomeLater, reason(errors.New(res.Later))
		if !req.MayWait || req.Tokens() > req.Budget.Limit {
			att.Outcome, att.Reason = OutcomeSkipped, "it wants to wait, and the conversation cannot: "+att.Reason
		}
		return att, nil
	case !changed:
		att.Outcome, att.Reason = OutcomeNoOp, "nothing changed"
		if state.TokensAfter <= req.Budget.Target {
			att.Reason = "already on target"
		}
		return att, nil
	// No provider can do without the frames.
	case req.Trigger != TriggerIngest && tokens > max(work.Budget.Target, min(work.Budget.Target+added, req.Budget.Limit)):
		att.Outcome = OutcomeInsufficient
		att.Reason = fmt.Sprintf("%s above the target of %s", size.Plural(tokens-req.Budget.Target, "token"), size.Group(req.Budget.Target))
	default:
		att.Outcome = OutcomeApplied
	}
	att.TokensAfter = tokens
	return att, &Result{Messages: messages, State: res.State}
}

// plausible returns u with impossible numbers replaced by 0, so that reports can be written
// and added up.
func plausible(u Usage) Usage {
	for _, n := range []*int{&u.Calls, &u.InputTokens, &u.OutputTokens, &u.CachedTokens, &u.Unpriced} {
		*n = min(max(*n, 0), math.MaxInt32) // a sum of many is a number, too
	}
	if !(u.USD >= 0 && u.USD <= math.MaxInt32) { // false for NaN too
		u.USD = 0
	}
	return u
}

// reason shortens err to one line for a report: the first violation and the number of the
// others, at most maxReason bytes.
func reason(err error) string {
	text, more := err.Error(), 0
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		if errs := many.Unwrap(); len(errs) > 0 && errors.As(err, new(*ViolationError)) {
			text, more = errs[0].Error(), len(errs)-1
		}
	}
	// One line, so that nothing in it looks like another line of the report.
	text = plain.Line(text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	if more > 0 {
		text += fmt.Sprintf(" (and %d more violations)", more)
	}
	return text
}

// maxReason is in bytes. A provider's error may quote the conversation.
const maxReason = 500

// adopt turns a verified result into the host's messages: kept ones are the host's own again,
// new ones get an ID, and all are measured.
func (c *Chain) adopt(req *Request, result []Message) (messages []Message, tokens int, changed bool) {
	find := finder(req.Messages)
	messages = make([]Message, len(result))
	tokens = req.Budget.Overhead
	changed = len(result) != len(req.Messages)
	for i := range result {
		m, j := &messages[i], find(result[i].ID)
		if j >= 0 {
			*m = req.Messages[j]
		} else {
			*m = Message{ID: c.opts.NewID(), Role: result[i].Role, Kind: cmp.Or(result[i].Kind, KindSummary), Time: c.opts.Now()}
		}
		if j < 0 || !EqualParts(result[i].Parts, m.Parts) {
			m.Parts, m.Source, changed = result[i].Parts, nil, true
			m.Tokens = MessageTokens(req.Counter, *m)
		}
		tokens += m.Tokens
	}
	return messages, tokens, changed
}

// ask calls the provider with its deadline, in a separate goroutine, so that a panic or a
// call that never returns does not affect the caller.
func (c *Chain) ask(ctx context.Context, p *NamedProvider, req *Request) (*Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, &deadlineError{p.Timeout})
	defer cancel()
	type answer struct {
		res *Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the provider ended its goroutine without an answer")}
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: &panicError{v, debug.Stack()}}
			}
			answers <- a
		}()
		a.res, a.err = p.Provider.Condense(ctx, req)
		if a.err != nil {
			// Reading an error runs the provider's code. If that panics, it does so here.
			_, _ = a.err.Error(), errors.Is(a.err, ErrUnavailable)
		}
	}()
	end, _ := ctx.Deadline()
	select {
	case a := <-answers:
		if a.err == nil || time.Now().Before(end) {
			return a.res, a.err
		}
		// Another process may see the deadline before ctx does. Wait for ctx, so that the
		// error does not depend on a race.
		select {
		case <-ctx.Done():
			return a.res, interrupted(ctx, a.err)
		case <-time.After(c.opts.Grace): // the clock may have been set
			return a.res, a.err
		}
	case <-ctx.Done():
	}
	// Wait for a provider that heeds its context, so that it does not work on while the
	// chain continues.
	grace := time.NewTimer(c.opts.Grace)
	defer grace.Stop()
	select {
	case a := <-answers:
		return a.res, interrupted(ctx, a.err)
	case <-grace.C:
		return nil, fmt.Errorf("%w and it did not stop when canceled", context.Cause(ctx))
	}
}

// interrupted prefixes err with the reason why ctx ended, unless err is nil or contains it.
func interrupted(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// A deadlineError means that a provider did not answer in time.
type deadlineError struct{ after time.Duration }

func (e *deadlineError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }
func (e *deadlineError) Unwrap() error { return context.DeadlineExceeded }

// A panicError is a provider's panic.
type panicError struct {
	value any
	stack []byte
}

// Error returns the panic's value and position.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v%s", e.value, plain.Where(e.stack)) }

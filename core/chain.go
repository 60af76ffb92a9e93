package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// DefaultTimeout is the deadline of a call to a provider that sets none.
const DefaultTimeout = 2 * time.Minute

// DefaultGrace is how long a provider may take to return once its context is done.
const DefaultGrace = 250 * time.Millisecond

// A Candidate is a provider with a place in a [Chain].
type Candidate struct {
	Name     string // of the configured provider, for people
	Provider CondensationProvider
	Timeout  time.Duration // of one call; zero means [DefaultTimeout]
	// Fallback candidates are asked only while the conversation is above its limit.
	Fallback bool
}

// ChainOptions adjust a [Chain]. A nil pointer and the zero value of every field mean
// the defaults.
type ChainOptions struct {
	NewID func() string    // names new messages; default: UUID version 7
	Now   func() time.Time // default: [time.Now]
	Grace time.Duration    // default: [DefaultGrace]
	// Asking is called before a candidate is asked, Asked after every attempt.
	Asking func(candidate string)
	Asked  func(Attempt)
}

// A Chain asks providers in order until the conversation is on target. It does for them
// what all would have to get right: deadlines, panics, checking, measuring. It is safe
// for concurrent use.
type Chain struct {
	candidates []Candidate
	opts       ChainOptions
}

// NewChain returns the chain of the candidates, which must have distinct names.
func NewChain(candidates []Candidate, opts *ChainOptions) (*Chain, error) {
	c := &Chain{candidates: append([]Candidate(nil), candidates...)}
	if opts != nil {
		c.opts = *opts
	}
	if len(candidates) == 0 {
		return nil, errors.New("chain: no candidates")
	}
	names := map[string]bool{}
	for i := range c.candidates {
		cand := &c.candidates[i]
		switch {
		case cand.Name == "":
			return nil, fmt.Errorf("chain: candidate %d has no name", i)
		case names[cand.Name]:
			return nil, fmt.Errorf("chain: candidate %q stands twice", cand.Name)
		case cand.Provider == nil:
			return nil, fmt.Errorf("chain: candidate %q has no provider", cand.Name)
		}
		names[cand.Name] = true
		if cand.Timeout <= 0 {
			cand.Timeout = DefaultTimeout
		}
	}
	if c.opts.NewID == nil {
		c.opts.NewID = newID
	}
	if c.opts.Now == nil {
		c.opts.Now = time.Now
	}
	if c.opts.Grace <= 0 {
		c.opts.Grace = DefaultGrace
	}
	return c, nil
}

func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}
	return id.String()
}

// A Condensed is what a [Chain] made of a conversation.
type Condensed struct {
	Messages     []Message // measured; every one has an ID
	Edit         Edit      // from the messages of the request to Messages; empty if nothing changed
	Provider     string    // the last candidate that contributed; empty if none did
	TokensBefore int       // in the scope of the budget, as are all tokens here
	TokensAfter  int
	Usage        Usage
	Attempts     []Attempt // one for every candidate, in order; a second one of the last if it started over
}

// Condense asks the candidates in order. The first whose lawful result is on target ends
// the search. A lawful result that saves something, but not enough, becomes what the
// next candidate works on. Whatever else a candidate does (fail, panic, hang, break a
// rule) costs its turn, and the conversation stays as it was before it. A fallback
// candidate is skipped once the conversation is within the limit. If all together are not
// enough, the last candidate is asked again, with the messages as they came.
//
// The error wraps [ErrInvalidRequest] if the request is wrong, ctx.Err() if ctx ended,
// and is an [*ExhaustedError] if the best result is still above the limit. Condense
// neither modifies req nor shows providers anything that they could modify.
func (c *Chain) Condense(ctx context.Context, req *Request) (*Condensed, error) {
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	out := &Condensed{Messages: req.Messages, TokensBefore: req.Tokens()}
	out.TokensAfter = out.TokensBefore
	if ctx.Err() != nil {
		return nil, fmt.Errorf("condense: %w", ended(ctx))
	}
	onTarget, stacked := false, false
	for i := range c.candidates {
		cand := &c.candidates[i]
		if onTarget || cand.Fallback && out.TokensAfter <= req.Budget.Limit {
			out.Attempts = append(out.Attempts, skipped(cand, out.TokensAfter, onTarget))
			continue
		}
		stacked = out.Provider != ""
		att, err := c.turn(ctx, cand, req, out)
		if err != nil {
			return nil, err
		}
		onTarget = att.Outcome == OutcomeApplied
	}
	if stacked && out.TokensAfter > req.Budget.Limit {
		if err := c.startOver(ctx, req, out); err != nil {
			return nil, err
		}
	}
	if out.TokensAfter > req.Budget.Limit {
		return nil, &ExhaustedError{Tokens: out.TokensAfter, Limit: req.Budget.Limit, Attempts: out.Attempts}
	}
	if out.Provider != "" {
		out.Edit = Diff(req.Messages, out.Messages)
	}
	return out, nil
}

// skipped is the attempt of a candidate that need not be asked.
func skipped(cand *Candidate, tokens int, onTarget bool) Attempt {
	att := Attempt{
		Provider: cand.Name, Outcome: OutcomeSkipped, Reason: "not needed",
		TokensBefore: tokens, TokensAfter: tokens,
	}
	if !onTarget {
		att.Reason = "not needed: the conversation is within its limit"
	}
	return att
}

// turn asks one candidate to work on what out holds, and adds to out what came of it.
func (c *Chain) turn(ctx context.Context, cand *Candidate, req *Request, out *Condensed) (Attempt, error) {
	if c.opts.Asking != nil {
		c.opts.Asking(cand.Name)
	}
	att, messages := c.attempt(ctx, cand, req, out)
	out.Attempts = append(out.Attempts, att)
	out.Usage = out.Usage.Add(att.Usage)
	if c.opts.Asked != nil {
		c.opts.Asked(att)
	}
	if ctx.Err() != nil {
		return att, fmt.Errorf("condense with %s: %w", cand.Name, ended(ctx))
	}
	if messages != nil {
		out.Messages, out.TokensAfter, out.Provider = messages, att.TokensAfter, cand.Name
	}
	return att, nil
}

// startOver asks the last candidate for a conversation that is still above its limit, with
// the messages as they came: what the candidates before it did must not make impossible
// what it can do alone. The smaller result counts.
func (c *Chain) startOver(ctx context.Context, req *Request, out *Condensed) error {
	last := out.Attempts[len(out.Attempts)-1]
	if last.Outcome == OutcomeFailed || last.Outcome == OutcomeSkipped {
		return nil
	}
	alone := &Condensed{Messages: req.Messages, TokensAfter: out.TokensBefore, Attempts: out.Attempts, Usage: out.Usage}
	_, err := c.turn(ctx, &c.candidates[len(c.candidates)-1], req, alone)
	out.Attempts, out.Usage = alone.Attempts, alone.Usage
	if err == nil && alone.TokensAfter < out.TokensAfter {
		out.Messages, out.TokensAfter, out.Provider = alone.Messages, alone.TokensAfter, alone.Provider
	}
	return err
}

// ended returns why ctx is done: its error, and its cause if that says more.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Close closes the providers of all candidates.
func (c *Chain) Close() error {
	var errs []error
	for _, cand := range c.candidates {
		if err := Close(cand.Provider); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", cand.Name, err))
		}
	}
	return errors.Join(errs...)
}

func checkRequest(req *Request) error {
	if req == nil {
		return fmt.Errorf("%w: there is none", ErrInvalidRequest)
	}
	if req.Counter == nil {
		return fmt.Errorf("%w: no counter", ErrInvalidRequest)
	}
	if b := req.Budget; b.Target > b.Limit {
		return fmt.Errorf("%w: target of %d tokens above the limit of %d", ErrInvalidRequest, b.Target, b.Limit)
	}
	ids := newIDSet(req.Messages)
	for i := range req.Messages {
		m := &req.Messages[i]
		switch {
		case m.ID == "":
			return fmt.Errorf("%w: message %d has no ID", ErrInvalidRequest, i)
		case !ids.add(i):
			return fmt.Errorf("%w: message %d has the ID %q, as one before it", ErrInvalidRequest, i, m.ID)
		case m.Tokens <= 0:
			return fmt.Errorf("%w: message %s is not measured", ErrInvalidRequest, m.ID)
		}
		for j, p := range m.Parts {
			if fault := invalidPart(p, true); fault != "" {
				return fmt.Errorf("%w: message %s: part %d: %s", ErrInvalidRequest, m.ID, j, fault)
			}
		}
	}
	return nil
}

package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// DefaultTimeout is the deadline of a call to a provider without one of its own.
const DefaultTimeout = 2 * time.Minute

// DefaultGrace is how long a provider may take to return once its context is done.
const DefaultGrace = 250 * time.Millisecond

// A NamedProvider is a provider in a [Chain].
type NamedProvider struct {
	Name     string // for display, unique in the chain
	Provider CondensationProvider
	Timeout  time.Duration // of one call; 0 means [DefaultTimeout]
	// Abilities are those that it declares; default: [AbilitiesOf] Provider.
	Abilities Abilities
	// Fallback providers are asked only while the conversation is above its limit.
	Fallback bool
	// Uncut means that the provider may not even cut a newest request that alone exceeds the limit: this is for
	// truncation, after all other providers.
	Uncut bool
	// Strategy returns what Provider runs, once that is known. States are of one name and strategy: what gets the name later has its own.
	Strategy func(context.Context) string
}

// key is the key of the provider's state.
func (p *NamedProvider) key(ctx context.Context) string {
	if p.Strategy == nil {
		return p.Name
	}
	return p.Name + " " + p.Strategy(ctx)
}

// ChainOptions adjust a [Chain]. A nil pointer and the zero value of every field mean the
// defaults.
type ChainOptions struct {
	NewID func() string    // names new messages; default: UUID version 7
	Now   func() time.Time // default: [time.Now]
	Grace time.Duration    // default: [DefaultGrace]
	// Asking is called before a provider is asked, Asked after every attempt.
	Asking func(provider string)
	Asked  func(Attempt)
}

// A Chain asks providers in order until the conversation is on target. It provides deadlines, recovery from panics,
// verification and measuring for all of them. It is a provider itself, so chains nest. It is safe for concurrent use.
type Chain struct {
	providers []NamedProvider
	opts      ChainOptions
}

// NewChain returns a chain of the given providers, which must have distinct names.
func NewChain(providers []NamedProvider, opts *ChainOptions) (*Chain, error) {
	c := &Chain{providers: slices.Clone(providers)}
	if opts != nil {
		c.opts = *opts
	}
	if len(providers) == 0 {
		return nil, errors.New("chain: no providers")
	}
	names := map[string]bool{}
	for i := range c.providers {
		p := &c.providers[i]
		switch {
		case p.Name == "":
			return nil, fmt.Errorf("chain: provider %d has no name", i)
		case names[p.Name]:
			return nil, fmt.Errorf("chain: duplicate provider %q", p.Name)
		case p.Provider == nil:
			return nil, fmt.Errorf("chain: provider %q is nil", p.Name)
		}
		names[p.Name] = true
		if p.Timeout <= 0 {
			p.Timeout = DefaultTimeout
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

// A ChainResult is the result of a [Chain].
type ChainResult struct {
	Messages     []Message // measured; every message has an ID
	Edit         Edit      // from the messages of the request to Messages; empty if nothing changed
	Provider     string    // the last provider that contributed; empty if none did
	TokensBefore int       // in the scope of the budget, as are all tokens here
	TokensAfter  int
	Usage        Usage
	Later        string // why nothing was condensed yet, if a provider wants to wait
	// States are those of the results that Messages are made of, by provider.
	States   map[string][]byte
	Attempts []Attempt // one for every provider, in order; a second one of the last if it started over
}

// Run asks the providers in order. The first valid result that is on target ends the search. A valid result that
// saves something, but not enough, is the input of the next provider. If a provider fails, panics, hangs or breaks a
// rule, the next one is asked with the conversation as it was before. A fallback provider is skipped once the
// conversation is within the limit. New results have no target: every provider is asked. If all together are not
// enough, the last provider is asked again, with the original messages.
//
// The error wraps [ErrInvalidRequest] if the request is wrong, ctx.Err() if ctx ended, and
// is an [*ExhaustedError] if the best result is still above the limit. Run does not modify
// req, and providers get a copy of it.
func (c *Chain) Run(ctx context.Context, req *Request) (*ChainResult, error) {
	out, stacked, err := c.run(ctx, req)
	if err == nil && stacked && out.TokensAfter > req.Budget.Limit {
		err = c.startOver(ctx, req, out)
	}
	switch {
	case err != nil:
		return nil, err
	case out.TokensAfter > req.Budget.Limit:
		return nil, &ExhaustedError{Tokens: out.TokensAfter, Limit: req.Budget.Limit, Attempts: out.Attempts}
	case out.Provider != "":
		out.Edit = Diff(req.Messages, out.Messages)
	}
	return out, nil
}

// Condense implements [CondensationProvider], so that a chain can be a provider of another one. It is [Chain.Run]
// without the limit: a result above it is returned all the same, and no provider is asked twice. If no provider
// contributed and some failed, the error is theirs; it wraps [ErrUnavailable] if none of them could work. The steps
// are the providers' steps, each group after a step that reports the attempt.
func (c *Chain) Condense(ctx context.Context, req *Request) (*Result, error) {
	nested := *req
	_ = json.Unmarshal(req.State, &nested.States) // it is this chain's own, or none
	out, _, err := c.run(ctx, &nested)
	if err != nil {
		return nil, err
	}
	res := &Result{Messages: slices.Clone(out.Messages), Usage: out.Usage, Later: out.Later}
	if len(out.States) > 0 {
		res.State, _ = json.Marshal(merged(nested.States, out.States)) // cannot fail
	}
	known := finder(req.Messages)
	for i := range res.Messages {
		if m := &res.Messages[i]; known(m.ID) < 0 {
			m.ID = "" // it is new to the caller
		}
	}
	var failed, unavailable []error
	for _, a := range out.Attempts {
		if a.Err == nil && a.Outcome == OutcomeSkipped {
			continue
		}
		note := string(a.Outcome)
		if a.Reason != "" {
			note += ": " + a.Reason
		}
		res.Steps = append(res.Steps, Step{
			Name: a.Provider, TokensBefore: a.TokensBefore, TokensAfter: a.TokensAfter, Duration: a.Duration, Note: note,
		})
		res.Steps = append(res.Steps, a.Steps...)
		switch {
		case a.Err == nil:
		case a.Outcome == OutcomeSkipped:
			unavailable = append(unavailable, fmt.Errorf("%s: %w", a.Provider, a.Err))
		default:
			failed = append(failed, fmt.Errorf("%s: %w", a.Provider, a.Err))
		}
	}
	if out.Provider == "" {
		err = cmp.Or(errors.Join(failed...), errors.Join(unavailable...))
	}
	return res, err
}

// Frames implements [Framer]: the chain has framed new texts with the names of its providers.
func (c *Chain) Frames() bool { return true }

// run asks the providers once each. It reports whether the last one worked on the result of others.
func (c *Chain) run(ctx context.Context, req *Request) (out *ChainResult, stacked bool, err error) {
	if err := checkRequest(req); err != nil {
		return nil, false, err
	}
	out = &ChainResult{Messages: req.Messages, TokensBefore: req.Tokens()}
	out.TokensAfter = out.TokensBefore
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("condense: %w", ended(ctx))
	}
	onTarget := false
	for i := range c.providers {
		p := &c.providers[i]
		if onTarget || p.Fallback && out.TokensAfter <= req.Budget.Limit {
			tokens := out.TokensAfter
			att := Attempt{Provider: p.Name, Outcome: OutcomeSkipped, Reason: "not needed", TokensBefore: tokens, TokensAfter: tokens}
			if !onTarget {
				att.Reason += ": the conversation is within its limit"
			}
			out.Attempts = append(out.Attempts, att)
			continue
		}
		stacked = out.Provider != ""
		att, err := c.turn(ctx, p, req, out)
		if err != nil {
			return nil, false, err
		}
		if att.Outcome == OutcomeLater {
			out.Messages, out.TokensAfter, out.Provider, out.States, out.Later = req.Messages, out.TokensBefore, "", nil, att.Reason
			stacked = false
		}
		onTarget = att.Outcome == OutcomeApplied && req.Trigger != TriggerIngest || out.Later != ""
	}
	return out, stacked, nil
}

// turn asks one provider to work on the conversation in out, and adds the outcome to out.
func (c *Chain) turn(ctx context.Context, p *NamedProvider, req *Request, out *ChainResult) (Attempt, error) {
	if c.opts.Asking != nil {
		c.opts.Asking(p.Name)
	}
	att, res := c.attempt(ctx, p, req, out)
	out.Attempts = append(out.Attempts, att)
	out.Usage = out.Usage.Add(att.Usage)
	if c.opts.Asked != nil {
		c.opts.Asked(att)
	}
	if ctx.Err() != nil {
		return att, fmt.Errorf("condense with %s: %w", p.Name, ended(ctx))
	}
	if res == nil {
		return att, nil
	}
	out.Messages, out.TokensAfter, out.Provider = res.Messages, att.TokensAfter, p.Name
	if len(res.State) > 0 {
		out.States = merged(out.States, map[string][]byte{p.key(ctx): res.State})
	}
	return att, nil
}

// merged returns the states of a, and those of b in place of a's.
func merged(a, b map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// startOver asks the last provider again if the conversation is still above its limit, with the original messages:
// earlier providers must not prevent its success. The smaller result is used.
func (c *Chain) startOver(ctx context.Context, req *Request, out *ChainResult) error {
	last := out.Attempts[len(out.Attempts)-1]
	if last.Outcome == OutcomeFailed || last.Outcome == OutcomeSkipped {
		return nil
	}
	alone := *out
	alone.Messages, alone.TokensAfter, alone.Provider, alone.States = req.Messages, out.TokensBefore, "", nil
	_, err := c.turn(ctx, &c.providers[len(c.providers)-1], req, &alone)
	out.Attempts, out.Usage = alone.Attempts, alone.Usage
	if err == nil && alone.TokensAfter < out.TokensAfter {
		*out = alone
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

// Close closes all providers; see [Close].
func (c *Chain) Close() error {
	var errs []error
	for _, p := range c.providers {
		if err := Close(p.Provider); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

func checkRequest(req *Request) error {
	if req == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalidRequest)
	}
	if req.Counter == nil {
		return fmt.Errorf("%w: no counter", ErrInvalidRequest)
	}
	if b := req.Budget; b.Target > b.Limit {
		return fmt.Errorf("%w: target of %d tokens above the limit of %d", ErrInvalidRequest, b.Target, b.Limit)
	}
	ids := make(map[string]bool, len(req.Messages))
	for i := range req.Messages {
		m := &req.Messages[i]
		switch {
		case m.ID == "":
			return fmt.Errorf("%w: message %d has no ID", ErrInvalidRequest, i)
		case ids[m.ID]:
			return fmt.Errorf("%w: message %d has the ID %q of an earlier one", ErrInvalidRequest, i, m.ID)
		case m.Tokens <= 0:
			return fmt.Errorf("%w: message %s is not measured", ErrInvalidRequest, m.ID)
		}
		ids[m.ID] = true
		for j, p := range m.Parts {
			if fault := invalidPart(p, true); fault != "" {
				return fmt.Errorf("%w: message %s: part %d: %s", ErrInvalidRequest, m.ID, j, fault)
			}
		}
	}
	return nil
}

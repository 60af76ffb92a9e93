package condense

import (
	"context"
	"errors"
	"fmt"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// An Estimate says what asking a provider would cost at most, before it is asked; an answer
// that is cut off, or too long for its place, may have to be asked for again.
type Estimate struct {
	Provider string     `json:"provider"`
	Usage    core.Usage `json:"usage"`
	// Problem is why the provider cannot say, for instance because its model has no key;
	// Usage is zero then.
	Problem string `json:"problem,omitempty"`
}

// Estimate says what [Host.Manage] might spend on language models, provider by provider in
// the order of the chain, and asks none. A provider is asked only if those before it were
// not enough, so the sum is what is spent in the worst case. Providers that use no models,
// or cannot say, are left out. There is none if nothing would be done.
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
	for _, c := range p.Chain {
		provider, err := s.provider(ctx, c, p.Model.Name)
		if err != nil {
			return nil, err
		}
		if _, ok := provider.(core.CostEstimator); !ok || p.free() {
			continue
		}
		usage, err := estimate(ctx, c, provider, p.request.Clone())
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

// estimate asks one provider. That it panics must not cost more than the answer.
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

// announce puts into the report, and tells the observer, what the turn might cost.
func (s *setup) announce(ctx context.Context, p *plan, r *Report) error {
	estimates, err := s.estimates(ctx, p)
	if err != nil {
		return err
	}
	r.Estimates = estimates
	for _, e := range estimates {
		s.host.observe(Event{Kind: EventEstimated, Profile: p.Profile, Mode: p.Mode, Provider: e.Provider, Estimate: e})
	}
	return nil
}

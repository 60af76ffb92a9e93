package host

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// errUnpaid is why a provider is skipped in a turn in which nothing may be spent.
var errUnpaid = fmt.Errorf("auto is false, so no language model is asked unless a person wants it: %w", core.ErrUnavailable)

// unpaidKey marks the context of calls in which nothing may be spent.
type unpaidKey struct{}

// unpaid returns p for a turn in which nothing may be spent: one that would cost something
// is not asked, and the models that the host lends to the others refuse. What a plugin
// spends is not known, so none is asked.
func unpaid(c config.Provider, p core.CondensationProvider) core.CondensationProvider {
	return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if c.Plugin != "" {
			return nil, fmt.Errorf("what a plugin spends is not known: %w", errUnpaid)
		}
		u, err := core.EstimateCost(ctx, p, req)
		if err == nil && (u.USD > 0 || u.Unpriced > 0) {
			return nil, errUnpaid
		}
		return p.Condense(context.WithValue(ctx, unpaidKey{}, true), req)
	})
}

// A guarded model is one that the host lends. It refuses where nothing may be spent.
type guarded struct{ model.Generator }

// Generate implements [model.Generator].
func (g *guarded) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if ctx.Value(unpaidKey{}) != nil {
		return nil, errUnpaid
	}
	return g.Generator.Generate(ctx, p)
}

// CheckKey implements [model.Checker].
func (g *guarded) CheckKey() error {
	if c, ok := g.Generator.(model.Checker); ok {
		return c.CheckKey()
	}
	return nil
}

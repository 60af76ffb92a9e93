package condense

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// errUnpaid is why a provider is skipped in a turn in which nothing may be spent.
var errUnpaid = fmt.Errorf("auto is false, so no language model is asked unless a person wants it: %w", core.ErrUnavailable)

// unpaidKey marks the context of calls in which nothing may be spent.
type unpaidKey struct{}

// An unpaid provider is one in a turn in which nothing may be spent: if it would cost
// something it is not asked, and the models that the host lends to it refuse. What a plugin
// spends is not known, so none is asked.
type unpaid struct {
	core.CondensationProvider

	plugin bool
}

// Condense implements [core.CondensationProvider].
func (u unpaid) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	if u.plugin {
		return nil, fmt.Errorf("what a plugin spends is not known: %w", errUnpaid)
	}
	cost, err := core.EstimateCost(ctx, u.CondensationProvider, req)
	if err == nil && (cost.USD > 0 || cost.Unpriced > 0) {
		return nil, errUnpaid
	}
	return u.CondensationProvider.Condense(context.WithValue(ctx, unpaidKey{}, true), req)
}

// Frames implements [core.Framer].
func (u unpaid) Frames() bool {
	f, ok := u.CondensationProvider.(core.Framer)
	return ok && f.Frames()
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

package smart

import (
	"context"
	"fmt"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/registry"
)

// An Opportunity says what one pass, with its default settings and alone, would save.
type Opportunity struct {
	Class string // lossless, superseded or lossy
	core.Step
}

// Opportunities tries passes on the conversation of req, each for itself, and changes
// nothing. Those that need a model, that add something, or that take out as much as they are
// told to (value, window, score) are left out. Passes that stop when the target is met stop there: give a
// target of one token to learn what they could save at most. The error is that of ctx.
func Opportunities(ctx context.Context, req *core.Request) ([]Opportunity, error) {
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	var out []Opportunity
	var reader dialog.Reader
	for _, p := range passes() {
		if p.class == classModel || p.open {
			continue
		}
		ready, err := steps([]PassConfig{{Pass: p.name}}, registry.Env{})
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := newWork(req, registry.Env{}, req.Budget.Room(), &reader)
		w.first = req.Messages
		rep, err := ready[0].do(ctx, w, time.Now)
		if err != nil {
			return nil, err
		}
		out = append(out, Opportunity{Class: string(p.class), Step: rep})
	}
	return out, nil
}

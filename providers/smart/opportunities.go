package smart

import (
	"context"
	"fmt"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// An Opportunity is the saving of one pass by itself, with its default settings.
type Opportunity struct {
	Class string // lossless, superseded or lossy
	core.Step
}

// Opportunities tries each pass separately on the conversation of req and changes nothing. It
// leaves out passes that add something (digest), or that remove as much as the target asks for
// (value, window, score). Passes that stop when the target is met do so here, too: a
// target of one token gives the most that they can save. The error is that of ctx.
func Opportunities(ctx context.Context, req *core.Request) ([]Opportunity, error) {
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	var out []Opportunity
	var reader dialog.Reader
	for _, p := range passes {
		if p.onDemand {
			continue
		}
		ready, err := steps([]PassConfig{{Pass: p.name}})
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := newWork(req, req.Budget.Room(), &reader)
		w.first = req.Messages
		rep, err := ready[0].do(ctx, w, time.Now)
		if err != nil {
			return nil, err
		}
		out = append(out, Opportunity{Class: string(p.class), Step: rep})
	}
	return out, nil
}

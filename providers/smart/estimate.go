package smart

import (
	"context"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/model"
)

// asksModel reports whether a pass of p calls a language model.
func (p *Provider) asksModel() bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return s.pass.class == classModel })
}

// An asking provider has a pass that calls a language model. It is a type of its own so
// that nobody who asks what a comparison costs has to try the many lists that call none.
type asking struct{ *Provider }

// EstimateCost implements [core.CostEstimator]. It says what req costs at the most, in calls,
// tokens and US dollars: the passes are run as they would be, but no call is made, so what
// stands after the first model pass is what stood before it, and every answer counts as
// long as it may be. Nothing is sent.
func (a asking) EstimateCost(ctx context.Context, req *core.Request) (core.Usage, error) {
	if err := ctx.Err(); err != nil {
		return core.Usage{}, err
	}
	if req.Counter == nil {
		return core.Usage{}, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	if len(req.Messages) == 0 || req.Tokens() <= req.Budget.Target {
		return core.Usage{}, nil
	}
	w := newWork(req, a.env, int(a.land*float64(req.Budget.Room())), new(dialog.Reader))
	w.first, w.dry = req.Messages, true
	_, err := a.run(ctx, w)
	return w.usage, err
}

// estimate adds to w what prompts would cost.
func (w *work) estimate(gen model.Generator, prompts []*model.Prompt) {
	for _, p := range prompts {
		input := w.req.Counter.Count(core.Text(p.System)) + core.FramingTokens
		for i := range p.Messages {
			input += core.MessageTokens(w.req.Counter, p.Messages[i])
		}
		w.usage = w.usage.Add(gen.Info().Charge(core.Usage{Calls: 1, InputTokens: input, OutputTokens: p.MaxOutput}))
	}
}

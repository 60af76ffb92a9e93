package smart

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// asksModel reports whether a pass of p calls a language model.
func (p *Provider) asksModel() bool {
	return slices.ContainsFunc(p.steps, func(s step) bool { return s.asks })
}

// An asking provider has a pass that calls a language model. It is a separate type so that callers
// that estimate costs do not run the passes of providers that call none.
type asking struct{ *Provider }

// EstimateCost implements [core.CostEstimator]. It says what req costs at the most, in calls,
// tokens and US dollars: the passes run, but no call is made. So the first model pass leaves the
// conversation unchanged, and every answer counts with its maximum length. Nothing is sent.
func (a asking) EstimateCost(ctx context.Context, req *core.Request) (core.Usage, error) {
	return a.estimate(ctx, req, a.run)
}

// estimate returns what run would spend.
func (p *Provider) estimate(ctx context.Context, req *core.Request, run func(context.Context, *work) ([]core.Step, error)) (core.Usage, error) {
	if err := ctx.Err(); err != nil {
		return core.Usage{}, err
	}
	if req.Counter == nil {
		return core.Usage{}, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	if len(req.Messages) == 0 || req.Tokens() <= req.Budget.Target {
		return core.Usage{}, nil
	}
	w := newWork(req, p.env, int(p.land*float64(req.Budget.Room())), new(dialog.Reader))
	w.first, w.dry = req.Messages, true
	_, err := run(ctx, w)
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

// An Opportunity says what one pass would save by itself, with its default settings.
type Opportunity struct {
	Class string // lossless, superseded or lossy
	core.Step
}

// Opportunities tries each pass separately on the conversation of req and changes nothing. It
// leaves out passes that need a model, that add something, or that remove as much as the target
// asks for (value, window, score). Passes that stop when the target is met do so here, too: a
// target of one token gives the most that they can save. The error is that of ctx.
func Opportunities(ctx context.Context, req *core.Request) ([]Opportunity, error) {
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	var out []Opportunity
	var reader dialog.Reader
	for _, p := range passes {
		if p.class == classModel || p.onDemand {
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

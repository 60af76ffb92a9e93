package native

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// EstimateCost implements [core.CostEstimator]. It returns the highest cost of req if no answer is too long and
// asked for again: input by the host's counter and none of it from a cache, every answer as long as it may be.
// Nothing is sent. A model that cannot be asked, such as one without its key, costs nothing: the error says
// why.
func (p *Provider) EstimateCost(ctx context.Context, req *core.Request) (core.Usage, error) {
	if err := ctx.Err(); err != nil {
		return core.Usage{}, err
	}
	if req.Counter == nil {
		return core.Usage{}, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	if c, ok := p.gen.(model.Checker); ok {
		if err := c.CheckKey(); err != nil {
			return core.Usage{}, fmt.Errorf("its model cannot be asked: %w", err)
		}
	}
	plan, err := newPlan(req, &p.c)
	if err != nil || plan == nil {
		return core.Usage{}, err
	}
	tasks, designs, err := p.designs(plan)
	if err != nil {
		return core.Usage{}, err
	}
	var sum core.Usage
	for i, d := range designs {
		t := &tasks[i]
		for _, part := range d.parts {
			var prompt *model.Prompt
			if t.prefix {
				prompt = p.prefixPrompt(req, t)
			} else {
				prompt = p.textPrompt(req, t, part)
			}
			sum = sum.Add(p.charge(promptTokens(req.Counter, prompt), d.output))
		}
		for k, n := range d.mergers() {
			output := d.output
			if k == len(d.mergers())-1 {
				output = t.tokens
			}
			sum = sum.Add(p.charge(p.promptOverhead(req, t)+mergeOverhead(req.Counter)+n*(d.most()+partHeading), output))
		}
	}
	return sum, nil
}

// charge returns one call with its price.
func (p *Provider) charge(input, output int) core.Usage {
	return p.gen.Info().Charge(core.Usage{Calls: 1, InputTokens: input, OutputTokens: output})
}

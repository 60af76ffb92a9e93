package caller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
)

// A modelUse holds the language models that one call may use, and their usage.
type modelUse struct {
	call  *call
	slots chan struct{} // one for each model that is being asked

	mu            sync.Mutex
	asked, runs   int // calls so far, and runs of strategies
	input, output int // tokens that may still be read and written
	spent         core.Usage
	running       sync.Mutex // held by a run of a strategy, and guards runs
}

// concurrentModels is how many requests to models one call may have at the same time.
const concurrentModels = 8

// unknownOutput is the assumed longest answer of a model without a known one, in tokens.
const unknownOutput = 8192

// generateCodes are the codes of models' errors for plugins. The first match wins.
var generateCodes = []struct {
	err  error
	code condensepb.CallbackError_Code
}{
	{errQuota, condensepb.CallbackError_CODE_QUOTA},
	{errInvalid, condensepb.CallbackError_CODE_INVALID},
	{model.ErrTooLong, condensepb.CallbackError_CODE_TOO_LONG},
	{model.ErrNoText, condensepb.CallbackError_CODE_NO_TEXT},
	{core.ErrUnavailable, condensepb.CallbackError_CODE_UNAVAILABLE},
	{errors.ErrUnsupported, condensepb.CallbackError_CODE_UNSUPPORTED},
	{core.ErrInvalidRequest, condensepb.CallbackError_CODE_INVALID},
}

var (
	errQuota   = model.ErrQuota
	errInvalid = errors.New("invalid")
)

// enqueue has a model answer cb, in a separate goroutine that ends soon after ctx.
func (l *modelUse) enqueue(ctx context.Context, cb *condensepb.Callback) {
	l.call.others.Go(func() {
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		case <-ctx.Done():
			return
		}
		l.call.put(ctx, l.reply(ctx, cb))
	})
}

func (l *modelUse) reply(ctx context.Context, cb *condensepb.Callback) *condensepb.Reply {
	return reply(cb, "panic", func(r *condensepb.Reply) (err error) {
		switch k := cb.GetCall().(type) {
		case *condensepb.Callback_Hidden:
			r.Result, err = l.hidden(k.Hidden.GetIds())
		case *condensepb.Callback_File:
			r.Result, err = l.file(byhand.String(k.File.GetPath()))
		case *condensepb.Callback_Run:
			r.Result, err = l.run(ctx, k.Run)
		case *condensepb.Callback_Embed:
			r.Result, err = l.embed(ctx, k.Embed.GetTexts())
		default:
			r.Result, err = l.generate(ctx, cb.GetGenerate())
		}
		return err
	})
}

func (l *modelUse) generate(ctx context.Context, g *condensepb.Generate) (*condensepb.Reply_Generated, error) {
	m, err := l.call.client.opts.Model(l.call.req, g.GetModel())
	if err != nil {
		return nil, err
	}
	p, size, err := l.prompt(g)
	if err != nil {
		return nil, err
	}
	answer, err := l.ask(ctx, m, p, size)
	if err != nil {
		return nil, err
	}
	if p.Schema != "" && !json.Valid([]byte(answer.Text)) {
		return nil, fmt.Errorf("the answer is not JSON, as the schema demands (cut at its limit: %t)", answer.Truncated)
	}
	return &condensepb.Reply_Generated{Generated: &condensepb.Generated{
		Text: byhand.Bytes(answer.Text), Truncated: answer.Truncated, Usage: wire.ToUsage(answer.Usage),
	}}, nil
}

// ask asks a model within the quota of the call. Size is that of p in tokens.
func (l *modelUse) ask(ctx context.Context, m model.Generator, p *model.Prompt, size int) (*model.Answer, error) {
	want := p.MaxOutput
	if want == 0 {
		want = m.Info().MaxOutput
	}
	within, err := l.reserve(size, cmp.Or(want, unknownOutput))
	if err != nil {
		return nil, err
	}
	limited := *p
	limited.MaxOutput = within
	answer, err := m.Generate(ctx, &limited)
	if answer == nil {
		l.charge(within, core.Usage{})
		return nil, cmp.Or(err, model.ErrNoText)
	}
	l.charge(within, answer.Usage)
	return answer, err
}

// charge returns what was reserved, and counts the usage.
func (l *modelUse) charge(reserved int, u core.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.output += reserved - u.OutputTokens
	l.spent = l.spent.Add(u)
}

// reserve subtracts a call with the given number of input tokens from the remaining quota,
// and returns how many tokens it may write.
func (l *modelUse) reserve(input, output int) (int, error) {
	limits := &l.call.client.opts.Limits
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.call.estimate: // nothing would count its requests
		return 0, fmt.Errorf("an estimate may not ask a model: %w", core.ErrUnavailable)
	case l.asked >= limits.ModelCalls:
		return 0, fmt.Errorf("%w: more than %d requests to language models in one call: limits.model_calls of the provider", errQuota, limits.ModelCalls)
	case input > l.input:
		return 0, fmt.Errorf("%w: more than %d tokens for models to read", errQuota, limits.ModelInput)
	case l.output <= 0:
		return 0, fmt.Errorf("%w: more than %d tokens for models to write", errQuota, limits.ModelOutput)
	}
	l.asked++
	l.input -= input
	output = min(output, l.output)
	l.output -= output
	return output, nil
}

// prompt returns the prompt and its size in tokens.
func (l *modelUse) prompt(g *condensepb.Generate) (*model.Prompt, int, error) {
	req := l.call.req
	p := &model.Prompt{
		System: byhand.String(g.GetSystem()), Tools: byhand.String(g.GetTools()), Cached: g.GetCached(),
		Schema: byhand.String(g.GetSchema()), Temperature: g.Temperature, Effort: g.GetEffort(),
	}
	size := req.Counter.Count(core.Text(p.System), core.Text(p.Tools), core.Text(p.Schema))
	invalid := func(i int, format string, args ...any) (*model.Prompt, int, error) {
		return nil, 0, fmt.Errorf("%w: input %d: "+format, append([]any{errInvalid, i}, args...)...)
	}
	if n := g.GetMaxOutputTokens(); n < 0 || n > 1<<31-1 {
		return nil, 0, fmt.Errorf("%w: max_output_tokens: %d", errInvalid, n)
	}
	p.MaxOutput = int(g.GetMaxOutputTokens())
	switch t := g.GetTemperature(); {
	case p.Schema != "" && json.Unmarshal(g.GetSchema(), &map[string]json.RawMessage{}) != nil:
		return nil, 0, fmt.Errorf("%w: schema: want a JSON object", errInvalid)
	case !(t >= 0 && t <= 2):
		return nil, 0, fmt.Errorf("%w: temperature: %v; want 0 to 2", errInvalid, t)
	case p.Effort != "" && p.Effort != "low" && p.Effort != "medium" && p.Effort != "high":
		return nil, 0, fmt.Errorf("%w: effort: %q; want low, medium or high", errInvalid, p.Effort)
	}
	for i, in := range g.GetInput() {
		switch k := in.GetKind().(type) {
		case *condensepb.GenerateInput_Messages:
			first, last, err := span(l.call.answer.at, k.Messages)
			if err != nil {
				return invalid(i, "%w", err)
			}
			for n := first; n <= last; n++ {
				size += req.Messages[n].Tokens
			}
			if size > l.call.client.opts.Limits.ModelInput { // before it takes memory too
				return nil, 0, fmt.Errorf("%w: more than %d tokens for models to read", errQuota, l.call.client.opts.Limits.ModelInput)
			}
			p.Messages = append(p.Messages, req.Messages[first:last+1]...)
		case *condensepb.GenerateInput_Message:
			m := core.Message{Role: core.Role(byhand.Unname(k.Message.GetRole()))}
			if m.Role != core.RoleUser && m.Role != core.RoleAssistant && m.Role != core.RoleTool {
				return invalid(i, "role %q: want user, assistant or tool", printable(string(m.Role)))
			}
			var err error
			if m.Parts, err = fromParts(k.Message.GetParts()); err != nil {
				return invalid(i, "%w", err)
			}
			size += core.MessageTokens(req.Counter, m)
			p.Messages = append(p.Messages, m)
		default:
			return invalid(i, "of a kind that this host does not know")
		}
	}
	if len(p.Messages) == 0 {
		return nil, 0, fmt.Errorf("%w: no input", errInvalid)
	}
	return p, size, nil
}

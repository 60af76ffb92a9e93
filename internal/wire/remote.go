package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
)

// A remoteModel is a language model of the host for a provider in a plugin.
type remoteModel struct {
	server *Server
	name   string
}

// errNoCall is the error of a request outside of a call.
var errNoCall = errors.New("a language model of the host can be asked during Condense only, with the context of the call")

// Generate has the host ask the model, within the call of ctx.
func (m *remoteModel) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	answer, err := m.generate(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("language model %q: %w", m.name, err)
	}
	return answer, nil
}

func (m *remoteModel) generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	c, ok := callOf(ctx)
	if !ok {
		return nil, errNoCall
	}
	g := &condensepb.Generate{
		Model: valid(m.name), System: byhand.Bytes(p.System), MaxOutputTokens: int64(p.MaxOutput), Tools: byhand.Bytes(p.Tools), Cached: p.Cached,
	}
	var err error
	if g.Input, err = c.inputs(p.Messages); err != nil {
		return nil, err
	}
	r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_Generate{Generate: g}})
	if err != nil {
		return nil, refusal(err)
	}
	got := r.GetGenerated()
	if got == nil {
		return nil, errors.New("the host answered something else")
	}
	usage := fromUsage(got.GetUsage())
	c.mu.Lock()
	c.modelUsage = c.modelUsage.Add(usage)
	c.mu.Unlock()
	return &model.Answer{Text: byhand.String(got.GetText()), Truncated: got.GetTruncated(), Usage: usage}, nil
}

// Info returns the information that the host sent with its last call: none before the first
// call, and none for models that the host's configuration does not declare.
func (m *remoteModel) Info() model.Info {
	if known := m.server.models.Load(); known != nil {
		if i, ok := (*known)[m.name]; ok {
			return i
		}
	}
	return model.Info{Name: m.name}
}

// inputs encodes messages for the host: messages of the conversation by reference.
func (c *serverCall) inputs(messages []core.Message) ([]*condensepb.GenerateInput, error) {
	var inputs []*condensepb.GenerateInput
	for i := 0; i < len(messages); {
		if n := byhand.Run(c.messages, c.at, messages[i:]); n > 0 {
			r := &condensepb.MessageRange{First: byhand.Name(messages[i].ID)}
			if n > 1 {
				r.Last = byhand.Name(messages[i+n-1].ID)
			}
			inputs = append(inputs, &condensepb.GenerateInput{Kind: &condensepb.GenerateInput_Messages{Messages: r}})
			i += n
			continue
		}
		parts, err := toParts(messages[i].Parts)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		inputs = append(inputs, &condensepb.GenerateInput{Kind: &condensepb.GenerateInput_Message{
			Message: &condensepb.NewMessage{Role: byhand.Name(string(messages[i].Role)), Parts: parts},
		}})
		i++
	}
	return inputs, nil
}

// own returns the part of u that the provider spent itself: the host knows the usage of its
// own models.
func (c *serverCall) own(u core.Usage) core.Usage {
	c.mu.Lock()
	l := c.modelUsage
	c.mu.Unlock()
	return core.Usage{
		Calls: max(u.Calls-l.Calls, 0), InputTokens: max(u.InputTokens-l.InputTokens, 0),
		OutputTokens: max(u.OutputTokens-l.OutputTokens, 0), CachedTokens: max(u.CachedTokens-l.CachedTokens, 0),
		USD: cents(u.USD - l.USD), Unpriced: max(u.Unpriced-l.Unpriced, 0),
	}
}

// cents returns an amount without the rounding errors of floating-point arithmetic.
func cents(usd float64) float64 {
	const least = 1e-9
	if usd < least {
		return 0
	}
	return usd
}

// refusal returns the provider's error for a model that the host refuses.
func refusal(err error) error {
	var refused *callbackError
	if !errors.As(err, &refused) {
		return err
	}
	for _, c := range generateCodes {
		if c.code == refused.Code && c.code != condensepb.CallbackError_CODE_INVALID {
			return fmt.Errorf("%w: %w", c.err, err)
		}
	}
	if refused.Code == condensepb.CallbackError_CODE_UNSUPPORTED {
		return fmt.Errorf("%w: %s", core.ErrUnavailable, refused.Error())
	}
	return err
}

func toModels(models []NamedModel) []*condensepb.LentModel {
	var out []*condensepb.LentModel
	for _, m := range models {
		out = append(out, &condensepb.LentModel{
			Name: valid(m.Name), Window: int64(m.Info.Window), MaxOutput: int64(m.Info.MaxOutput), Images: m.Info.Images,
			Price: toPrice(m.Info.Price),
		})
	}
	return out
}

// count has the host count each list of parts.
func (c *serverCall) count(ctx context.Context, contents [][]core.Part) ([]int64, error) {
	req := &condensepb.CountTokens{}
	for _, content := range contents {
		parts, err := toParts(content)
		if err != nil {
			return nil, err
		}
		req.Items = append(req.Items, &condensepb.CountItem{Kind: &condensepb.CountItem_Content{Content: &condensepb.Content{Parts: parts}}})
	}
	r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_CountTokens{CountTokens: req}})
	return r.GetTokenCounts().GetTokens(), err
}

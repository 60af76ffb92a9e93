package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
)

// errNoCall is the error of a request outside of a call.
var errNoCall = errors.New("the host can be asked during Condense only, with the context of the call")

// generate has the host ask the model of that name, within the call of ctx.
func generate(ctx context.Context, name string, p *model.Prompt) (*model.Answer, error) {
	c, ok := callOf(ctx)
	if !ok {
		return nil, errNoCall
	}
	if p.Schema != "" || p.Temperature != nil || p.Effort != "" {
		if err := c.answered("schema"); err != nil {
			return nil, err
		}
	}
	data, err := byhand.Generate(name, p, c.messages, c.at)
	if err != nil {
		return nil, err
	}
	g := &condensepb.Generate{}
	if err := proto.Unmarshal(data, g); err != nil {
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
	usage := c.spent(got.GetUsage())
	return &model.Answer{Text: byhand.String(got.GetText()), Truncated: got.GetTruncated(), Usage: usage}, nil
}

// spent returns the usage of the host's models that a reply reports, and remembers it.
func (c *serverCall) spent(u *condensepb.Usage) core.Usage {
	usage := fromUsage(u)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.modelUsage = c.modelUsage.Add(usage)
	return usage
}

// own returns the part of u that the provider spent itself: the host knows the usage of its
// own models.
func (c *serverCall) own(u core.Usage) core.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return less(u, c.modelUsage)
}

// less returns u without v.
func less(u, v core.Usage) core.Usage {
	return core.Usage{
		Calls: max(u.Calls-v.Calls, 0), InputTokens: max(u.InputTokens-v.InputTokens, 0),
		OutputTokens: max(u.OutputTokens-v.OutputTokens, 0), CachedTokens: max(u.CachedTokens-v.CachedTokens, 0),
		USD: cents(u.USD - v.USD), Unpriced: max(u.Unpriced-v.Unpriced, 0),
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
	if refused := new(callbackError); errors.As(err, &refused) && byhand.Refusals[int32(refused.Code)] != nil {
		return fmt.Errorf("%w: %w", byhand.Refusals[int32(refused.Code)], err)
	}
	return err
}

// answered returns an error that wraps [errors.ErrUnsupported] if the host does not answer the callback of that name.
func (c *serverCall) answered(name string) error {
	if c == nil {
		return errNoCall
	}
	if slices.Contains(c.callbacks, name) {
		return nil
	}
	return fmt.Errorf("%s: not supported by this host: %w", name, errors.ErrUnsupported)
}

// embed is Embed of [registry.Env] in a plugin.
func embed(ctx context.Context, texts []string) (vectors [][]float32, usage core.Usage, err error) {
	c, _ := callOf(ctx)
	if err := c.answered("embed"); err != nil {
		return nil, usage, err
	}
	for part := range slices.Chunk(texts, maxTexts/2) {
		ask := &condensepb.Embed{}
		ask.Texts = append(ask.Texts, plain.Each(part, byhand.Bytes)...)
		r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_Embed{Embed: ask}})
		if err != nil {
			return nil, usage, refusal(err)
		}
		usage = usage.Add(c.spent(r.GetEmbedded().GetUsage()))
		for _, v := range r.GetEmbedded().GetVectors() {
			vectors = append(vectors, v.GetValues())
		}
	}
	return vectors, usage, nil
}

// run is Run of [registry.Env] in a plugin.
func run(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage) (*core.Result, error) {
	c, _ := callOf(ctx)
	if err := c.answered("run"); err != nil {
		return nil, err
	}
	if n := len(req.Messages); n != len(c.messages) || n == 0 || byhand.Run(c.messages, c.at, req.Messages) != n {
		return nil, errors.New("run: want the messages of the request as they came, with those protected that stay")
	}
	ask := &condensepb.Run{Strategy: valid(strategy), Settings: settings, Target: int64(req.Budget.Target)}
	for i, m := range req.Messages {
		switch last := len(ask.GetMessages()) - 1; {
		case m.Protected:
		case i > 0 && last >= 0 && !req.Messages[i-1].Protected:
			ask.Messages[last].Last = byhand.Name(m.ID)
		default:
			ask.Messages = append(ask.Messages, &condensepb.MessageRange{First: byhand.Name(m.ID)})
		}
	}
	if len(ask.GetMessages()) == 0 {
		return &core.Result{Messages: req.Messages}, nil
	}
	r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_Run{Run: ask}})
	if err != nil {
		return nil, refusal(err)
	}
	a := newAnswer(req.Messages, (Limits{}).withDefaults())
	if err := a.add(r.GetRun().GetEdit(), 0); err != nil {
		return nil, err
	}
	return a.result(&condensepb.Done{Usage: toUsage(c.spent(r.GetRun().GetUsage())), Steps: r.GetRun().GetSteps()})
}

// hidden is Hidden of [core.Request] in a plugin.
func (c *serverCall) hidden(ctx context.Context, ids []string) ([]core.Message, error) {
	r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_Hidden{Hidden: &condensepb.Hidden{Ids: each(ids, byhand.Name)}}})
	if err != nil {
		return nil, refusal(err)
	}
	data, err := proto.Marshal(&condensepb.Messages{Messages: r.GetHidden().GetMessages()})
	if err != nil {
		return nil, err
	}
	return byhand.DecodeRun(data, nil)
}

// file is File of [core.Request] in a plugin.
func (c *serverCall) file(ctx context.Context, path string) (pieces []core.FilePiece, _ error) {
	r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_File{File: &condensepb.File{Path: byhand.Bytes(path)}}})
	for _, p := range r.GetFile().GetPieces() {
		pieces = append(pieces, core.FilePiece{First: int(p.GetFirst()), Text: byhand.String(p.GetText()), Unsure: p.GetUnsure()})
	}
	return pieces, refusal(err)
}

func toModels(models iter.Seq2[string, model.Info]) []*condensepb.LentModel {
	var out []*condensepb.LentModel
	for name, m := range models {
		out = append(out, &condensepb.LentModel{
			Name: valid(name), Window: int64(m.Window), MaxOutput: int64(m.MaxOutput), Images: m.Images, Price: toPrice(m.Price),
		})
	}
	return out
}

// count has the host count each list of parts.
func (c *serverCall) count(ctx context.Context, contents [][]core.Part) ([]int64, error) {
	data, err := byhand.CountTokens(contents)
	if err != nil {
		return nil, err
	}
	req := &condensepb.CountTokens{}
	if err := proto.Unmarshal(data, req); err != nil {
		return nil, err
	}
	r, err := c.ask(ctx, &condensepb.Callback{Call: &condensepb.Callback_CountTokens{CountTokens: req}})
	return r.GetTokenCounts().GetTokens(), err
}

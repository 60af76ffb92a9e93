package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/condensehq/condense/core"
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
		Model: valid(m.name), System: bytesOf(p.System), MaxOutputTokens: int64(p.MaxOutput), Tools: bytesOf(p.Tools), Cached: p.Cached,
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
	return &model.Answer{Text: stringOf(got.GetText()), Truncated: got.GetTruncated(), Usage: usage}, nil
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
		if n := c.run(messages[i:]); n > 0 {
			r := &condensepb.MessageRange{First: name(messages[i].ID)}
			if n > 1 {
				r.Last = name(messages[i+n-1].ID)
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
			Message: &condensepb.NewMessage{Role: name(string(messages[i].Role)), Parts: parts},
		}})
		i++
	}
	return inputs, nil
}

// run returns how many of messages, from the first, are in the conversation in this order
// with the same content.
func (c *serverCall) run(messages []core.Message) int {
	start, ok := c.at[messages[0].ID]
	if !ok {
		return 0
	}
	n := 0
	for n < len(messages) && start+n < len(c.messages) {
		m, was := &messages[n], &c.messages[start+n]
		if m.ID != was.ID || m.Role != was.Role || !core.EqualParts(m.Parts, was.Parts) {
			break
		}
		n++
	}
	return n
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
		if c.code == refused.Code && c.code != condensepb.CallbackError_CODE_QUOTA && c.code != condensepb.CallbackError_CODE_INVALID {
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

// learn stores the host's information about its models.
func (s *Server) learn(models []*condensepb.LentModel) {
	known := make(map[string]model.Info, len(models))
	for _, m := range models {
		known[m.GetName()] = model.Info{
			Name: m.GetName(), Window: int(m.GetWindow()), MaxOutput: int(m.GetMaxOutput()), Images: m.GetImages(),
			Price: fromPrice(m.GetPrice()),
		}
	}
	s.models.Store(&known)
}

// A remoteCounter is the host's counter for a provider in a plugin.
type remoteCounter struct {
	//nolint:containedctx // Count has no context: it belongs to the call that it was made for
	ctx    context.Context
	cancel context.CancelCauseFunc
	call   *serverCall

	// The received messages, and the first part of each in the copy for the provider:
	// counting all parts of a message returns the number that the host sent.
	messages []core.Message
	firsts   []*core.Part

	mu    sync.Mutex
	known map[*core.Part]int // index of the message whose first part it is; nil before it is needed
	seen  map[core.Part]int  // counts of comparable parts
}

func newRemoteCounter(ctx context.Context, cancel context.CancelCauseFunc, call *serverCall, messages, given []core.Message) *remoteCounter {
	c := &remoteCounter{ctx: ctx, cancel: cancel, call: call, messages: messages, seen: map[core.Part]int{}}
	c.firsts = make([]*core.Part, len(given))
	for i := range given {
		if len(given[i].Parts) > 0 {
			c.firsts[i] = &given[i].Parts[0]
		}
	}
	return c
}

// Count asks the host. If that fails, the call has failed, and Count returns an estimate so
// that the provider can finish.
func (c *remoteCounter) Count(parts ...core.Part) int {
	return c.CountEach(parts)[0]
}

// CountEach counts each list of parts separately, in one round trip.
func (c *remoteCounter) CountEach(contents ...[]core.Part) []int {
	counts := make([]int, len(contents))
	var ask []int // indexes of unknown counts
	c.mu.Lock()
	for i, parts := range contents {
		n, ok := c.lookup(parts)
		if counts[i] = n; !ok {
			ask = append(ask, i)
		}
	}
	c.mu.Unlock()
	if len(ask) == 0 {
		return counts
	}
	got, err := c.count(contents, ask)
	if err != nil {
		c.cancel(fmt.Errorf("count tokens: %w", err))
		for _, i := range ask {
			counts[i] = core.ContentBytes(contents[i]...) / 4 // an estimate without effect: the call is over
		}
		return counts
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for j, i := range ask {
		counts[i] = int(got[j])
		if len(contents[i]) == 1 {
			if p := contents[i][0]; isKey(p) {
				c.seen[p] = counts[i]
			}
		}
	}
	return counts
}

// lookup returns the known count of parts.
func (c *remoteCounter) lookup(parts []core.Part) (int, bool) {
	if len(parts) == 0 {
		return 0, true
	}
	if c.known == nil {
		c.known = make(map[*core.Part]int, len(c.firsts))
		for i, p := range c.firsts {
			c.known[p] = i
		}
	}
	if i, ok := c.known[&parts[0]]; ok {
		if m := &c.messages[i]; m.Tokens > 0 && core.EqualParts(m.Parts, parts) {
			return m.Tokens - core.FramingTokens, true
		}
	}
	if len(parts) == 1 && isKey(parts[0]) {
		n, ok := c.seen[parts[0]]
		return n, ok
	}
	return 0, false
}

// isKey reports whether p can be the key of a map: tool results cannot.
func isKey(p core.Part) bool {
	switch p.(type) {
	case core.Text, core.ToolCall, core.Image, core.Reasoning, core.Opaque:
		return true
	default:
		return false
	}
}

func (c *remoteCounter) count(contents [][]core.Part, ask []int) ([]int64, error) {
	req := &condensepb.CountTokens{}
	for _, i := range ask {
		parts, err := toParts(contents[i])
		if err != nil {
			return nil, err
		}
		req.Items = append(req.Items, &condensepb.CountItem{Kind: &condensepb.CountItem_Content{Content: &condensepb.Content{Parts: parts}}})
	}
	r, err := c.call.ask(c.ctx, &condensepb.Callback{Call: &condensepb.Callback_CountTokens{CountTokens: req}})
	if err != nil {
		return nil, err
	}
	got := r.GetTokenCounts().GetTokens()
	if len(got) != len(ask) {
		return nil, fmt.Errorf("the host answered %d numbers to %d questions", len(got), len(ask))
	}
	return got, nil
}

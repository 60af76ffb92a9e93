package native

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
)

// A design has the parts in which a model reads the messages to summarize.
type design struct {
	parts  [][]core.Message // as the model is shown them
	output int              // tokens for the summary of one part
	batch  int              // summaries of parts that are merged at once
	limit  int              // tokens that a request may have
}

// calls returns how often the model is asked: once for every part, and for every merger of its answers.
func (d *design) calls() int { return len(d.parts) + len(d.mergers()) }

// mergers returns how many summaries each merger reads.
func (d *design) mergers() []int {
	var n []int
	for k := len(d.parts); k > 1; k = (k + d.batch - 1) / d.batch {
		for i := 0; i < k; i += d.batch {
			n = append(n, min(d.batch, k-i))
		}
	}
	return n
}

// window returns the tokens that the model can read and write together; where that is not
// known, the window of the agent's model, which is the same one more often than not.
func (p *Provider) window(req *core.Request) int {
	if w := p.gen.Info().Window; w > 0 {
		return w
	}
	return req.Budget.Window
}

// design divides the messages of a task into parts that fit the window. Tool results and arguments are
// shortened first: source files to their signatures, then everything to its beginning and end. Only a
// conversation that is still too long is divided, where that breaks no group, and neighbors overlap.
func (p *Provider) design(req *core.Request, t *task, window int) (*design, error) {
	d := &design{limit: int(float64(window)*(1-margin)) - t.tokens, output: t.tokens}
	if t.prefix {
		if prompt := p.prefixPrompt(req, t); promptTokens(req.Counter, prompt) <= d.limit {
			d.parts = [][]core.Message{nil}
			return d, nil
		}
		t.prefix, t.kept = false, 0
	}
	room := d.limit - p.promptOverhead(req, t)
	shape := &shaper{images: p.gen.Info().Images, native: p.c.Request == requestNative}
	var shaped []core.Message
	for _, lighten := range []func([]core.Message) []core.Message{keepAll, dropStaleEnvironment, foldResults, p.clipResults} {
		t.messages = lighten(t.messages)
		shaped = shape.shape(t.messages)
		if messagesTokens(req.Counter, shaped) <= room {
			d.parts = [][]core.Message{shaped}
			return d, nil
		}
	}
	d.output = min(t.tokens, max(d.limit/8, minGain))
	d.batch = (d.limit - p.promptOverhead(req, t) - mergeOverhead(req.Counter)) / (d.most() + partHeading)
	if d.batch < 2 || room < minPart {
		if p.gen.Info().Window == 0 {
			// The window was a guess, and a bad one. The model will report its limit.
			d.parts = [][]core.Message{shaped}
			return d, nil
		}
		return nil, fmt.Errorf("the window of %s is too small: %s tokens, of which %s are left for the conversation", nameOf(p.gen), size.Group(window), size.Group(max(room, 0)))
	}
	d.parts = p.divide(req.Counter, t.messages, room-partNote)
	return d, nil
}

// most returns the tokens that are kept of a part's summary, should the model exceed its instructions.
func (d *design) most() int { return d.output * 5 / 4 }

const (
	partHeading = 16  // tokens of the words above a part's summary
	partNote    = 100 // tokens of the instructions about the part that the model reads
	minPart     = 512 // tokens below which reading in parts says nothing
)

func nameOf(g model.Generator) string {
	if n := g.Info().Name; n != "" {
		return "the model " + n
	}
	return "the model"
}

func keepAll(messages []core.Message) []core.Message { return messages }

func mergeOverhead(c core.Counter) int { return c.Count(core.Text(mergePrompt)) + core.FramingTokens }

// promptOverhead returns the tokens of a request without the messages to summarize.
func (p *Provider) promptOverhead(req *core.Request, t *task) int {
	return req.Counter.Count(core.Text(p.system)) + req.Counter.Count(core.Text(p.instructions(req, t))) + 2*core.FramingTokens
}

func messagesTokens(c core.Counter, messages []core.Message) int {
	n := 0
	for i := range messages {
		n += core.MessageTokens(c, messages[i])
	}
	return n
}

// summarize has the summary of one task written, in the parts of its design.
func (p *Provider) summarize(ctx context.Context, s *scribe, req *core.Request, t *task, d *design) (string, error) {
	text, err := p.read(ctx, s, req, t, d)
	if !errors.Is(err, model.ErrTooLong) {
		return text, err
	}
	// The vendor counts otherwise than we do. Half of the refused request is worth one try.
	smaller, fault := p.design(req, t, d.limit/2+t.tokens)
	if fault == nil && !s.again(smaller.calls()) {
		fault = fmt.Errorf("%d more calls, and max_calls allows %d in all", smaller.calls(), p.c.MaxCalls)
	}
	if fault != nil {
		return "", fmt.Errorf("%w; in smaller parts: %w", err, fault)
	}
	return p.read(ctx, s, req, t, smaller)
}

func (p *Provider) read(ctx context.Context, s *scribe, req *core.Request, t *task, d *design) (string, error) {
	if len(d.parts) == 1 {
		return p.ask(ctx, s, req.Counter, t, func(t *task) *model.Prompt {
			if t.prefix {
				return p.prefixPrompt(req, t)
			}
			return p.textPrompt(req, t, d.parts[0])
		})
	}
	texts, err := gather(ctx, parallel, len(d.parts), func(ctx context.Context, i int) (string, error) {
		part := *t
		part.tokens, part.fits = d.output, d.most()
		part.note = fmt.Sprintf("The conversation is too long to be read at once: this is part %d of %d. Write about this part only.", i+1, len(d.parts))
		if i > 0 {
			part.note += " Its beginning repeats the end of the part before."
		}
		return p.ask(ctx, s, req.Counter, &part, func(t *task) *model.Prompt { return p.textPrompt(req, t, d.parts[i]) })
	})
	if err != nil {
		return "", err
	}
	for len(texts) > 1 {
		batches := (len(texts) + d.batch - 1) / d.batch
		texts, err = gather(ctx, parallel, batches, func(ctx context.Context, i int) (string, error) {
			merged := *t
			if batches > 1 {
				merged.tokens, merged.fits = d.output, d.most()
			}
			return p.merge(ctx, s, req, &merged, d.most(), texts[i*d.batch:min(len(texts), (i+1)*d.batch)])
		})
		if err != nil {
			return "", err
		}
	}
	return texts[0], nil
}

// merge asks for one summary of the summaries of neighboring parts, each of which has at most so
// many tokens or is cut.
func (p *Provider) merge(ctx context.Context, s *scribe, req *core.Request, t *task, most int, texts []string) (string, error) {
	var b strings.Builder
	for i, text := range texts {
		if n := req.Counter.Count(core.Text(text)); n > most {
			text = clip(text, len(text)*most/n)
		}
		fmt.Fprintf(&b, "# Part %d of %d\n\n%s\n\n", i+1, len(texts), text)
	}
	return p.ask(ctx, s, req.Counter, t, func(t *task) *model.Prompt {
		return &model.Prompt{
			System:    strings.TrimSpace(p.system),
			Messages:  []core.Message{userText(b.String()), userText(strings.TrimSpace(mergePrompt) + "\n\n" + p.instructions(req, t))},
			MaxOutput: t.tokens,
		}
	})
}

package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
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
	return plain.Sum(messages, func(x core.Message) int { return core.MessageTokens(c, x) })
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
	if err := model.CheckKey(p.gen); err != nil {
		return core.Usage{}, fmt.Errorf("its model cannot be asked: %w", err)
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

// A piece is not divided further: a group of messages in the form for the model.
type piece struct {
	messages []core.Message
	tokens   int
}

// divide returns messages in parts of at most so many tokens, as the model is shown them.
// Tool groups stay together unless one alone is too large. Each part but the first begins
// with the end of the one before.
func (p *Provider) divide(counter core.Counter, messages []core.Message, room int) [][]core.Message {
	pieces := p.pieces(counter, messages, room)
	repeat := int(overlap * float64(room))
	var parts [][]core.Message
	for start := 0; start < len(pieces); {
		size := 0
		first := start
		// The end of the part before, as far as the first new piece leaves room.
		for len(parts) > 0 && first > 0 && size+pieces[first-1].tokens <= min(repeat, room-pieces[start].tokens) {
			first--
			size += pieces[first].tokens
		}
		end := start
		for end < len(pieces) && (end == start || size+pieces[end].tokens <= room) {
			size += pieces[end].tokens
			end++
		}
		parts = append(parts, joinPieces(pieces[first:end]))
		start = end
	}
	return parts
}

func (p *Provider) pieces(counter core.Counter, messages []core.Message, room int) []piece {
	shape := &shaper{images: p.gen.Info().Images}
	var pieces []piece
	for _, span := range core.Groups(messages) {
		shaped := shape.shape(messages[span.Start:span.End])
		// A piece is not the beginning of anything.
		if len(shaped) > 1 && shaped[1].Role == core.RoleAssistant && slices.Equal(shaped[0].Parts, []core.Part{beginning}) {
			shaped = shaped[1:]
		}
		g := piece{shaped, messagesTokens(counter, shaped)}
		if g.tokens <= room {
			if len(shaped) > 0 {
				pieces = append(pieces, g)
			}
			continue
		}
		for _, m := range shaped {
			for _, part := range m.Parts {
				for _, fragment := range fragments(counter, part, room/2) {
					one := core.Message{Role: m.Role, Parts: []core.Part{fragment}}
					pieces = append(pieces, piece{[]core.Message{one}, core.MessageTokens(counter, one)})
				}
			}
		}
	}
	return pieces
}

// fragments cuts a part into texts of at most so many tokens, at line breaks where there are any. Other content
// is left out if it is larger than that.
func fragments(counter core.Counter, part core.Part, room int) []core.Part {
	n := counter.Count(part)
	if n <= room {
		return []core.Part{part}
	}
	text, ok := part.(core.Text)
	if !ok {
		return []core.Part{core.Text(fmt.Sprintf("[something of %d tokens left out here]", n))}
	}
	var out []core.Part
	rest := string(text)
	for rest != "" {
		size := max(1, len(text)*room/n)
		piece := rest
		for {
			if size < len(rest) {
				piece = rest[:breakAt(rest, size)]
			} else {
				piece = rest
			}
			if size <= 1 || counter.Count(core.Text(piece)) <= room {
				break
			}
			size = size * 3 / 4
		}
		if strings.TrimSpace(piece) != "" {
			out = append(out, core.Text(piece))
		}
		rest = rest[len(piece):]
	}
	return out
}

// breakAt returns where to cut text so that it has at most size bytes, if that is more
// than nothing: after the last line break of the second half, else between two runes.
func breakAt(text string, size int) int {
	if i := strings.LastIndexByte(text[size/2:size], '\n'); i >= 0 {
		return size/2 + i + 1
	}
	return cmp.Or(plain.Back(text, size), size)
}

// joinPieces returns the messages of pieces in the form that every model can read.
func joinPieces(pieces []piece) []core.Message {
	var out []core.Message
	for _, p := range pieces {
		for _, m := range p.messages {
			if last := len(out) - 1; last >= 0 && out[last].Role == m.Role {
				out[last].Parts = append(out[last].Parts, m.Parts...)
				continue
			}
			out = append(out, core.Message{Role: m.Role, Parts: append([]core.Part(nil), m.Parts...)})
		}
	}
	return withUserFirst(out)
}

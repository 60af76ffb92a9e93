package caller

import (
	"context"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
)

// Limits of what one callback may ask for, and of the runs of strategies in a call: they cost the host's processor.
const (
	maxRuns   = 16
	maxTexts  = 2048 // as OpenAI's own
	maxHidden = 16 << 20
)

// hidden answers with messages that the conversation's view lacks.
func (l *modelUse) hidden(ids []string) (*condensepb.Reply_Hidden, error) {
	messages, err := l.call.req.Hidden(each(ids, byhand.Unname)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	size := 0
	for i := range messages {
		if size += core.ContentBytes(messages[i].Parts...); size > maxHidden {
			return nil, fmt.Errorf("%w: more than %d bytes of hidden messages: ask for fewer at once", errQuota, maxHidden)
		}
	}
	list, err := encodeMessages(messages)
	return &condensepb.Reply_Hidden{Hidden: &condensepb.HiddenMessages{Messages: list}}, err
}

// file answers with what the conversation shows of a file.
func (l *modelUse) file(path string) (*condensepb.Reply_File, error) {
	pieces, err := l.call.req.File(path)
	out, size := &condensepb.FilePieces{}, 0
	for _, p := range pieces {
		if size += len(p.Text); size > maxHidden {
			return nil, fmt.Errorf("%w: more than %d bytes of a file", errQuota, maxHidden)
		}
		out.Pieces = append(out.Pieces, &condensepb.FilePiece{First: int64(p.First), Text: byhand.Bytes(p.Text), Unsure: p.Unsure})
	}
	return &condensepb.Reply_File{File: out}, err
}

// run has a strategy of the host shorten a part of the conversation. One run is made at a time.
func (l *modelUse) run(ctx context.Context, r *condensepb.Run) (*condensepb.Reply_Run, error) {
	was := l.call.req
	req, work := was.Clone(), 0
	req.Host = l.call.client.opts.Host // what comes of it is a plugin's
	for i := range req.Messages {
		req.Messages[i].Protected = len(r.GetMessages()) > 0 || was.Messages[i].Protected
	}
	for _, of := range r.GetMessages() {
		first, last, err := span(l.call.answer.at, of)
		if work += last - first + 1; err == nil && work > maxSummed {
			err = fmt.Errorf("ranges of more than %d messages together", maxSummed)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errInvalid, err)
		}
		for i := first; i <= last; i++ {
			req.Messages[i].Protected = was.Messages[i].Protected
		}
	}
	switch target := r.GetTarget(); {
	case target < 0 || target > int64(req.Budget.Limit):
		return nil, fmt.Errorf("%w: target of %d tokens; want at most the limit of %d", errInvalid, target, req.Budget.Limit)
	case target > 0:
		req.Budget.Target = int(target)
	}
	l.running.Lock()
	defer l.running.Unlock()
	if l.runs++; l.runs > maxRuns {
		return nil, fmt.Errorf("%w: more than %d runs of strategies in a call", errQuota, maxRuns)
	}
	before := l.usage()
	res, err := l.call.client.opts.Run(ctx, req, r.GetStrategy(), r.GetSettings(), l.lend)
	if err != nil {
		return nil, err
	}
	out := &condensepb.RunResult{Edit: &condensepb.Edit{}, Tokens: int64(req.Budget.Overhead)}
	after := make([]core.Message, len(res.Messages))
	for i := range res.Messages {
		m := &res.Messages[i]
		at, known := l.call.answer.at[m.ID]
		if after[i].ID = m.ID; !known || !core.EqualParts(m.Parts, was.Messages[at].Parts) {
			m.Tokens = core.MessageTokens(req.Counter, *m)
			after[i] = core.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Parts: m.Parts}
		}
		if !known {
			after[i].ID = ""
		}
		out.Tokens += int64(m.Tokens)
	}
	if r.GetWhole() {
		out.Edit = nil
		out.Messages, err = encodeMessages(after)
	} else {
		err = byhand.Edits(was.Messages, res.Messages, l.call.answer.at, func(piece []byte) error {
			return proto.UnmarshalOptions{Merge: true}.Unmarshal(piece, out.Edit)
		})
	}
	out.Usage = wire.ToUsage(wire.Less(l.usage(), before))
	if err == nil {
		out.Steps, err = wire.ToSteps(res.Steps)
	}
	return &condensepb.Reply_Run{Run: out}, err
}

// encodeMessages returns messages as the generated code has them.
func encodeMessages(messages []core.Message) ([]*condensepb.Message, error) {
	env := &condensepb.CondenseRequest{}
	run, _ := byhand.AppendRun(nil, messages, math.MaxInt)
	err := proto.Unmarshal(run, env)
	return env.GetMessages().GetMessages(), err
}

func (l *modelUse) usage() core.Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent
}

// lend returns a language model for a strategy that runs for the plugin.
func (l *modelUse) lend(name string) (model.Generator, error) {
	c := l.call.client
	if err := c.Abilities().Check(core.AsksModels, "", "asks a language model"); err != nil {
		return nil, err
	}
	if c.opts.Model == nil {
		return nil, fmt.Errorf("this host has no language model to plugins: %w", core.ErrUnavailable)
	}
	m, err := c.opts.Model(l.call.req, name)
	return lentModel{m, l}, err
}

// A lentModel is a model that is asked within the quota of a call.
type lentModel struct {
	model.Generator

	use *modelUse
}

// Generate implements [model.Generator].
func (m lentModel) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	counter := m.use.call.req.Counter
	size := counter.Count(core.Text(p.System), core.Text(p.Tools))
	for i := range p.Messages {
		size += core.MessageTokens(counter, p.Messages[i])
	}
	return m.use.ask(ctx, m.Generator, p, size)
}

// embed turns texts into vectors. Each callback is one request of the quota.
func (l *modelUse) embed(ctx context.Context, texts [][]byte) (*condensepb.Reply_Embedded, error) {
	if len(texts) == 0 || len(texts) > maxTexts {
		return nil, fmt.Errorf("%w: %d texts; want 1 to %d", errInvalid, len(texts), maxTexts)
	}
	size, all := 0, make([]string, len(texts))
	for i, t := range texts {
		all[i] = byhand.String(t)
		size += l.call.req.Counter.Count(core.Text(all[i]))
	}
	m, err := l.call.client.opts.Embedder()
	if err != nil {
		return nil, err
	}
	reserved, err := l.reserve(size, 1)
	if err != nil {
		return nil, err
	}
	vectors, usage, err := m.Embed(ctx, all)
	l.charge(reserved, usage)
	if err == nil && len(vectors) != len(texts) {
		err = fmt.Errorf("the model answered with %d vectors for %d texts", len(vectors), len(texts))
	}
	if err != nil {
		return nil, err
	}
	out := &condensepb.Embedded{Usage: wire.ToUsage(usage)}
	for i, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("the model answered with a vector of %d numbers for text %d, and of %d for the first", len(v), i, len(vectors[0]))
		}
		for _, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return nil, errors.New("the model answered with a vector that has something else than numbers")
			}
		}
		out.Vectors = append(out.Vectors, &condensepb.Vector{Values: v})
	}
	return &condensepb.Reply_Embedded{Embedded: out}, nil
}

package peers

import (
	"context"
	"errors"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// OpenHandsConfig has the settings of [OpenHands].
type OpenHandsConfig struct {
	Stages    []string `json:"stages"     enum:"masking|forgetting|summarizing" doc:"The pipeline. A stage that forgets messages ends it."`
	MaxSize   int      `json:"max_size"   doc:"Messages; more are halved."`
	KeepFirst int      `json:"keep_first" doc:"Messages at the beginning that stay."`
	Attention int      `json:"attention"  doc:"Newest messages whose results are not masked."`
	MaxEvent  int      `json:"max_event"  doc:"Bytes of each text that the model is shown."`
	Model     string   `json:"model"      doc:"Writes the summaries; empty for the host's choice."`
}

// Validate has the original's rules.
func (c *OpenHandsConfig) Validate() error {
	switch {
	case c.MaxSize < 1:
		return fmt.Errorf("max_size (%d) cannot be non-positive", c.MaxSize)
	case c.KeepFirst < 0:
		return fmt.Errorf("keep_first (%d) cannot be negative", c.KeepFirst)
	case c.KeepFirst >= c.MaxSize/2:
		return fmt.Errorf("keep_first (%d) must be less than half of max_size (%d)", c.KeepFirst, c.MaxSize)
	case len(c.Stages) == 0:
		return errors.New("stages: name one")
	}
	return nil
}

// OpenHands is a pipeline of the condensers of OpenHands (All-Hands-AI): observation masking, amortized forgetting, LLM summarizing.
// There a message is an event. Too many are halved: the first ones and the newest stay, those between are forgotten, or summarized
// together with the summary of before. If a host calls because of tokens, the newest that fit stay.
func OpenHands() registry.Strategy {
	return registry.Define("openhands", "OpenHands' condensers: masking of results, forgetting of half, a model's rolling summary.",
		func() OpenHandsConfig {
			return OpenHandsConfig{Stages: []string{"masking", "summarizing"}, MaxSize: 100, KeepFirst: 1, Attention: 100, MaxEvent: 10_000}
		},
		func(_ context.Context, c OpenHandsConfig, env registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return (&openHands{c, &writer{env: env, name: c.Model}}).condense(ctx, req)
			}), nil
		})
}

type openHands struct {
	OpenHandsConfig
	*writer
}

func (o *openHands) condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	view := req.Messages
	for _, stage := range o.Stages {
		if stage == "masking" {
			view = o.mask(req, view)
			continue
		}
		next, err := o.forget(ctx, req, view, stage == "summarizing")
		if err != nil {
			return nil, err
		}
		if len(next) < len(view) {
			view = next
			break
		}
	}
	return answer(ctx, req, view, o.usage)
}

func (o *openHands) mask(req *core.Request, view []core.Message) []core.Message {
	out := append([]core.Message(nil), view...)
	for i := range out[:max(0, len(out)-o.Attention)] {
		if m, ok := emptied(out[i], func(core.ToolResult) bool { return true }); ok {
			m.Tokens = core.MessageTokens(req.Counter, m)
			out[i] = m
		}
	}
	return out
}

const openHandsOrder = `You keep the state of a coding agent whose oldest events are about to be forgotten. Write the new summary from the old one and
the events. Name what the user wants, what is done, what is left, the state of the code (files, functions), failing tests with their
messages, and what was changed and why. At most 1000 words.`

// forget returns half of the messages, or those that fit; the others are summarized if summarizing is set.
func (o *openHands) forget(ctx context.Context, req *core.Request, view []core.Message, summarizing bool) ([]core.Message, error) {
	from := len(view)
	switch {
	case len(view) > o.MaxSize:
		from -= o.MaxSize/2 - o.KeepFirst
		if summarizing {
			from++ // the summary is one of them
		}
	case core.TotalTokens(view) > req.Budget.Room():
		from = max(o.KeepFirst, tail(view, req.Budget.Room()*3/4-core.TotalTokens(view[:min(o.KeepFirst, len(view))])))
	default:
		return view, nil
	}
	keep := func(i int) bool { return i < o.KeepFirst || i >= from }
	out := kept(view, keep, "")
	if !summarizing {
		return out, nil
	}
	former, events := "No events summarized", []core.Message{}
	for _, m := range hidden(view, out) {
		if m.Kind == core.KindSummary {
			former = written([]core.Message{m}, 1<<20)
			continue
		}
		events = append(events, m)
	}
	if len(events) == 0 {
		return view, nil
	}
	text := "<former>\n" + former + "\n</former>\n<events>\n" + written(events, o.MaxEvent) + "</events>"
	summary, err := o.ask(ctx, openHandsOrder, text, max(200, req.Budget.Room()/4))
	if err != nil {
		return nil, err
	}
	return kept(view, keep, summary), nil
}

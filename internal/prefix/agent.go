package prefix

import (
	"context"
	"errors"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// AgentName is the name of [Agent] in settings.
const AgentName = "client"

// An Asker sends the agent's newest request once more with a message of the user at its end, and returns the answer
// of at most so many tokens.
type Asker func(ctx context.Context, message string, maxOutput int) (*model.Answer, error)

type askerKey struct{}

// WithAsker returns a context in which [Agent] can be asked.
func WithAsker(ctx context.Context, ask Asker) context.Context {
	return context.WithValue(ctx, askerKey{}, ask)
}

// CanAsk reports whether [Agent] can be asked in a context.
func CanAsk(ctx context.Context) bool { return askerOf(ctx) != nil }

func askerOf(ctx context.Context) Asker {
	ask, _ := ctx.Value(askerKey{}).(Asker)
	return ask
}

// Agent is the model of the agent whose conversation is condensed, called with the agent's own key. It reads only the
// last message of a prompt of [Prompt], because the agent itself has sent the messages before it. The context of a
// call identifies the agent.
type Agent struct{}

// Info returns the name: which model it is differs from call to call.
func (Agent) Info() model.Info { return model.Info{Name: AgentName} }

// Generate asks the model.
func (Agent) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	ask := askerOf(ctx)
	if ask == nil {
		return nil, fmt.Errorf("%w: the agent's own model is asked next to its requests only", core.ErrUnavailable)
	}
	if len(p.Messages) > 0 {
		if end := p.Messages[len(p.Messages)-1].Parts; len(end) == 1 {
			if text, ok := end[0].(core.Text); ok {
				return ask(ctx, string(text), p.MaxOutput)
			}
		}
	}
	return nil, errors.New("the agent's request ends with calls that have no result")
}

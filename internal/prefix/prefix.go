// Package prefix asks a model about a conversation with the agent's own request and one message more, so that the
// vendor's prompt cache serves all but the end.
package prefix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

// Deferred is the result of a call that has none: every vendor's API requires a result, and the model must not think
// that the call was answered.
const Deferred = "Context condensation triggered. Tool execution deferred."

// Prompt returns the agent's own request followed by last, with exactly the text that the vendor has in its cache.
func Prompt(req *core.Request, last string, maxOutput int) *model.Prompt {
	prompt := &model.Prompt{System: req.System, Tools: req.Tools, MaxOutput: maxOutput, Cached: true}
	end := core.Message{Role: core.RoleUser}
	messages := req.Messages
	for len(messages) > 0 && messages[0].Role == core.RoleSystem {
		for _, part := range messages[0].Parts {
			if text, ok := part.(core.Text); ok {
				prompt.System = strings.TrimPrefix(prompt.System+"\n\n"+string(text), "\n\n")
			}
		}
		messages = messages[1:]
	}
	if with := WithResults(messages); len(with) > len(messages) {
		end.Parts = with[len(messages)].Parts
	}
	said := plain.Each(messages, func(m core.Message) core.Message { return core.Message{Role: m.Role, Parts: m.Parts} })
	end.Parts = append(end.Parts, core.Text(last))
	prompt.Messages = append(said, end)
	return prompt
}

// WithResults returns messages with a message at the end that answers every call
// of an assistant that no message of a user answers, wherever they are; messages
// itself if there is none.
func WithResults(messages []core.Message) []core.Message {
	answered, seen := map[string]bool{}, map[string]bool{}
	for i := range messages {
		for _, p := range messages[i].Parts {
			if r, ok := p.(core.ToolResult); ok && messages[i].Role != core.RoleAssistant {
				answered[r.CallID] = true
			}
		}
	}
	var results []core.Part
	for i := range messages {
		for _, p := range messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok && messages[i].Role == core.RoleAssistant && !answered[c.ID] && !seen[c.ID] {
				seen[c.ID] = true
				results = append(results, core.ToolResult{CallID: c.ID, Content: []core.Part{core.Text(Deferred)}})
			}
		}
	}
	if len(results) == 0 {
		return messages
	}
	return append(slices.Clone(messages), core.Message{Role: core.RoleUser, Parts: results})
}

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

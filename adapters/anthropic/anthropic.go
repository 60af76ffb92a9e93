// Package condenseanthropic keeps the messages that a program sends with Anthropic's SDK (github.com/anthropics/anthropic-sdk-go) within
// the model's window: call [Memory.Fit] before each request.
package condenseanthropic

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/core"
)

// Codec is adapters.Codec for the SDK's messages.
type Codec = adapters.API[anthropic.MessageParam]

var codec = Codec{Format: "anthropic"}

// ToCore returns messages as core has them.
func ToCore(messages []anthropic.MessageParam) ([]core.Message, error) {
	return adapters.ToCore(codec, messages)
}

// FromCore returns messages as the SDK has them. Those that ToCore made, and that did not change, have the same fields.
func FromCore(messages []core.Message) ([]anthropic.MessageParam, error) {
	return codec.FromCore(messages)
}

// A Memory is one conversation.
type Memory struct {
	*adapters.Memory[anthropic.MessageParam]

	turn condense.Turn
}

// NewMemory returns the memory of a conversation: see adapters.NewMemory. Turn is of each request, to which the request adds its system
// prompt, tools and longest answer.
func NewMemory(h *condense.Host, c *condense.Conversation, t condense.Turn) *Memory {
	return &Memory{adapters.NewMemory(h, codec, c), t}
}

// Fit shortens p.Messages if they are due. Answers and results can be appended to them, or to a list of the program with all messages.
func (m *Memory) Fit(ctx context.Context, p *anthropic.MessageNewParams) error {
	t := m.turn
	texts := []string{t.System}
	for _, b := range p.System {
		texts = append(texts, b.Text)
	}
	t.System, t.API = strings.TrimSpace(strings.Join(texts, "\n")), codec.Format
	if t.MaxOutput == 0 {
		t.MaxOutput = int(p.MaxTokens)
	}
	if len(p.Tools) > 0 {
		tools, err := json.Marshal(p.Tools)
		if err != nil {
			return err
		}
		t.Tools = tools
	}
	m.BindThinking(p.Thinking.OfAdaptive != nil) // such a model does not demand that an answer has thinking
	shorter, err := m.Shorten(ctx, t, p.Messages)
	if err == nil {
		p.Messages = shorter
	}
	return err
}

// Package condenseopenai keeps the messages that a program sends with OpenAI's SDK (github.com/openai/openai-go/v3) within the model's
// window: call [Chat.Fit] before each request of Chat Completions, [Responses.Fit] before each of the Responses API.
package condenseopenai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/core"
)

type (
	// ChatCodec is adapters.Codec for messages of Chat Completions.
	ChatCodec = adapters.API[openai.ChatCompletionMessageParamUnion]
	// ItemCodec is adapters.Codec for items of the Responses API.
	ItemCodec = adapters.API[responses.ResponseInputItemUnionParam]
)

var (
	chat = ChatCodec{Format: "openai"}
	item = ItemCodec{Format: "responses", Unmarshal: unmarshal}
)

// unmarshal reads an item. The SDK reads no message without a type, and takes one of the model for the short form, without its ID.
func unmarshal(source json.RawMessage) (out responses.ResponseInputItemUnionParam, err error) {
	var fields struct{ Type, ID *string }
	if err = json.Unmarshal(source, &fields); err != nil {
		return out, err
	}
	switch {
	case fields.Type == nil:
		source = append([]byte(`{"type":"message",`), bytes.TrimPrefix(source, []byte("{"))...)
	case *fields.Type == "message" && fields.ID != nil:
		out.OfOutputMessage = &responses.ResponseOutputMessageParam{}
		return out, json.Unmarshal(source, out.OfOutputMessage)
	}
	return out, json.Unmarshal(source, &out)
}

// ToCore returns messages of Chat Completions as core has them.
func ToCore(messages []openai.ChatCompletionMessageParamUnion) ([]core.Message, error) {
	return adapters.ToCore(chat, messages)
}

// FromCore returns messages for Chat Completions. Those that ToCore made, and that did not change, have the same fields.
func FromCore(messages []core.Message) ([]openai.ChatCompletionMessageParamUnion, error) {
	return chat.FromCore(messages)
}

// ItemsToCore returns items of the Responses API as core has them.
func ItemsToCore(items []responses.ResponseInputItemUnionParam) ([]core.Message, error) {
	return adapters.ToCore(item, items)
}

// ItemsFromCore returns items for the Responses API. Those that ItemsToCore made, and that did not change, have the same fields, and
// every message a type.
func ItemsFromCore(messages []core.Message) ([]responses.ResponseInputItemUnionParam, error) {
	return item.FromCore(messages)
}

// A Chat is one conversation in Chat Completions.
type Chat struct {
	*adapters.Memory[openai.ChatCompletionMessageParamUnion]

	turn condense.Turn
}

// NewChat returns the memory of a conversation: see adapters.NewMemory. Turn is of each request, to which the request adds its tools and
// longest answer.
func NewChat(h *condense.Host, c *condense.Conversation, t condense.Turn) *Chat {
	t.API = chat.Format
	return &Chat{adapters.NewMemory(h, chat, c), t}
}

// Fit shortens p.Messages if they are due. Answers and results can be appended to them, or to a list of the program with all messages.
func (c *Chat) Fit(ctx context.Context, p *openai.ChatCompletionNewParams) error {
	t, err := c.turn, error(nil)
	if t.MaxOutput == 0 {
		t.MaxOutput = int(max(p.MaxCompletionTokens.Value, p.MaxTokens.Value))
	}
	if len(p.Tools) > 0 {
		if t.Tools, err = json.Marshal(p.Tools); err != nil {
			return err
		}
	}
	shorter, err := c.Shorten(ctx, t, p.Messages)
	if err == nil {
		p.Messages = shorter
	}
	return err
}

// ErrStored means that the vendor keeps the conversation, so that it cannot be shortened here.
var ErrStored = errors.New("the request continues a conversation that the vendor keeps: previous_response_id or conversation is set")

// A Responses is one conversation in the Responses API.
type Responses struct {
	*adapters.Memory[responses.ResponseInputItemUnionParam]

	turn condense.Turn
}

// NewResponses returns the memory of a conversation: see [NewChat].
func NewResponses(h *condense.Host, c *condense.Conversation, t condense.Turn) *Responses {
	t.API = item.Format
	return &Responses{adapters.NewMemory(h, item, c), t}
}

// Fit shortens the items of p.Input if they are due; an input that is a text stays. The error is [ErrStored] if the request has only a part
// of the conversation.
func (r *Responses) Fit(ctx context.Context, p *responses.ResponseNewParams) error {
	if p.PreviousResponseID.Valid() || p.Conversation.OfString.Valid() || p.Conversation.OfConversationObject != nil {
		return ErrStored
	}
	if p.Input.OfInputItemList == nil {
		return nil
	}
	t, err := r.turn, error(nil)
	t.System = strings.TrimSpace(t.System + "\n" + p.Instructions.Value)
	if t.MaxOutput == 0 {
		t.MaxOutput = int(p.MaxOutputTokens.Value)
	}
	if len(p.Tools) > 0 {
		if t.Tools, err = json.Marshal(p.Tools); err != nil {
			return err
		}
	}
	shorter, err := r.Shorten(ctx, t, p.Input.OfInputItemList)
	if err == nil {
		p.Input.OfInputItemList = shorter
	}
	return err
}

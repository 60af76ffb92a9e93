// Package condenseeino keeps the conversation of an agent that is written with Eino (github.com/cloudwego/eino) within its model's
// window: [Memory.BeforeChatModel] is for a ChatModelAgent of its package adk, [Memory.Rewriter] for one of flow/agent/react.
package condenseeino

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/core"
)

// ToCore returns messages as core has them.
func ToCore(messages []*schema.Message) ([]core.Message, error) {
	return adapters.ToCore(Codec{}, messages)
}

// FromCore returns messages as Eino has them. Those that ToCore made, and that did not change, are as they were; numbers in Extra have
// the types of JSON.
func FromCore(messages []core.Message) ([]*schema.Message, error) {
	return adapters.FromCore(Codec{}, messages)
}

// A Memory is one conversation of an agent; Turn is of each of its requests.
type Memory struct {
	*adapters.Memory[*schema.Message]

	turn condense.Turn
}

// NewMemory returns the memory of a conversation: see adapters.NewMemory.
func NewMemory(h *condense.Host, c *condense.Conversation, t condense.Turn) *Memory {
	return &Memory{adapters.NewMemory(h, Codec{}, c), t}
}

// BeforeChatModel is for adk.AgentMiddleware.
func (m *Memory) BeforeChatModel(ctx context.Context, state *adk.ChatModelAgentState) error {
	shorter, err := m.Shorten(ctx, m.turn, state.Messages)
	if err == nil {
		state.Messages = shorter
	}
	return err
}

// Rewriter is for MessageRewriter of a react.AgentConfig, which takes no error: after one, the messages stay as they are, and failed
// is told, if it is set.
func (m *Memory) Rewriter(failed func(error)) func(context.Context, []*schema.Message) []*schema.Message {
	return func(ctx context.Context, messages []*schema.Message) []*schema.Message {
		shorter, err := m.Shorten(ctx, m.turn, messages)
		if err == nil {
			return shorter
		}
		if failed != nil {
			failed(err)
		}
		return messages
	}
}

// A Codec is adapters.Codec for Eino's messages.
type Codec struct{}

var roles = map[schema.RoleType]core.Role{
	schema.System: core.RoleSystem, schema.User: core.RoleUser, schema.Assistant: core.RoleAssistant, schema.Tool: core.RoleTool,
}

// source returns all of m as JSON.
func source(m *schema.Message) (json.RawMessage, error) {
	data, err := json.Marshal(m)
	if err != nil { // of something that a program put into Extra
		plain := *m
		plain.Extra = nil
		data, err = json.Marshal(&plain)
	}
	return data, err
}

// Parse implements adapters.Codec.
func (Codec) Parse(source json.RawMessage) (*schema.Message, error) {
	var m *schema.Message
	err := json.Unmarshal(source, &m)
	return m, err
}

// Read implements adapters.Codec.
func (Codec) Read(m *schema.Message) (core.Message, error) {
	if m == nil {
		return core.Message{}, fmt.Errorf("no message: nil")
	}
	role, ok := roles[m.Role]
	if !ok {
		return core.Message{}, fmt.Errorf("role %q: want system, user, assistant or tool", m.Role)
	}
	content, err := content(m)
	if err != nil {
		return core.Message{}, err
	}
	out := core.Message{Role: role}
	if out.Source, err = source(m); err != nil {
		return core.Message{}, err
	}
	if role == core.RoleTool {
		out.Parts = []core.Part{core.ToolResult{CallID: m.ToolCallID, Content: content}}
		return out, nil
	}
	if m.ReasoningContent != "" {
		out.Parts = append(out.Parts, core.Reasoning{Text: m.ReasoningContent})
	}
	out.Parts = append(out.Parts, content...)
	for _, c := range m.ToolCalls {
		out.Parts = append(out.Parts, core.ToolCall{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
	}
	return out, nil
}

// content returns the content of m: Content if there are no lists of parts, as the models do.
func content(m *schema.Message) ([]core.Part, error) {
	input, err := read(m.UserInputMultiContent)
	if err != nil {
		return nil, err
	}
	output, err := read(m.AssistantGenMultiContent)
	if err != nil {
		return nil, err
	}
	former, err := read(m.MultiContent)
	if err != nil {
		return nil, err
	}
	parts := append(append(input, output...), former...)
	if len(parts) == 0 && m.Content != "" {
		parts = []core.Part{core.Text(m.Content)}
	}
	return parts, nil
}

// formerly marks parts of MultiContent, which has its own form.
const formerly = "multi_content "

// read returns one part for each of Eino's.
func read[P any](parts []P) ([]core.Part, error) {
	var out []core.Part
	for _, p := range parts {
		var kind schema.ChatMessagePartType
		text, image, former := "", core.Image{}, false
		common := func(c *schema.MessagePartCommon) {
			switch {
			case c.Base64Data != nil:
				image = core.Image{MediaType: c.MIMEType, Data: *c.Base64Data}
			case c.URL != nil:
				image = adapters.ImageOf(*c.URL)
			}
		}
		switch p := any(p).(type) {
		case schema.MessageInputPart:
			if kind, text = p.Type, p.Text; p.Image != nil {
				common(&p.Image.MessagePartCommon)
			}
		case schema.MessageOutputPart:
			if kind, text = p.Type, p.Text; p.Image != nil {
				common(&p.Image.MessagePartCommon)
			}
		case schema.ChatMessagePart:
			former = true
			if kind, text = p.Type, p.Text; p.ImageURL != nil {
				image = adapters.ImageOf(p.ImageURL.URL)
			}
		}
		switch {
		case kind == schema.ChatMessagePartTypeText:
			out = append(out, core.Text(text))
		case image != core.Image{}:
			out = append(out, image)
		default:
			data, err := json.Marshal(p)
			if err != nil {
				return nil, err
			}
			name := string(kind)
			if former {
				name = formerly + name
			}
			out = append(out, core.Opaque{Kind: name, JSON: string(data)})
		}
	}
	return out, nil
}

// Write implements adapters.Codec. Results in a message that is not a tool's become messages of their own.
func (Codec) Write(m core.Message, was **schema.Message) ([]*schema.Message, error) {
	base := &schema.Message{}
	if was != nil {
		base = *was
	}
	calls, results := adapters.Calls(m.Parts)
	var out []*schema.Message
	for _, r := range results {
		one := &schema.Message{}
		if base.Role == schema.Tool && base.ToolCallID == r.CallID {
			*one = *base
		}
		one.Role, one.ToolCallID = schema.Tool, r.CallID
		if err := setContent(one, r.Content); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	var parts []core.Part
	reasoning := ""
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Reasoning:
			reasoning = p.Text
		case core.Text, core.Image, core.Opaque:
			parts = append(parts, p)
		case core.ToolCall, core.ToolResult: // above and below
		}
	}
	if len(results) > 0 && len(parts) == 0 && len(calls) == 0 {
		return out, nil
	}
	one := *base
	one.Role, one.ReasoningContent, one.ToolCalls = schema.RoleType(m.Role), reasoning, nil
	for _, c := range calls {
		call := schema.ToolCall{ID: c.ID, Type: "function"}
		for _, o := range base.ToolCalls {
			if o.ID == c.ID {
				call = o
			}
		}
		call.Function.Name, call.Function.Arguments = c.Name, c.Args
		one.ToolCalls = append(one.ToolCalls, call)
	}
	if err := setContent(&one, parts); err != nil {
		return nil, err
	}
	return append(out, &one), nil
}

// setContent gives m other parts. Those that it has stay as they are, in the list where they were.
func setContent(m *schema.Message, parts []core.Part) error {
	lists := len(m.UserInputMultiContent)+len(m.AssistantGenMultiContent)+len(m.MultiContent) > 0
	text, plain, former := "", true, len(m.MultiContent) > 0
	for _, p := range parts {
		if _, ok := p.(core.Text); !ok {
			plain = false
		}
		if o, ok := p.(core.Opaque); ok && strings.HasPrefix(o.Kind, formerly) {
			former = true
		}
	}
	if plain {
		text = adapters.Joined(parts)
	}
	if plain && !lists {
		m.Content = text
		return nil
	}
	var err error
	switch {
	case former:
		m.MultiContent, err = write(m.MultiContent, parts, func(image core.Image) schema.ChatMessagePart {
			return schema.ChatMessagePart{Type: schema.ChatMessagePartTypeImageURL, ImageURL: &schema.ChatMessageImageURL{URL: adapters.URLOf(image)}}
		})
	case m.Role == schema.Assistant:
		m.AssistantGenMultiContent, err = write(m.AssistantGenMultiContent, parts, func(image core.Image) schema.MessageOutputPart {
			return schema.MessageOutputPart{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageOutputImage{MessagePartCommon: common(image)}}
		})
	default:
		m.UserInputMultiContent, err = write(m.UserInputMultiContent, parts, func(image core.Image) schema.MessageInputPart {
			return schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: common(image)}}
		})
	}
	return err
}

func common(image core.Image) schema.MessagePartCommon {
	if image.URL != "" {
		return schema.MessagePartCommon{URL: &image.URL}
	}
	return schema.MessagePartCommon{Base64Data: &image.Data, MIMEType: image.MediaType}
}

// write returns parts in the type of a list of Eino's, those that were there as they were.
func write[P any](was []P, parts []core.Part, image func(core.Image) P) ([]P, error) {
	before, err := read(was)
	if err != nil {
		return nil, err
	}
	var out []P
	for i, j := range adapters.Kept(before, parts) {
		switch p := parts[i].(type) {
		case core.Image:
			if j < 0 {
				out = append(out, image(p))
				continue
			}
		case core.Text, core.Opaque:
			if j < 0 {
				raw := ""
				if o, ok := p.(core.Opaque); ok {
					raw = o.JSON
				} else {
					data, err := json.Marshal(map[string]any{"type": "text", "text": p})
					if err != nil {
						return nil, err
					}
					raw = string(data)
				}
				var one P
				if err := json.Unmarshal([]byte(raw), &one); err != nil {
					return nil, err
				}
				out = append(out, one)
				continue
			}
		case core.ToolCall, core.ToolResult, core.Reasoning: // not content
			continue
		}
		out = append(out, was[j])
	}
	return out, nil
}

// Package condenselangchain keeps the conversation of an agent that is written with LangChainGo (github.com/tmc/langchaingo) within its
// model's window: [Memory.Model] puts the memory before a model, [Memory.History] a history of chats for its package memory.
package condenselangchain

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/core"
)

// ToCore returns messages as core has them.
func ToCore(messages []llms.MessageContent) ([]core.Message, error) {
	return adapters.ToCore(Codec{}, messages)
}

// FromCore returns messages as LangChainGo has them. Those that ToCore made, and that did not change, are as they were.
func FromCore(messages []core.Message) ([]llms.MessageContent, error) {
	return adapters.FromCore(Codec{}, messages)
}

// A Memory is one conversation of an agent; Turn is of each of its requests.
type Memory struct {
	*adapters.Memory[llms.MessageContent]

	host *condense.Host
	turn condense.Turn
}

// NewMemory returns the memory of a conversation: see adapters.NewMemory.
func NewMemory(h *condense.Host, c *condense.Conversation, t condense.Turn) *Memory {
	return &Memory{adapters.NewMemory(h, Codec{}, c), h, t}
}

// Model returns m with the memory before it. If the model refuses a conversation as too large although the count says that it fits, it is
// condensed and sent once more.
func (m *Memory) Model(of llms.Model) llms.Model { return model{of, m} }

type model struct {
	llms.Model

	memory *Memory
}

// GenerateContent implements llms.Model.
func (m model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	turn := m.memory.turn
	for {
		shorter, err := m.memory.Shorten(ctx, turn, messages)
		if err != nil {
			return nil, err
		}
		answer, err := m.Model.GenerateContent(ctx, shorter, options...)
		if err == nil || turn.Trigger == core.TriggerOverflow {
			return answer, err
		}
		if large, unknown := m.memory.host.Overflow(turn, err); unknown != nil || !large {
			return answer, err
		}
		turn.Trigger = core.TriggerOverflow
	}
}

// History returns h with messages that fit, for a ConversationBuffer of package memory: h keeps all of them.
func (m *Memory) History(h schema.ChatMessageHistory) schema.ChatMessageHistory { return history{h, m} }

type history struct {
	schema.ChatMessageHistory

	memory *Memory
}

// Messages implements schema.ChatMessageHistory.
func (h history) Messages(ctx context.Context) ([]llms.ChatMessage, error) {
	all, err := h.ChatMessageHistory.Messages(ctx)
	if err != nil {
		return nil, err
	}
	contents := make([]llms.MessageContent, len(all))
	for i, m := range all {
		contents[i] = contentOf(m)
	}
	shorter, err := h.memory.Shorten(ctx, h.memory.turn, contents)
	if err != nil {
		return nil, err
	}
	out := make([]llms.ChatMessage, len(shorter))
	for i, m := range shorter {
		out[i] = chatOf(m)
	}
	return out, nil
}

// contentOf returns a message of a history as a model is sent it.
func contentOf(m llms.ChatMessage) llms.MessageContent {
	out := llms.TextParts(m.GetType(), m.GetContent())
	switch m := m.(type) {
	case llms.AIChatMessage:
		if len(m.ToolCalls) > 0 && m.Content == "" {
			out.Parts = nil
		}
		for _, c := range m.ToolCalls {
			out.Parts = append(out.Parts, c)
		}
		if m.FunctionCall != nil {
			out.Parts = append(out.Parts, llms.ToolCall{FunctionCall: m.FunctionCall})
		}
	case llms.ToolChatMessage:
		out.Parts = []llms.ContentPart{llms.ToolCallResponse{ToolCallID: m.ID, Content: m.Content}}
	case llms.FunctionChatMessage:
		out.Parts = []llms.ContentPart{llms.ToolCallResponse{Name: m.Name, Content: m.Content}}
	}
	return out
}

// chatOf is the opposite of contentOf.
func chatOf(m llms.MessageContent) llms.ChatMessage {
	var texts []string
	var calls []llms.ToolCall
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llms.TextContent:
			texts = append(texts, p.Text)
		case llms.ToolCall:
			calls = append(calls, p)
		case llms.ToolCallResponse:
			if m.Role == llms.ChatMessageTypeFunction {
				return llms.FunctionChatMessage{Name: p.Name, Content: p.Content}
			}
			return llms.ToolChatMessage{ID: p.ToolCallID, Content: p.Content}
		}
	}
	text := strings.Join(texts, "\n")
	switch m.Role {
	case llms.ChatMessageTypeAI:
		out := llms.AIChatMessage{Content: text, ToolCalls: calls}
		if len(calls) == 1 && calls[0].ID == "" {
			out.FunctionCall, out.ToolCalls = calls[0].FunctionCall, nil
		}
		return out
	case llms.ChatMessageTypeSystem:
		return llms.SystemChatMessage{Content: text}
	case llms.ChatMessageTypeGeneric:
		return llms.GenericChatMessage{Content: text}
	case llms.ChatMessageTypeHuman, llms.ChatMessageTypeFunction, llms.ChatMessageTypeTool:
	}
	return llms.HumanChatMessage{Content: text}
}

// A Codec is adapters.Codec for LangChainGo's messages.
type Codec struct{}

var roles = map[llms.ChatMessageType]core.Role{
	llms.ChatMessageTypeSystem: core.RoleSystem, llms.ChatMessageTypeHuman: core.RoleUser, llms.ChatMessageTypeGeneric: core.RoleUser,
	llms.ChatMessageTypeAI: core.RoleAssistant, llms.ChatMessageTypeTool: core.RoleTool, llms.ChatMessageTypeFunction: core.RoleTool,
}

var types = map[core.Role]llms.ChatMessageType{
	core.RoleSystem: llms.ChatMessageTypeSystem, core.RoleUser: llms.ChatMessageTypeHuman, core.RoleAssistant: llms.ChatMessageTypeAI,
	core.RoleTool: llms.ChatMessageTypeTool,
}

// stored is a message as JSON. LangChainGo's own form loses an empty text.
type stored struct {
	Role  llms.ChatMessageType `json:"role"`
	Parts []llms.ContentPart   `json:"parts"`
}

// Parse implements adapters.Codec.
func (Codec) Parse(source json.RawMessage) (llms.MessageContent, error) {
	var m llms.MessageContent
	err := json.Unmarshal(source, &m)
	return m, err
}

// Read implements adapters.Codec.
func (Codec) Read(m llms.MessageContent) (core.Message, error) {
	role, ok := roles[m.Role]
	if !ok {
		return core.Message{}, fmt.Errorf("role %q: %w", m.Role, llms.ErrUnexpectedChatMessageType)
	}
	parts, err := read(m.Parts)
	if err != nil {
		return core.Message{}, err
	}
	source, err := json.Marshal(stored(m))
	return core.Message{Role: role, Parts: parts, Source: source}, err
}

// read returns one part for each of LangChainGo's. Calls and results of the time before calls had IDs have their tool's name.
func read(parts []llms.ContentPart) ([]core.Part, error) {
	var out []core.Part
	for _, p := range parts {
		switch p := p.(type) {
		case llms.TextContent:
			out = append(out, core.Text(p.Text))
		case llms.ImageURLContent:
			out = append(out, adapters.ImageOf(p.URL))
		case llms.BinaryContent:
			if strings.HasPrefix(p.MIMEType, "image/") {
				out = append(out, core.Image{MediaType: p.MIMEType, Data: base64.StdEncoding.EncodeToString(p.Data)})
				continue
			}
			data, err := json.Marshal(p)
			if err != nil {
				return nil, err
			}
			out = append(out, core.Opaque{Kind: "binary", JSON: string(data)})
		case llms.ToolCall:
			call := core.ToolCall{ID: p.ID}
			if p.FunctionCall != nil {
				call.Name, call.Args = p.FunctionCall.Name, p.FunctionCall.Arguments
			}
			if call.ID == "" {
				call.ID = nameless + call.Name
			}
			out = append(out, call)
		case llms.ToolCallResponse:
			result := core.ToolResult{CallID: p.ToolCallID}
			if p.ToolCallID == "" {
				result.CallID = nameless + p.Name
			}
			if p.Content != "" {
				result.Content = []core.Part{core.Text(p.Content)}
			}
			out = append(out, result)
		default:
			data, err := json.Marshal(p)
			if err != nil {
				return nil, err
			}
			out = append(out, core.Opaque{Kind: fmt.Sprintf("%T", p), JSON: string(data)})
		}
	}
	return out, nil
}

const nameless = "function:"

// Write implements adapters.Codec.
func (Codec) Write(m core.Message, was *llms.MessageContent) ([]llms.MessageContent, error) {
	out := llms.MessageContent{Role: types[m.Role]}
	var old []llms.ContentPart
	if was != nil {
		out.Role, old = was.Role, was.Parts
	}
	before, err := read(old)
	if err != nil {
		return nil, err
	}
	for i, j := range adapters.Kept(before, m.Parts) {
		if j >= 0 {
			out.Parts = append(out.Parts, old[j])
			continue
		}
		p, err := write(m.Parts[i], old)
		if err != nil {
			return nil, err
		}
		if p != nil {
			out.Parts = append(out.Parts, p)
		}
	}
	return []llms.MessageContent{out}, nil
}

// write returns a part that is new or changed; nil if there is none for it.
func write(p core.Part, old []llms.ContentPart) (llms.ContentPart, error) {
	switch p := p.(type) {
	case core.Text:
		return llms.TextPart(string(p)), nil
	case core.Image:
		return llms.ImageURLPart(adapters.URLOf(p)), nil
	case core.ToolCall:
		call := llms.ToolCall{ID: strings.TrimPrefix(p.ID, nameless+p.Name), Type: "function"}
		for _, o := range old {
			if o, ok := o.(llms.ToolCall); ok && o.ID == p.ID {
				call = o
			}
		}
		call.FunctionCall = &llms.FunctionCall{Name: p.Name, Arguments: p.Args}
		return call, nil
	case core.ToolResult:
		result := llms.ToolCallResponse{ToolCallID: p.CallID}
		if name, ok := strings.CutPrefix(p.CallID, nameless); ok {
			result = llms.ToolCallResponse{Name: name}
		}
		for _, o := range old {
			if o, ok := o.(llms.ToolCallResponse); ok && o.ToolCallID == p.CallID {
				result = o
			}
		}
		result.Content = adapters.Joined(p.Content)
		return result, nil
	case core.Opaque:
		var m llms.MessageContent
		if err := json.Unmarshal([]byte(`{"parts":[`+p.JSON+`]}`), &m); err != nil || len(m.Parts) != 1 {
			return nil, fmt.Errorf("content of kind %s: LangChainGo has no form for it: %w", p.Kind, err)
		}
		return m.Parts[0], nil
	case core.Reasoning: // LangChainGo's messages have none
	}
	return nil, nil
}

package main

import (
	"context"
	"encoding/json"
	"io"
	"sort"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/reduction"
	"github.com/cloudwego/eino/schema"
)

// compact condenses a conversation as `condense compare` asks other programs to: see docs/comparing.md. Of the number
// of newest tokens to keep, the one is used that leaves most and fits the budget, by characters per token.
func compact(ctx context.Context, in io.Reader, out io.Writer) error {
	var question struct {
		Messages       json.RawMessage
		Tokens, Budget int
	}
	if err := json.NewDecoder(in).Decode(&question); err != nil {
		return err
	}
	units, err := unitsOf(question.Messages)
	if err != nil {
		return err
	}
	total := 0
	for _, m := range units {
		total += size(m)
	}
	room := int(float64(total) * float64(question.Budget) / float64(max(1, question.Tokens)))
	var left []*schema.Message
	reduced := func(keep int) (n int, err error) {
		reduce, err := reduction.NewClearToolResult(ctx, &reduction.ClearToolResultConfig{ToolResultTokenThreshold: 1, KeepRecentTokens: keep})
		if err != nil {
			return 0, err
		}
		if left, err = unitsOf(question.Messages); err != nil { // it changes them in place
			return 0, err
		}
		state := &adk.ChatModelAgentState{Messages: left}
		if err := reduce.BeforeChatModel(ctx, state); err != nil {
			return 0, err
		}
		left = state.Messages
		for _, m := range left {
			n += size(m)
		}
		return n, nil
	}
	var failed error
	keep := sort.Search(total, func(keep int) bool {
		n, err := reduced(keep + 1)
		if err != nil {
			failed = err
		}
		return n > room
	})
	if _, err := reduced(max(1, keep)); err != nil || failed != nil {
		return firstOf(failed, err)
	}
	return json.NewEncoder(out).Encode(map[string]any{"messages": messagesOf(left)})
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// unitsOf returns messages in the form of Anthropic's API in the form of Eino.
func unitsOf(data []byte) ([]*schema.Message, error) {
	var session []struct {
		Role    string
		Content json.RawMessage
	}
	if err := json.Unmarshal(data, &session); err != nil {
		return nil, err
	}
	var out []*schema.Message
	for _, m := range session {
		blocks, err := blocksOf(m.Content)
		if err != nil {
			return nil, err
		}
		text, calls := "", []schema.ToolCall(nil)
		for _, b := range blocks {
			switch {
			case b.Type == "text" && m.Role == "user": // each its own, as the conversation has them
				out = append(out, schema.UserMessage(b.Text))
			case b.Type == "text":
				text += b.Text
			case b.Type == "tool_use":
				calls = append(calls, schema.ToolCall{ID: b.ID, Function: schema.FunctionCall{Name: b.Name, Arguments: string(b.Input)}})
			case b.Type == "tool_result":
				inner, err := blocksOf(b.Content)
				if err != nil {
					return nil, err
				}
				result := ""
				for _, b := range inner {
					result += b.Text
				}
				out = append(out, schema.ToolMessage(result, b.ToolUseID))
			}
		}
		if m.Role == "assistant" {
			out = append(out, schema.AssistantMessage(text, calls))
		}
	}
	return out, nil
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
}

func blocksOf(content json.RawMessage) ([]block, error) {
	if len(content) == 0 {
		return nil, nil
	}
	if content[0] == '"' {
		b := block{Type: "text"}
		err := json.Unmarshal(content, &b.Text)
		return []block{b}, err
	}
	var blocks []block
	err := json.Unmarshal(content, &blocks)
	return blocks, err
}

func messagesOf(units []*schema.Message) []map[string]any {
	var out []map[string]any
	for _, m := range units {
		role, blocks := "user", []block(nil)
		switch m.Role {
		case schema.Tool:
			text, _ := json.Marshal(m.Content)
			blocks = append(blocks, block{Type: "tool_result", ToolUseID: m.ToolCallID, Content: text})
		case schema.Assistant:
			role = "assistant"
			fallthrough
		default:
			if m.Content != "" {
				blocks = append(blocks, block{Type: "text", Text: m.Content})
			}
			for _, c := range m.ToolCalls {
				blocks = append(blocks, block{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: json.RawMessage(c.Function.Arguments)})
			}
		}
		if len(blocks) > 0 {
			out = append(out, map[string]any{"role": role, "content": blocks})
		}
	}
	return out
}

// Command eino times the reduction of tool results of github.com/cloudwego/eino on the
// conversation that ../../session writes. It is a module of its own, which
// keeps the dependency out of the program's.
//
//	go run . session.json
//
// With the word compact it condenses for `condense compare`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/reduction"
	"github.com/cloudwego/eino/schema"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "eino:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("want the file of the session, or compact, and nothing else")
	}
	if args[0] == "compact" {
		return compact(ctx, os.Stdin, os.Stdout)
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	total := 0
	messages, err := decode(data)
	if err != nil {
		return err
	}
	for _, m := range messages {
		total += size(m)
	}
	// Its counter divides characters by 4. All results but the newest are cleared, which leaves
	// about half.
	reduce, err := reduction.NewClearToolResult(ctx, &reduction.ClearToolResultConfig{
		ToolResultTokenThreshold: 1, KeepRecentTokens: total / 10,
	})
	if err != nil {
		return err
	}
	const runs = 20
	var least time.Duration
	for i := range runs {
		if messages, err = decode(data); err != nil { // it changes them in place
			return err
		}
		state := &adk.ChatModelAgentState{Messages: messages}
		start := time.Now()
		if err := reduce.BeforeChatModel(ctx, state); err != nil {
			return err
		}
		if d := time.Since(start); i == 0 || d < least {
			least = d
		}
		messages = state.Messages
	}
	left := 0
	for _, m := range messages {
		left += size(m)
	}
	fmt.Printf("eino-clear-tool-result     wall %7.3f ms, least of %d: %d messages, %d of %d characters/4\n",
		float64(least.Microseconds())/1000, runs, len(messages), left, total)
	return nil
}

func size(m *schema.Message) int {
	n := len(m.Content)
	for _, c := range m.ToolCalls {
		n += len(c.Function.Arguments)
	}
	return (n + 3) / 4
}

// decode returns the messages of a session in the form of Eino.
func decode(data []byte) ([]*schema.Message, error) {
	type block struct {
		Type      string
		Text      string
		ID        string
		Name      string
		Input     json.RawMessage
		ToolUseID string `json:"tool_use_id"`
		Content   []struct{ Text string }
	}
	var session []struct {
		Role    string
		Content []block
	}
	if err := json.Unmarshal(data, &session); err != nil {
		return nil, err
	}
	out := make([]*schema.Message, 0, len(session))
	for _, m := range session {
		var text string
		var calls []schema.ToolCall
		var result *schema.Message
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				text = b.Text
			case "tool_use":
				calls = append(calls, schema.ToolCall{ID: b.ID, Function: schema.FunctionCall{Name: b.Name, Arguments: string(b.Input)}})
			case "tool_result":
				result = schema.ToolMessage(b.Content[0].Text, b.ToolUseID)
			}
		}
		switch {
		case result != nil:
			out = append(out, result)
		case m.Role == "user":
			out = append(out, schema.UserMessage(text))
		default:
			out = append(out, schema.AssistantMessage(text, calls))
		}
	}
	return out, nil
}

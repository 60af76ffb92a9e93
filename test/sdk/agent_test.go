package sdk_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

var schema = map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"}}

// TestAgent plays an agent's loop with each SDK, streaming and not. The scripted vendor refuses what the vendors refuse, thinking
// whose prefix changed included, and the SDKs must read its answers and return them unchanged.
func TestAgent(t *testing.T) {
	for name, play := range map[string]func(context.Context, string, bool) (string, error){"messages": messages, "chat": chat, "responses": respond} {
		for _, stream := range []bool{true, false} {
			v := upstream.New(upstream.Options{Script: upstream.Loop(5, 2000, nil)})
			server := httptest.NewServer(v)
			answer, err := play(t.Context(), server.URL, stream)
			server.Close()
			if err != nil || answer != "All 5 steps are done." || len(v.Turns()) != 6 {
				t.Errorf("%s, streaming %v: %q after %d turns: %v", name, stream, answer, len(v.Turns()), err)
			}
		}
	}
}

func messages(ctx context.Context, url string, stream bool) (string, error) {
	client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0))
	params := anthropic.MessageNewParams{
		Model:     "claude-opus-5-5",
		MaxTokens: 4096,
		Thinking:  anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Play."))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "run", InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"], Required: []string{"command"}},
		}}},
	}
	for {
		var m anthropic.Message
		if stream {
			s := client.Messages.NewStreaming(ctx, params)
			for s.Next() {
				if err := m.Accumulate(s.Current()); err != nil {
					return "", err
				}
			}
			if err := s.Err(); err != nil {
				return "", err
			}
		} else {
			got, err := client.Messages.New(ctx, params)
			if err != nil {
				return "", err
			}
			m = *got
		}
		params.Messages = append(params.Messages, m.ToParam())
		var results []anthropic.ContentBlockParamUnion
		for _, b := range m.Content {
			if call := b.AsToolUse(); b.Type == "tool_use" {
				results = append(results, anthropic.NewToolResultBlock(call.ID, string(call.Input), false))
			}
		}
		if len(results) == 0 {
			return m.Content[len(m.Content)-1].Text, nil
		}
		params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
	}
}

func chat(ctx context.Context, url string, stream bool) (string, error) {
	client := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{
		Model:    "gpt-5.4",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Play.")},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "run", Parameters: schema})},
	}
	for {
		var m openai.ChatCompletionMessage
		if stream {
			s := client.Chat.Completions.NewStreaming(ctx, params)
			var all openai.ChatCompletionAccumulator
			for s.Next() {
				all.AddChunk(s.Current())
			}
			if err := s.Err(); err != nil {
				return "", err
			}
			m = all.Choices[0].Message
		} else {
			got, err := client.Chat.Completions.New(ctx, params)
			if err != nil {
				return "", err
			}
			m = got.Choices[0].Message
		}
		if len(m.ToolCalls) == 0 {
			return m.Content, nil
		}
		params.Messages = append(params.Messages, m.ToParam())
		for _, call := range m.ToolCalls {
			params.Messages = append(params.Messages, openai.ToolMessage(call.Function.Arguments, call.ID))
		}
	}
}

func respond(ctx context.Context, url string, stream bool) (string, error) {
	client := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Play.", responses.EasyInputMessageRoleUser)}
	params := responses.ResponseNewParams{
		Model:     "gpt-5.6",
		Store:     openai.Bool(false),
		Include:   []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortMedium, Summary: shared.ReasoningSummaryAuto},
		Tools:     []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "run", Parameters: schema}}},
	}
	for {
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		var r responses.Response
		if stream {
			s := client.Responses.NewStreaming(ctx, params)
			for s.Next() {
				if e := s.Current(); e.Type == "response.completed" {
					r = e.Response
				}
			}
			if err := s.Err(); err != nil {
				return "", err
			}
		} else {
			got, err := client.Responses.New(ctx, params)
			if err != nil {
				return "", err
			}
			r = *got
		}
		calls := 0
		for _, item := range r.Output {
			switch item.Type {
			case "reasoning":
				reasoning := item.AsReasoning().ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfReasoning: &reasoning})
			case "function_call":
				call := item.AsFunctionCall()
				param := call.ToParam()
				result := responses.ResponseInputItemParamOfFunctionCallOutput(call.Arguments)
				result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
				input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &param}, result)
				calls++
			}
		}
		if calls == 0 {
			return r.OutputText(), nil
		}
	}
}

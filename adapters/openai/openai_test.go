package condenseopenai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters/internal/play"
	"github.com/condensehq/condense/adapters/openai"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

var parameters = map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}}

// client returns a client of a vendor that refuses whatever the real one does, and plays the script.
func client(t *testing.T) openai.Client {
	t.Helper()
	server := httptest.NewServer(upstream.New(upstream.Options{Script: script(), Window: play.Window, ByCredential: true}))
	t.Cleanup(server.Close)
	return openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

// TestChat plays an agent's loop. Its messages are the ones that were sent last and, in the other form, all.
func TestChat(t *testing.T) {
	for _, whole := range []bool{false, true} {
		watch, vendor := &play.Watch{T: t, Words: play.Words()}, client(t)
		memory := condenseopenai.NewChat(play.Open(t), nil, condense.Turn{NoRecall: true})
		params := openai.ChatCompletionNewParams{
			Model: "gpt-5.4", MaxCompletionTokens: openai.Int(2048), Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("You are careful.")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "run", Parameters: parameters})},
		}
		for _, words := range play.Words() {
			params.Messages = append(params.Messages, openai.UserMessage(words))
		}
		all := params.Messages
		for {
			if whole {
				params.Messages = all
			}
			if err := memory.Fit(t.Context(), &params); err != nil {
				t.Fatal(err)
			}
			sent, err := condenseopenai.ToCore(params.Messages)
			if err != nil {
				t.Fatal(err)
			}
			watch.Saw(sent)
			r, err := vendor.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatalf("request %d: %v", watch.Requests, err)
			}
			m := r.Choices[0].Message
			if len(m.ToolCalls) == 0 {
				break
			}
			added := []openai.ChatCompletionMessageParamUnion{m.ToParam()}
			for _, call := range m.ToolCalls {
				added = append(added, openai.ToolMessage(play.Result(call.Function.Arguments), call.ID))
			}
			params.Messages, all = append(params.Messages, added...), append(all, added...)
		}
		if watch.Requests != play.Turns+1 {
			t.Errorf("%d requests", watch.Requests)
		}
		c := memory.Conversation()
		watch.Ended(c, len(all)-1) // without the system's
		undone, err := condenseopenai.FromCore(c.View())
		if err != nil {
			t.Fatal(err)
		}
		for i := range undone {
			if encoded(t, undone[i]) != encoded(t, all[i+1]) {
				t.Fatalf("message %d is %s, and was %s", i, encoded(t, undone[i]), encoded(t, all[i+1]))
			}
		}
	}
}

// TestResponses plays an agent's loop in the Responses API.
func TestResponses(t *testing.T) {
	for _, whole := range []bool{false, true} {
		watch, vendor := &play.Watch{T: t, Words: play.Words()}, client(t)
		memory := condenseopenai.NewResponses(play.Open(t), nil, condense.Turn{NoRecall: true})
		params := responses.ResponseNewParams{
			Model: "gpt-5.6", Store: openai.Bool(false), MaxOutputTokens: openai.Int(2048), Instructions: openai.String("You are careful."),
			Include:   []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
			Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortMedium, Summary: shared.ReasoningSummaryAuto},
			Tools:     []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "run", Parameters: parameters}}},
		}
		for _, words := range play.Words() {
			params.Input.OfInputItemList = append(params.Input.OfInputItemList, responses.ResponseInputItemParamOfMessage(words, responses.EasyInputMessageRoleUser))
		}
		all := params.Input.OfInputItemList
		for {
			if whole {
				params.Input.OfInputItemList = all
			}
			if err := memory.Fit(t.Context(), &params); err != nil {
				t.Fatal(err)
			}
			sent, err := condenseopenai.ItemsToCore(params.Input.OfInputItemList)
			if err != nil {
				t.Fatal(err)
			}
			watch.Saw(play.Merged(sent))
			r, err := vendor.Responses.New(t.Context(), params)
			if err != nil {
				t.Fatalf("request %d: %v", watch.Requests, err)
			}
			var added, results []responses.ResponseInputItemUnionParam
			for _, one := range r.Output {
				switch one.Type {
				case "message":
					m := one.AsMessage().ToParam()
					added = append(added, responses.ResponseInputItemUnionParam{OfOutputMessage: &m})
				case "reasoning":
					p := one.AsReasoning().ToParam()
					added = append(added, responses.ResponseInputItemUnionParam{OfReasoning: &p})
				case "function_call":
					call := one.AsFunctionCall()
					p := call.ToParam()
					result := responses.ResponseInputItemParamOfFunctionCallOutput(play.Result(call.Arguments))
					result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
					added, results = append(added, responses.ResponseInputItemUnionParam{OfFunctionCall: &p}), append(results, result)
				}
			}
			if len(results) == 0 {
				break
			}
			added = append(added, results...)
			params.Input.OfInputItemList, all = append(params.Input.OfInputItemList, added...), append(all, added...)
		}
		if watch.Requests != play.Turns+1 {
			t.Errorf("%d requests", watch.Requests)
		}
		c := memory.Conversation()
		watch.Ended(c, len(all))
		undone, err := condenseopenai.ItemsFromCore(c.View())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if encoded(t, undone[i]) != encoded(t, all[i]) && all[i].OfMessage == nil { // which gets its type
				t.Fatalf("item %d is %s, and was %s", i, encoded(t, undone[i]), encoded(t, all[i]))
			}
		}
	}
}

// TestStored: only a part of the conversation is in the request.
func TestStored(t *testing.T) {
	memory := condenseopenai.NewResponses(play.Open(t), nil, condense.Turn{})
	err := memory.Fit(t.Context(), &responses.ResponseNewParams{PreviousResponseID: openai.String("resp_1")})
	if !errors.Is(err, condenseopenai.ErrStored) {
		t.Error(err)
	}
	p := responses.ResponseNewParams{Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello")}}
	if err := memory.Fit(t.Context(), &p); err != nil || p.Input.OfString.Value != "Hello" {
		t.Error(p.Input, err)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var value any // without the order of its fields
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(value); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRoundTrip: messages of every kind come back as they were.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := []openai.ChatCompletionMessageParamUnion{}
		for i := range r.IntN(12) {
			in = append(in, random(r, i))
		}
		all, err := condenseopenai.ToCore(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := condenseopenai.FromCore(all)
		if err != nil {
			t.Fatal(err)
		}
		if encoded(t, in) != encoded(t, append([]openai.ChatCompletionMessageParamUnion{}, out...)) {
			t.Fatalf("seed %d:\n%s\n%s", seed, encoded(t, in), encoded(t, out))
		}
	}
	for _, in := range []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","detail":"low","image_url":"data:image/png;base64,aGk="}]}`,
		`{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"so"}],"encrypted_content":"e"}`,
		`{"type":"function_call","id":"fc","call_id":"1","name":"run","arguments":"{}","status":"completed"}`,
		`{"type":"function_call_output","call_id":"1","output":""}`,
		`{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}}`,
		`{"type":"custom_tool_call","call_id":"2","name":"patch","input":"*** Begin"}`,
		`{"type":"custom_tool_call_output","call_id":"2","output":"ok"}`,
	} {
		var one responses.ResponseInputItemUnionParam
		if err := json.Unmarshal([]byte(in), &one); err != nil {
			t.Fatal(in, err)
		}
		all, err := condenseopenai.ItemsToCore([]responses.ResponseInputItemUnionParam{one})
		if err != nil {
			t.Fatal(in, err)
		}
		out, err := condenseopenai.ItemsFromCore(all)
		if err != nil || len(out) != 1 || encoded(t, out[0]) != encoded(t, one) {
			t.Errorf("%s became %s: %v", encoded(t, one), encoded(t, out), err)
		}
	}
}

func random(r *rand.Rand, i int) openai.ChatCompletionMessageParamUnion {
	text := func() string { return []string{"x", "word", "two\nlines", "é\u2028<&>", `{"a":1}`}[r.IntN(5)] }
	switch r.IntN(7) {
	case 0:
		return openai.SystemMessage(text())
	case 1:
		return openai.DeveloperMessage(text())
	case 2:
		return openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart(text()), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64,aGk=", Detail: "low"}),
			openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: "aGk=", Format: "wav"}),
		})
	case 3:
		return openai.UserMessage(text())
	case 4:
		return openai.ToolMessage([]string{"", text()}[r.IntN(2)], fmt.Sprint("c", i))
	case 5:
		m := openai.AssistantMessage(text())
		m.OfAssistant.Refusal = openai.String(text())
		return m
	default:
		m := openai.ChatCompletionAssistantMessageParam{}
		for j := range 1 + r.IntN(3) {
			m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: fmt.Sprint("c", i, j), Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "run", Arguments: text()},
			}})
		}
		return openai.ChatCompletionMessageParamUnion{OfAssistant: &m}
	}
}

// TestOthers: a conversation of another origin is written as a whole.
func TestOthers(t *testing.T) {
	all := []core.Message{
		{Role: core.RoleUser, Parts: []core.Part{core.Text("Go.")}},
		{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "a", Name: "run", Args: "{}"}}},
		{Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: "a", Content: []core.Part{core.Text("done")}}, core.Text("And now?")}},
	}
	out, err := condenseopenai.FromCore(all)
	if err != nil || len(out) != 4 || out[2].OfTool == nil || out[3].OfUser == nil {
		t.Errorf("got %s: %v", encoded(t, out), err)
	}
	items, err := condenseopenai.ItemsFromCore(all)
	if err != nil || len(items) != 4 || items[2].OfFunctionCallOutput == nil {
		t.Errorf("got %s: %v", encoded(t, items), err)
	}
}

// script is the scripted model: the calls are of the tool run.
func script() []upstream.Step {
	var script []upstream.Step
	for turn := 1; turn <= play.Turns; turn++ {
		step := upstream.Step{Text: fmt.Sprintf("Step %d.", turn)}
		for _, c := range play.Calls(turn) {
			step.Commands = append(step.Commands, c.Path)
		}
		script = append(script, step)
	}
	return append(script, upstream.Step{Text: "Done."})
}

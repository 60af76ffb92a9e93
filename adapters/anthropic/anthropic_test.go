package condenseanthropic_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters/anthropic"
	"github.com/condensehq/condense/adapters/internal/play"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestAgent plays an agent's loop with the SDK, against a vendor that refuses whatever the real one does: torn pairs, thinking that was
// written after other messages, a prompt above the window. Its messages are the ones that were sent last and, in the other form, all.
func TestAgent(t *testing.T) {
	for _, whole := range []bool{false, true} {
		for _, mode := range []anthropic.ThinkingConfigParamUnion{
			{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}}, anthropic.ThinkingConfigParamOfEnabled(1024), {},
		} {
			server := httptest.NewServer(upstream.New(upstream.Options{
				Script: script(), Window: play.Window, ByCredential: true,
				Model: func(string) upstream.Model { return upstream.Model{Bound: mode.OfAdaptive != nil} },
			}))
			agent(t, server.URL, whole, mode)
			server.Close()
		}
	}
}

func agent(t *testing.T, url string, whole bool, thinking anthropic.ThinkingConfigParamUnion) {
	t.Helper()
	watch := &play.Watch{T: t, Words: play.Words()}
	client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
	memory := condenseanthropic.NewMemory(play.Open(t), nil, condense.Turn{NoRecall: true})
	params := anthropic.MessageNewParams{
		Model: "claude-opus-5-5", MaxTokens: 2048, Thinking: thinking,
		System: []anthropic.TextBlockParam{{Text: "You are careful."}},
		Tools:  []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "run", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"command": map[string]any{"type": "string"}}}}}},
	}
	for _, words := range play.Words() {
		params.Messages = append(params.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(words)))
	}
	all := params.Messages
	for {
		if whole {
			params.Messages = all
		}
		if err := memory.Fit(t.Context(), &params); err != nil {
			t.Fatal(err)
		}
		sent, err := condenseanthropic.ToCore(params.Messages)
		if err != nil {
			t.Fatal(err)
		}
		watch.Saw(sent)
		m, err := client.Messages.New(t.Context(), params)
		if err != nil {
			t.Fatalf("request %d: %v", watch.Requests, err)
		}
		added := []anthropic.MessageParam{m.ToParam()}
		var results []anthropic.ContentBlockParamUnion
		for _, b := range m.Content {
			if call := b.AsToolUse(); b.Type == "tool_use" {
				result := anthropic.ToolResultBlockParam{ToolUseID: call.ID, IsError: anthropic.Bool(len(results) == 2)}
				if text := play.Result(string(call.Input)); text != "" {
					result.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: text}}}
				}
				results = append(results, anthropic.ContentBlockParamUnion{OfToolResult: &result})
			}
		}
		if len(results) == 0 {
			break
		}
		added = append(added, anthropic.NewUserMessage(results...))
		params.Messages, all = append(params.Messages, added...), append(all, added...)
	}
	if watch.Requests != play.Turns+1 {
		t.Errorf("%d requests", watch.Requests)
	}
	c := memory.Conversation()
	watch.Ended(c, len(all))
	undone, err := condenseanthropic.FromCore(c.View())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if encoded(t, undone[i]) != encoded(t, all[i]) {
			t.Fatalf("message %d is %s, and was %s", i, encoded(t, undone[i]), encoded(t, all[i]))
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRoundTrip: messages of every kind come back as they were.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := []anthropic.MessageParam{}
		for range r.IntN(12) {
			in = append(in, random(r))
		}
		all, err := condenseanthropic.ToCore(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := condenseanthropic.FromCore(all)
		if err != nil {
			t.Fatal(err)
		}
		if encoded(t, in) != encoded(t, append([]anthropic.MessageParam{}, out...)) {
			t.Fatalf("seed %d:\n%s\n%s", seed, encoded(t, in), encoded(t, out))
		}
	}
}

func random(r *rand.Rand) anthropic.MessageParam {
	text := func() string { return []string{"x", "word", "two\nlines", "é\u2028<&>", `{"a":1}`}[r.IntN(5)] }
	image := func() *anthropic.ImageBlockParam {
		b := anthropic.NewImageBlockBase64("image/png", "aGk=")
		if r.IntN(2) == 0 {
			b = anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: "https://example.com/a.png"})
		}
		return b.OfImage
	}
	var blocks []anthropic.ContentBlockParamUnion
	assistant := r.IntN(2) == 0
	for i := range 1 + r.IntN(4) {
		b := anthropic.NewTextBlock(text())
		if r.IntN(4) == 0 {
			b.OfText.CacheControl = anthropic.NewCacheControlEphemeralParam()
		}
		switch n := r.IntN(5); {
		case assistant && n == 0:
			b = anthropic.NewThinkingBlock("sign", text())
		case assistant && n == 1:
			b = anthropic.NewRedactedThinkingBlock("secret")
		case assistant && n == 2:
			b = anthropic.NewToolUseBlock(fmt.Sprint("c", i), map[string]any{"path": text(), "n": 1.5}, "read")
		case !assistant && n == 0:
			b = anthropic.ContentBlockParamUnion{OfImage: image()}
		case !assistant && n == 1:
			b = anthropic.NewToolResultBlock(fmt.Sprint("c", i), text(), r.IntN(2) == 0)
		case !assistant && n == 2:
			b = anthropic.ContentBlockParamUnion{OfToolResult: &anthropic.ToolResultBlockParam{ToolUseID: fmt.Sprint("c", i)}}
			for range r.IntN(3) {
				b.OfToolResult.Content = append(b.OfToolResult.Content, anthropic.ToolResultBlockParamContentUnion{OfImage: image()})
			}
		case !assistant && n == 3:
			b = anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: text()})
		}
		blocks = append(blocks, b)
	}
	if assistant {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

// TestOthers: a conversation of another origin is written as a whole, so that its pairs stay pairs.
func TestOthers(t *testing.T) {
	all := []core.Message{
		{Role: core.RoleUser, Parts: []core.Part{core.Text("Go.")}},
		{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "a", Name: "run", Args: "{}"}}},
		{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "a", Content: []core.Part{core.Text("done")}}}},
	}
	out, err := condenseanthropic.FromCore(all)
	want := `[{"content":[{"text":"Go.","type":"text"}],"role":"user"},{"content":[{"id":"a","input":{},"name":"run","type":"tool_use"}],"role":"assistant"},` +
		`{"content":[{"tool_use_id":"a","content":[{"text":"done","type":"text"}],"type":"tool_result"}],"role":"user"}]`
	if got := encoded(t, out); err != nil || got != want {
		t.Errorf("got %s, want %s: %v", got, want, err)
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

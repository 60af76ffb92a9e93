package condenseeino_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/condensehq/condense"
	condenseeino "github.com/condensehq/condense/adapters/eino"
	"github.com/condensehq/condense/adapters/internal/play"
	"github.com/condensehq/condense/core"
)

// A scripted model calls tools, and says that it is done.
type scripted struct {
	watch *play.Watch
	turn  int
}

func (s *scripted) Generate(_ context.Context, messages []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	all, err := condenseeino.ToCore(messages)
	if err != nil {
		return nil, err
	}
	s.watch.Saw(all)
	if s.turn++; s.turn > play.Turns {
		return schema.AssistantMessage("Done.", nil), nil
	}
	var calls []schema.ToolCall
	for _, c := range play.Calls(s.turn) {
		calls = append(calls, schema.ToolCall{ID: c.ID, Type: "function", Function: schema.FunctionCall{Name: c.Name, Arguments: c.Args()}})
	}
	return schema.AssistantMessage(fmt.Sprintf("Step %d.", s.turn), calls), nil
}

func (s *scripted) Stream(ctx context.Context, messages []*schema.Message, o ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := s.Generate(ctx, messages, o...)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
}

func (s *scripted) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

func tools(t *testing.T) compose.ToolsNodeConfig {
	t.Helper()
	read, err := utils.InferTool("read", "Reads a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return play.Result(in.Path), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return compose.ToolsNodeConfig{Tools: []tool.BaseTool{read}}
}

// messages returns how many an agent's run of the script has, without the system's.
func messages() int {
	n := len(play.Words()) + 2 // the person's, and the answers to them
	for turn := 1; turn <= play.Turns; turn++ {
		n += 1 + len(play.Calls(turn))
	}
	return n
}

// TestChatModelAgent plays an agent of package adk, whose state the memory shortens.
func TestChatModelAgent(t *testing.T) {
	watch := &play.Watch{T: t}
	script := &scripted{watch: watch}
	memory := condenseeino.NewMemory(play.Open(t), nil, condense.Turn{NoRecall: true})
	agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
		Name: "agent", Description: "reads", Instruction: "You are careful.", Model: script, MaxIterations: 100,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: tools(t)},
		Middlewares: []adk.AgentMiddleware{{BeforeChatModel: memory.BeforeChatModel}},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The program keeps all messages, as Eino's runner returns them, and begins each run with them.
	var history []*schema.Message
	for _, words := range play.Words() {
		watch.Words = append(watch.Words, words)
		history = append(history, schema.UserMessage(words))
		events := agent.Run(t.Context(), &adk.AgentInput{Messages: history})
		for e, ok := events.Next(); ok; e, ok = events.Next() {
			if e.Err != nil {
				t.Fatal(e.Err)
			}
			if e.Output != nil && e.Output.MessageOutput != nil {
				history = append(history, e.Output.MessageOutput.Message)
			}
		}
	}
	if watch.Requests != play.Turns+2 {
		t.Errorf("%d requests", watch.Requests)
	}
	watch.Ended(memory.Conversation(), messages()-1) // the last answer is the program's only
	whole, err := condenseeino.FromCore(memory.Conversation().View())
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]*schema.Message{} // the runner reports them as they come
	for _, m := range history {
		results[m.ToolCallID] = m
	}
	for i, m := range whole {
		was := history[i]
		if m.Role == schema.Tool {
			was = results[m.ToolCallID]
		}
		if !reflect.DeepEqual(m, was) {
			t.Fatalf("message %d is %s, and was %s", i, m, was)
		}
	}
}

// TestReact plays an agent of flow/agent/react.
func TestReact(t *testing.T) {
	watch := &play.Watch{T: t, Words: play.Words()}
	memory := condenseeino.NewMemory(play.Open(t), nil, condense.Turn{})
	agent, err := react.NewAgent(t.Context(), &react.AgentConfig{
		ToolCallingModel: &scripted{watch: watch}, ToolsConfig: tools(t), MaxStep: 200,
		MessageRewriter: memory.Rewriter(func(err error) { t.Error(err) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := agent.Generate(t.Context(), []*schema.Message{
		schema.SystemMessage("You are careful."), schema.UserMessage(play.Words()[0]), schema.UserMessage(play.Words()[1]),
	})
	if err != nil || answer.Content != "Done." {
		t.Fatal(answer, err)
	}
	watch.Ended(memory.Conversation(), messages()-2) // the last answers are not in its state
}

// TestRoundTrip: messages of every kind come back as they were.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		var in []*schema.Message
		r := rand.New(rand.NewPCG(seed, 0))
		for range r.IntN(12) {
			in = append(in, random(r))
		}
		all, err := condenseeino.ToCore(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := condenseeino.FromCore(all)
		if err != nil {
			t.Fatal(err)
		}
		if len(in) != len(out) {
			t.Fatalf("seed %d: %d messages became %d", seed, len(in), len(out))
		}
		for i := range in {
			if !reflect.DeepEqual(in[i], out[i]) {
				t.Fatalf("seed %d, message %d:\n%s\n%s", seed, i, encoded(t, in[i]), encoded(t, out[i]))
			}
		}
		// Without their source they mean the same.
		for i := range all {
			all[i].Source = nil
		}
		if out, err = condenseeino.FromCore(all); err != nil {
			t.Fatal(err)
		}
		again, err := condenseeino.ToCore(out)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].Parts, again[i].Parts = play.Plain(all[i].Parts), play.Plain(again[i].Parts)
			if !core.EqualParts(all[i].Parts, again[i].Parts) || all[i].Role != again[i].Role {
				t.Fatalf("seed %d, message %d:\n%+v\n%+v", seed, i, all[i], again[i])
			}
		}
	}
}

func encoded(t *testing.T, m *schema.Message) string {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func random(r *rand.Rand) *schema.Message {
	text := func() string { return []string{"", "word", "two\nlines", "é\u2028<&>", `{"a":1}`}[r.IntN(5)] }
	flip := func() bool { return r.IntN(2) == 0 }
	extra := func() map[string]any {
		if flip() {
			return nil
		}
		return map[string]any{"sign": text(), "n": 1.5, "deep": []any{true, nil, map[string]any{"x": "y"}}}
	}
	common := func() schema.MessagePartCommon {
		url, data := "https://example.com/a.png", "aGk="
		if flip() {
			return schema.MessagePartCommon{URL: &url, Extra: extra()}
		}
		return schema.MessagePartCommon{Base64Data: &data, MIMEType: "image/png", Extra: extra()}
	}
	m := &schema.Message{Content: text(), Name: text(), Extra: extra()}
	inputs := func() (out []schema.MessageInputPart) {
		for range r.IntN(4) {
			p := schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: text(), Extra: extra()}
			switch r.IntN(4) {
			case 0:
				p = schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: common(), Detail: "high"}}
			case 1:
				p = schema.MessageInputPart{Type: schema.ChatMessagePartTypeFileURL, File: &schema.MessageInputFile{MessagePartCommon: common(), Name: "a.pdf"}}
			}
			out = append(out, p)
		}
		return out
	}
	switch r.IntN(5) {
	case 0:
		m.Role = schema.System
	case 1:
		m.Role, m.UserInputMultiContent = schema.User, inputs()
	case 2:
		m.Role = schema.User
		for range r.IntN(3) {
			m.MultiContent = append(m.MultiContent, schema.ChatMessagePart{Type: schema.ChatMessagePartTypeAudioURL, AudioURL: &schema.ChatMessageAudioURL{URL: text()}})
		}
	case 3:
		m.Role, m.ToolCallID, m.ToolName, m.UserInputMultiContent = schema.Tool, "call", "read", inputs()
	default:
		m.Role, m.ReasoningContent = schema.Assistant, text()
		m.ResponseMeta = &schema.ResponseMeta{FinishReason: "stop", Usage: &schema.TokenUsage{PromptTokens: 7}}
		for i := range r.IntN(4) {
			m.ToolCalls = append(m.ToolCalls, schema.ToolCall{Index: &i, ID: fmt.Sprint("c", i), Type: "function", Function: schema.FunctionCall{Name: "read", Arguments: text()}, Extra: extra()})
		}
		if flip() {
			m.AssistantGenMultiContent = []schema.MessageOutputPart{{Type: schema.ChatMessagePartTypeText, Text: text()}, {Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageOutputImage{MessagePartCommon: common()}}}
		}
	}
	return m
}

// TestChanged: a message of which core shortens a result, a call or a text keeps all else.
func TestChanged(t *testing.T) {
	index, data := 3, "aGk="
	for name, tt := range map[string]struct {
		in   *schema.Message
		part core.Part
		at   int
		want func(*schema.Message)
	}{
		"result": {
			&schema.Message{Role: schema.Tool, ToolCallID: "c", ToolName: "read", Content: "long", Extra: map[string]any{"k": "v"}},
			core.ToolResult{CallID: "c", Content: []core.Part{core.Text("short")}},
			0, func(m *schema.Message) { m.Content = "short" },
		},
		"call": {
			&schema.Message{Role: schema.Assistant, Content: "now", ToolCalls: []schema.ToolCall{{Index: &index, ID: "c", Type: "function", Function: schema.FunctionCall{Name: "write", Arguments: "{1}"}, Extra: map[string]any{"k": "v"}}}},
			core.ToolCall{ID: "c", Name: "write", Args: "{}"},
			1, func(m *schema.Message) { m.ToolCalls[0].Function.Arguments = "{}" },
		},
		"text beside an image": {
			&schema.Message{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
				{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: schema.MessagePartCommon{Base64Data: &data, MIMEType: "image/png"}, Detail: "low"}},
				{Type: schema.ChatMessagePartTypeText, Text: "long"},
			}},
			core.Text("short"), 1, func(m *schema.Message) { m.UserInputMultiContent[1].Text = "short" },
		},
	} {
		all, err := condenseeino.ToCore([]*schema.Message{tt.in})
		if err != nil {
			t.Fatal(err)
		}
		all[0].Parts[tt.at] = tt.part
		out, err := condenseeino.FromCore(all)
		if err != nil {
			t.Fatal(err)
		}
		tt.want(tt.in)
		if len(out) != 1 || !reflect.DeepEqual(tt.in, out[0]) {
			t.Errorf("%s: got %s, want %s", name, encoded(t, out[0]), encoded(t, tt.in))
		}
	}
}

// TestUnknown: a message that no model could be sent is an error, not a loss.
func TestUnknown(t *testing.T) {
	for _, m := range []*schema.Message{nil, {Role: "critic"}} {
		if _, err := condenseeino.ToCore([]*schema.Message{m}); err == nil {
			t.Errorf("%v: no error", m)
		}
	}
}

package condenselangchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/tools"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters/internal/play"
	"github.com/condensehq/condense/core"

	condenselangchain "github.com/condensehq/condense/adapters/langchaingo"
)

// A scripted model calls tools, and says that it is done. Once it refuses a conversation as too large.
type scripted struct {
	watch   *play.Watch
	turn    int
	refused bool
}

func (s *scripted) GenerateContent(_ context.Context, messages []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	all, err := condenselangchain.ToCore(messages)
	if err != nil {
		return nil, err
	}
	s.watch.Saw(all)
	if s.turn == 30 && !s.refused {
		s.refused = true
		return nil, errors.New("400: prompt is too long: 200001 tokens > 200000 maximum")
	}
	if s.turn++; s.turn > play.Turns {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "Done."}}}, nil
	}
	choice := &llms.ContentChoice{Content: fmt.Sprintf("Step %d.", s.turn)}
	for _, c := range play.Calls(s.turn) {
		choice.ToolCalls = append(choice.ToolCalls, llms.ToolCall{ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: fmt.Sprintf(`{"__arg1":%q}`, c.Path)}})
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}

func (s *scripted) Call(context.Context, string, ...llms.CallOption) (string, error) {
	return "", errors.ErrUnsupported
}

type read struct{}

func (read) Name() string                                        { return "read" }
func (read) Description() string                                 { return "Reads a file." }
func (read) Call(_ context.Context, path string) (string, error) { return play.Result(path), nil }

// TestAgent plays an agent that sends its whole history each time.
func TestAgent(t *testing.T) {
	watch := &play.Watch{T: t, Words: play.Words()}
	script := &scripted{watch: watch}
	m := condenselangchain.NewMemory(play.Open(t), nil, condense.Turn{NoRecall: true})
	agent := agents.NewOpenAIFunctionsAgent(m.Model(script), []tools.Tool{read{}})
	out, err := chains.Run(t.Context(), agents.NewExecutor(agent, agents.WithMaxIterations(100)), strings.Join(play.Words(), " "))
	if err != nil || out != "Done." {
		t.Fatal(out, err)
	}
	if watch.Requests != play.Turns+2 || !script.refused {
		t.Errorf("%d requests", watch.Requests)
	}
	want := 1
	for turn := 1; turn <= play.Turns; turn++ {
		want += 2 * len(play.Calls(turn)) // this agent sends calls made at once one by one
	}
	watch.Ended(m.Conversation(), want)
	whole, err := condenselangchain.FromCore(m.Conversation().View())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range whole[len(whole)-1].Parts {
		if got := p.(llms.ToolCallResponse); got.Content != play.Result("src/part60/file2.go") {
			t.Errorf("the last result is %+v", got)
		}
	}
}

// TestHistory: a history of chats fits, and keeps all.
func TestHistory(t *testing.T) {
	m := condenselangchain.NewMemory(play.Open(t), nil, condense.Turn{})
	all := memory.NewChatMessageHistory()
	h := m.History(all)
	watch := &play.Watch{T: t}
	for i := range 80 {
		words := fmt.Sprintf("Question %d: what does step %d do?", i, i)
		if i < 2 {
			words = play.Words()[i]
			watch.Words = append(watch.Words, words)
		}
		if err := errors.Join(h.AddUserMessage(t.Context(), words), h.AddAIMessage(t.Context(), play.Result(fmt.Sprint("file", i)))); err != nil {
			t.Fatal(err)
		}
		messages, err := h.Messages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var contents []llms.MessageContent
		for _, one := range messages {
			contents = append(contents, llms.TextParts(one.GetType(), one.GetContent()))
		}
		sent, err := condenselangchain.ToCore(contents)
		if err != nil {
			t.Fatal(err)
		}
		watch.Saw(sent)
	}
	if kept, err := all.Messages(t.Context()); err != nil || len(kept) != 160 {
		t.Errorf("%d messages are kept: %v", len(kept), err)
	}
	watch.Ended(m.Conversation(), 160)
}

// TestRoundTrip: messages of every kind come back as they were.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := []llms.MessageContent{}
		for range r.IntN(12) {
			in = append(in, random(r))
		}
		all, err := condenselangchain.ToCore(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := condenselangchain.FromCore(all)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if !reflect.DeepEqual(in[i], out[i]) {
				t.Fatalf("seed %d, message %d:\n%#v\n%#v", seed, i, in[i], out[i])
			}
		}
		for i := range all { // without their source they mean the same
			all[i].Source = nil
		}
		if out, err = condenselangchain.FromCore(all); err != nil {
			t.Fatal(err)
		}
		again, err := condenselangchain.ToCore(out)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if !core.EqualParts(all[i].Parts, again[i].Parts) || all[i].Role != again[i].Role {
				t.Fatalf("seed %d, message %d:\n%+v\n%+v", seed, i, all[i], again[i])
			}
		}
	}
}

func random(r *rand.Rand) llms.MessageContent {
	text := func() string { return []string{"", "word", "two\nlines", "é\u2028<&>", `{"a":1}`}[r.IntN(5)] }
	roles := []llms.ChatMessageType{"system", "human", "generic", "ai", "tool", "function"}
	m := llms.MessageContent{Role: roles[r.IntN(len(roles))], Parts: []llms.ContentPart{}}
	for range 1 + r.IntN(4) {
		var p llms.ContentPart
		switch r.IntN(6) {
		case 0:
			p = llms.ImageURLWithDetailPart([]string{"https://example.com/a.png", "data:image/png;base64,aGk="}[r.IntN(2)], []string{"", "high"}[r.IntN(2)])
		case 1:
			p = llms.BinaryPart([]string{"image/png", "audio/wav"}[r.IntN(2)], []byte("hi"))
		case 2:
			p = llms.ToolCall{ID: fmt.Sprint("c", r.IntN(9)), Type: "function", FunctionCall: &llms.FunctionCall{Name: "read", Arguments: text()}}
		case 3:
			p = llms.ToolCallResponse{ToolCallID: []string{"", "c1"}[r.IntN(2)], Name: "read", Content: text()}
		default:
			p = llms.TextPart(text())
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// TestChanged: fields that core does not have stay when a result or a call is shortened.
func TestChanged(t *testing.T) {
	in := []llms.MessageContent{
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{ID: "c", Type: "special", FunctionCall: &llms.FunctionCall{Name: "write", Arguments: `{"a":1}`}}}},
		{Role: llms.ChatMessageTypeFunction, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "c", Name: "write", Content: "long"}}},
	}
	all, err := condenselangchain.ToCore(in)
	if err != nil {
		t.Fatal(err)
	}
	all[0].Parts[0] = core.ToolCall{ID: "c", Name: "write", Args: "{}"}
	all[1].Parts[0] = core.ToolResult{CallID: "c", Content: []core.Part{core.Text("short")}}
	out, err := condenselangchain.FromCore(all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(out)
	want := `[{"role":"ai","parts":[{"type":"tool_call","tool_call":{"function":{"name":"write","arguments":"{}"},"id":"c","type":"special"}}]},` +
		`{"role":"function","parts":[{"type":"tool_response","tool_response":{"content":"short","name":"write","tool_call_id":"c"}}]}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, want %s: %v", got, want, err)
	}
}

package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/testkit/modeltest"
	"github.com/condensehq/condense/model"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func client(t *testing.T, s *modeltest.Server, change ...func(*remote.Options)) *remote.Client {
	t.Helper()
	o := remote.Options{ID: "claude-haiku-4-5", BaseURL: s.URL, MaxOutput: 64_000, Retry: remote.Retry{Attempts: 1, First: time.Millisecond}}
	for _, f := range change {
		f(&o)
	}
	c, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// session is a conversation with a call, an image and a thought.
func session() *model.Prompt {
	return &model.Prompt{
		System: "You are an agent.",
		Messages: []core.Message{
			coretest.User(core.Text("Look at this."), core.Image{MediaType: "image/png", Data: png}),
			coretest.Assistant(core.Reasoning{Text: "hm", Signature: "sig"}, core.Text("I read it."), core.ToolCall{ID: "call.1", Name: "read_file", Args: `{"path":"a.go"}`}),
			coretest.Tool(coretest.Result("call.1", "package a")),
			coretest.User(core.Text("Summarize.")),
		},
		MaxOutput: 500,
	}
}

func TestRequest(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("Said.")...))
	c := client(t, s)
	if _, err := c.Generate(t.Context(), session()); err != nil {
		t.Fatal(err)
	}
	s.Same(t, 0, `{
		"model": "claude-haiku-4-5", "max_tokens": 500, "stream": true, "system": "You are an agent.",
		"tools": [{"name": "read_file", "input_schema": {"type": "object"}}], "tool_choice": {"type": "none"},
		"messages": [
			{"role": "user", "content": [{"type": "text", "text": "Look at this."}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "`+png+`"}}]},
			{"role": "assistant", "content": [{"type": "text", "text": "I read it."}, {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a.go"}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "package a"}, {"type": "text", "text": "Summarize."}]}
		]}`)
	h := s.Requests()[0].Header
	if h.Get("anthropic-version") != "2023-06-01" || h.Get("content-type") != "application/json" || h.Get("x-api-key") != "" {
		t.Errorf("got the header %v", h)
	}
}

// With Cached the request is the one that the agent has sent, and the mark is at the
// end of what it had.
func TestCached(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("Said.")...))
	c := client(t, s)
	p := session()
	p.Cached = true
	p.Tools = `[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}]`
	if _, err := c.Generate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.Same(t, 0, `{
		"model": "claude-haiku-4-5", "max_tokens": 500, "stream": true, "system": "You are an agent.",
		"tools": [{"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
		"messages": [
			{"role": "user", "content": [{"type": "text", "text": "Look at this."}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "`+png+`"}}]},
			{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "text", "text": "I read it."}, {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a.go"}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "package a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "Summarize."}]}
		]}`)

	p.Messages = append(p.Messages[:3:3], coretest.Assistant(core.Text("Done.")), coretest.User(core.Text(" "), core.Text("Summarize.")))
	if _, err := c.Generate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var r struct {
		Messages []struct {
			Content any
		}
	}
	s.Decode(t, 1, &r)
	want := []any{map[string]any{"type": "text", "text": "Done.", "cache_control": map[string]any{"type": "ephemeral"}}}
	if diff := cmp.Diff(want, r.Messages[3].Content); diff != "" {
		t.Errorf("the last message of the prefix (-want +got):\n%s", diff)
	}
}

func TestMaxTokens(t *testing.T) {
	for _, tt := range []struct{ asked, longest, want int }{
		{0, 0, 8192}, {0, 4096, 4096}, {0, 64_000, 8192}, {500, 0, 500}, {500, 400, 400}, {-1, 0, 8192},
	} {
		s := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("Said.")...))
		c := client(t, s, func(o *remote.Options) { o.MaxOutput = tt.longest })
		if _, err := c.Generate(t.Context(), &model.Prompt{Messages: []core.Message{coretest.User(core.Text("Hi"))}, MaxOutput: tt.asked}); err != nil {
			t.Fatal(err)
		}
		var r struct {
			MaxTokens int `json:"max_tokens"`
		}
		if s.Decode(t, 0, &r); r.MaxTokens != tt.want {
			t.Errorf("asked for %d of at most %d: got %d, want %d", tt.asked, tt.longest, r.MaxTokens, tt.want)
		}
	}
}

func TestTools(t *testing.T) {
	p := session()
	for name, tt := range map[string]struct{ tools, want string }{
		"own form":      {`[{"name":"a","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`, `[{"name":"a","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`},
		"a server tool": {`[{"type":"web_search_20250305","name":"web_search"}]`, `[{"type":"web_search_20250305","name":"web_search"}]`},
		"OpenAI's form": {`[{"type":"function","function":{"name":"a"}}]`, `[{"name":"a","input_schema":{"type":"object"}}]`},
	} {
		s := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("Said.")...))
		p.Tools = tt.tools
		if _, err := client(t, s).Generate(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		var r struct{ Tools any }
		s.Decode(t, 0, &r)
		var want any
		if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Tools); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	s := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("Said.")...))
	p.Tools = `{"not":"an array"}`
	var e *remote.Error
	if _, err := client(t, s).Generate(t.Context(), p); !errors.As(err, &e) || e.Kind != remote.KindRefused || len(s.Requests()) != 0 {
		t.Errorf("definitions that are none: got %v", err)
	}
}

func TestAnswers(t *testing.T) {
	start := `{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`
	text := func(s string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, s)
	}
	end := func(reason string) string {
		return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":7}}`, reason)
	}
	const stop = `{"type":"message_stop"}`
	for _, tt := range []struct {
		name string
		data []string
		want model.Answer
		kind remote.Kind
		says string
	}{
		{"text in two blocks", []string{start, `{"type":"content_block_start","content_block":{"type":"text","text":"A"}}`, text("B"), text(" C"), end("end_turn"), stop}, model.Answer{Text: "AB C"}, "", ""},
		{"thinking is left out", []string{start, `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}`, `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"s"}}`, text("A"), end("end_turn"), stop}, model.Answer{Text: "A"}, "", ""},
		{"cut off", []string{start, text("A"), end("max_tokens"), stop}, model.Answer{Text: "A", Truncated: true}, "", ""},
		{"the window is full", []string{start, text("A"), end("model_context_window_exceeded"), stop}, model.Answer{Text: "A", Truncated: true}, "", ""},
		{"cut off at once", []string{start, end("max_tokens"), stop}, model.Answer{}, remote.KindNoText, "longest answer"},
		{"events of tomorrow", []string{start, `{"type":"tomorrow"}`, text("A"), `{"type":"content_block_delta","delta":{"type":"tomorrow_delta","text":"x"}}`, end("end_turn"), stop}, model.Answer{Text: "A"}, "", ""},
		{"no message_stop", []string{start, text("A"), end("end_turn")}, model.Answer{Text: "A"}, "", ""},
		{"a tool instead", []string{start, `{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"read_file","input":{}}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`, end("tool_use"), stop}, model.Answer{}, remote.KindNoText, `"read_file"`},
		{"a tool beside text", []string{start, text("A"), `{"type":"content_block_start","content_block":{"type":"tool_use","name":"x"}}`, end("tool_use"), stop}, model.Answer{Text: "A"}, "", ""},
		{"a refusal", []string{start, text("I "), end("refusal"), stop}, model.Answer{}, remote.KindNoText, "refused"},
		{"an event without a type", []string{start, `{}`}, model.Answer{}, remote.KindMalformed, "without a type"},
		{"an error that says nothing", []string{start, `{"type":"error"}`}, model.Answer{}, remote.KindMalformed, "says nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Stream(tt.data...))
			answer, err := client(t, s).Generate(t.Context(), &model.Prompt{Messages: []core.Message{coretest.User(core.Text("Hi"))}})
			if tt.kind != "" {
				var e *remote.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Error(), tt.says) || answer.Text != "" {
					t.Errorf("got %+v, %v; want kind %q that says %q", answer, err, tt.kind, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Usage = core.Usage{Calls: 1, InputTokens: 10, OutputTokens: 7, Unpriced: 1}
			if diff := cmp.Diff(&tt.want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	s := modeltest.Serve(t,
		modeltest.Answer(200, `{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Said."}],"stop_reason":"end_turn","usage":{"input_tokens":5,"cache_read_input_tokens":4,"output_tokens":2}}`),
		modeltest.Answer(200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		modeltest.Answer(200, `{"ok":true}`))
	c := client(t, s)
	p := &model.Prompt{Messages: []core.Message{coretest.User(core.Text("Hi"))}}
	answer, err := c.Generate(t.Context(), p)
	want := &model.Answer{Text: "Said.", Usage: core.Usage{Calls: 1, InputTokens: 9, CachedTokens: 4, OutputTokens: 2, Unpriced: 1}}
	if diff := cmp.Diff(want, answer); err != nil || diff != "" {
		t.Errorf("%v, answer (-want +got):\n%s", err, diff)
	}
	for _, kind := range []remote.Kind{remote.KindBusy, remote.KindMalformed} {
		var e *remote.Error
		if _, err := c.Generate(t.Context(), p); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("got %v, want kind %q", err, kind)
		}
	}
}

// A gateway that does not know a parameter is asked without it, from then on at once.
func TestParameterRefused(t *testing.T) {
	s := modeltest.Serve(t,
		modeltest.Answer(400, `{"error":{"type":"invalid_request_error","message":"messages.2.content.0.tool_result.cache_control: Extra inputs are not permitted"}}`),
		modeltest.Stream(modeltest.Anthropic("Said.")...))
	c := client(t, s)
	p := session()
	p.Cached = true
	for range 2 {
		if _, err := c.Generate(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	var marked []bool
	for _, r := range s.Requests() {
		marked = append(marked, strings.Contains(string(r.Body), "cache_control"))
	}
	if diff := cmp.Diff([]bool{true, false, false}, marked); diff != "" {
		t.Errorf("requests with the mark (-want +got):\n%s", diff)
	}
}

// For every conversation the request is valid: the server lints it.
func TestRequestsAreValid(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream(modeltest.Anthropic("Said.")...))
	c := client(t, s)
	for seed := range uint64(150) {
		p := &model.Prompt{Messages: coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil), Cached: seed%2 == 0}
		p.Messages = append(p.Messages, coretest.User(core.Text("Summarize.")))
		if _, err := c.Generate(t.Context(), p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// FuzzAnswer: whatever a server sends, there is text or a typed error, and no panic.
func FuzzAnswer(f *testing.F) {
	for _, d := range modeltest.Anthropic("Said.") {
		f.Add(d)
	}
	f.Add(`{"type":"message_delta","usage":{"input_tokens":-5,"cache_read_input_tokens":9223372036854775807}}`)
	f.Fuzz(func(t *testing.T, data string) {
		good := modeltest.Anthropic("Said.")
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			body := "data: " + data + "\n\ndata: " + strings.Join(good, "\n\ndata: ") + "\n\n"
			return modeltest.Response(r, body), nil
		})
		c, err := anthropic.New(remote.Options{ID: "m", BaseURL: "http://localhost", Retry: remote.Retry{Attempts: 1}, HTTPClient: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Generate(t.Context(), &model.Prompt{Messages: []core.Message{coretest.User(core.Text("Hi"))}})
		var e *remote.Error
		if err != nil && !errors.As(err, &e) || err == nil && strings.TrimSpace(answer.Text) == "" {
			t.Errorf("got %+v, %v", answer, err)
		}
		if u := answer.Usage; u.InputTokens < 0 || u.CachedTokens < 0 || u.CachedTokens > u.InputTokens || u.OutputTokens < 0 || u.USD < 0 {
			t.Errorf("got usage %+v", u)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

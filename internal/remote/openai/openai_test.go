package openai_test

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
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/internal/testkit/modeltest"
	"github.com/condensehq/condense/model"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func client(t *testing.T, s *modeltest.Server, change ...func(*remote.Options)) *remote.Client {
	t.Helper()
	o := remote.Options{ID: "qwen3:8b", BaseURL: s.URL + "/v1", MaxOutput: 4000, Retry: remote.Retry{Attempts: 1, First: time.Millisecond}}
	for _, f := range change {
		f(&o)
	}
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func session() *model.Prompt {
	return &model.Prompt{
		System: "You are an agent.",
		Messages: []core.Message{
			coretest.User(core.Text("Look at this."), core.Image{MediaType: "image/png", Data: png}),
			coretest.Assistant(core.Reasoning{Text: "hm"}, core.Text("I read it."), core.ToolCall{ID: "call.1", Name: "read_file", Args: `{"path":"a.go"}`}),
			coretest.Tool(coretest.Result("call.1", "package a")),
			coretest.User(core.Text("Summarize.")),
		},
		MaxOutput: 500,
	}
}

func TestRequest(t *testing.T) {
	t.Setenv("SOME_KEY", " the-key\n")
	s := modeltest.Serve(t, modeltest.Stream(modeltest.OpenAI("Said.")...))
	c := client(t, s, func(o *remote.Options) { o.KeyEnv = "SOME_KEY" })
	p := session()
	p.Tools = `[{"name":"read_file","description":"Reads.","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}]`
	if _, err := c.Generate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.Same(t, 0, `{
		"model": "qwen3:8b", "max_tokens": 500, "stream": true, "stream_options": {"include_usage": true}, "tool_choice": "none",
		"tools": [{"type": "function", "function": {"name": "read_file", "description": "Reads.", "parameters": {"type": "object"}}}],
		"messages": [
			{"role": "system", "content": "You are an agent."},
			{"role": "user", "content": [{"type": "text", "text": "Look at this."}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,`+png+`"}}]},
			{"role": "assistant", "content": "I read it.", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"a.go\"}"}}]},
			{"role": "tool", "tool_call_id": "call_1", "content": "package a"},
			{"role": "user", "content": "Summarize."}
		]}`)
	if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer the-key" {
		t.Errorf("got the key as %q", got)
	}
	p.Cached = true
	if _, err := c.Generate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(s.Requests()[1].Body), "tool_choice") {
		t.Error("got a tool_choice, want the request as the agent sends it")
	}
}

// Servers that are stricter than OpenAI's want text as a string, and one message of the
// user at a time; in a request that is to be found in a cache, nothing is changed.
func TestTurns(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream(modeltest.OpenAI("Said.")...))
	c := client(t, s)
	image := core.Image{MediaType: "image/png", Data: png}
	p := &model.Prompt{MaxOutput: 500, Messages: []core.Message{
		coretest.User(core.Text("a <b>"), core.Text("c")),
		coretest.User(core.Text("d")),
		coretest.Assistant(core.Text("e"), core.Text("f")),
		coretest.User(core.Text("g"), image),
		coretest.User(core.Text("h")),
		coretest.Assistant(core.ToolCall{ID: "1", Name: "x", Args: "{}"}),
		coretest.User(coretest.Result("1", "i", "j")),
		coretest.User(core.Text("k")),
	}}
	if _, err := c.Generate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.Same(t, 0, `{
		"model": "qwen3:8b", "max_tokens": 500, "stream": true, "stream_options": {"include_usage": true},
		"messages": [
			{"role": "user", "content": "a <b>\n\nc\n\nd"},
			{"role": "assistant", "content": "e\n\nf"},
			{"role": "user", "content": [
				{"type": "text", "text": "g"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,`+png+`"}}, {"type": "text", "text": "h"}
			]},
			{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "x", "arguments": "{}"}}]},
			{"role": "tool", "tool_call_id": "1", "content": "i\n\nj"},
			{"role": "user", "content": "k"}
		]}`)
	p.Cached = true
	if _, err := c.Generate(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var cached struct{ Messages []json.RawMessage }
	s.Decode(t, 1, &cached)
	if len(cached.Messages) != len(p.Messages) {
		t.Errorf("got %d messages, want all %d as they are", len(cached.Messages), len(p.Messages))
	}
}

// A server that does not know a parameter is asked without it, from then on at once.
func TestParameters(t *testing.T) {
	const (
		o1     = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`
		strict = `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`
		older  = `{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens","type":"invalid_request_error","param":null,"code":null}}`
		large  = `{"error":{"message":"max_tokens is too large: 500. This model supports at most 100 completion tokens","type":"invalid_request_error","param":"max_tokens","code":null}}`
	)
	good := modeltest.Stream(modeltest.OpenAI("Said.")...)
	for _, tt := range []struct {
		name   string
		script []http.HandlerFunc
		want   []string // the parameters of each request
		fails  bool
	}{
		{"the new name", []http.HandlerFunc{modeltest.Answer(400, o1), good}, []string{"max_tokens stream_options", "max_completion_tokens stream_options", "max_completion_tokens stream_options"}, false},
		{"neither name", []http.HandlerFunc{modeltest.Answer(400, o1), modeltest.Answer(400, older), good}, []string{"max_tokens stream_options", "max_completion_tokens stream_options", "stream_options", "stream_options"}, false},
		{"no options", []http.HandlerFunc{modeltest.Answer(422, strict), good}, []string{"max_tokens stream_options", "max_tokens", "max_tokens"}, false},
		{"the value, not the name", []http.HandlerFunc{modeltest.Answer(400, large)}, []string{"max_tokens stream_options", "max_tokens stream_options"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Serve(t, tt.script...)
			c := client(t, s)
			for range 2 {
				if _, err := c.Generate(t.Context(), session()); (err != nil) != tt.fails {
					t.Fatalf("got %v", err)
				}
			}
			var got []string
			for n := range s.Requests() {
				var r map[string]any
				s.Decode(t, n, &r)
				var has []string
				for _, name := range []string{"max_completion_tokens", "max_tokens", "stream_options"} {
					if r[name] != nil {
						has = append(has, name)
					}
				}
				got = append(got, strings.Join(has, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

// OpenAI's own service gets the name that all its models know.
func TestLimitAtOpenAI(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "k")
	var sent map[string]any
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.String() != "https://api.openai.com/v1/chat/completions" {
			t.Errorf("got a request to %s", r.URL)
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		return modeltest.Response(r, "data: "+strings.Join(modeltest.OpenAI("Said."), "\n\ndata: ")+"\n\n"), nil
	})
	c, err := openai.New(remote.Options{ID: "gpt-5-mini", HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), session()); err != nil {
		t.Fatal(err)
	}
	if sent["max_completion_tokens"] != 500.0 || sent["max_tokens"] != nil {
		t.Errorf("got %v", sent)
	}
}

func TestAnswers(t *testing.T) {
	delta := func(d string) string { return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` }
	text := func(s string) string { return delta(fmt.Sprintf(`{"content":%q}`, s)) }
	end := func(reason string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
	}
	const (
		usage = `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7}}`
		done  = "[DONE]"
	)
	used := core.Usage{Calls: 1, InputTokens: 10, OutputTokens: 7, Unpriced: 1}
	for _, tt := range []struct {
		name string
		data []string
		want model.Answer
		kind remote.Kind
		says string
	}{
		{"text", []string{text("A"), text("B"), end("stop"), usage, done}, model.Answer{Text: "AB", Usage: used}, "", ""},
		{"no end mark", []string{text("A"), end("stop"), usage}, model.Answer{Text: "A", Usage: used}, "", ""},
		{"no reason to stop", []string{text("A"), usage, done}, model.Answer{Text: "A", Usage: used}, "", ""},
		{"usage with the last piece", []string{text("A"), `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":7}}`, done}, model.Answer{Text: "A", Usage: used}, "", ""},
		{"usage within the choice", []string{text("A"), `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":7}}]}`, done}, model.Answer{Text: "A", Usage: used}, "", ""},
		{"usage of DeepSeek", []string{text("A"), end("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}}`, done}, model.Answer{Text: "A", Usage: core.Usage{Calls: 1, InputTokens: 10, OutputTokens: 7, CachedTokens: 6, Unpriced: 1}}, "", ""},
		{"no usage", []string{text("A"), end("stop"), done}, model.Answer{Text: "A", Usage: core.Usage{Calls: 1, Unpriced: 1}}, "", ""},
		{"cut off", []string{text("A"), end("length"), usage, done}, model.Answer{Text: "A", Truncated: true, Usage: used}, "", ""},
		{"cut off while it thought", []string{delta(`{"reasoning_content":"hm"}`), end("length"), usage, done}, model.Answer{Usage: used}, remote.KindNoText, "longest answer"},
		{"thoughts in the text", []string{text("<think>\nhm"), text(" hm</think>\n\nA"), end("stop"), usage, done}, model.Answer{Text: "A", Usage: used}, "", ""},
		{"thoughts without an end", []string{text("<think>hm"), end("length"), usage, done}, model.Answer{Usage: used}, remote.KindNoText, ""},
		{"the mark later in the text", []string{text("A <think> tag"), end("stop"), usage, done}, model.Answer{Text: "A <think> tag", Usage: used}, "", ""},
		{"parts", []string{delta(`{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"A"}]}`), end("stop"), usage, done}, model.Answer{Text: "A", Usage: used}, "", ""},
		{"a tool instead", []string{delta(`{"content":null,"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"read_file","arguments":""}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`), end("tool_calls"), usage, done}, model.Answer{Usage: used}, remote.KindNoText, `"read_file"`},
		{"a refusal", []string{delta(`{"refusal":"I cannot"}`), end("stop"), usage, done}, model.Answer{Usage: used}, remote.KindNoText, "refused"},
		{"a filter", []string{text("A"), end("content_filter"), usage, done}, model.Answer{Usage: used}, remote.KindNoText, "filter"},
		{"content of the wrong type", []string{delta(`{"content":7}`), done}, model.Answer{Usage: core.Usage{Calls: 1, Unpriced: 1}}, remote.KindMalformed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Stream(tt.data...))
			answer, err := client(t, s).Generate(t.Context(), session())
			if tt.kind != "" {
				var e *remote.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(e.Error(), tt.says) {
					t.Errorf("got %v; want kind %q that says %q", err, tt.kind, tt.says)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// Some gateways do not stream, whatever they are asked.
func TestWhole(t *testing.T) {
	s := modeltest.Serve(t,
		modeltest.Answer(200, `{"choices":[{"message":{"role":"assistant","content":"<think>hm</think>Said."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`),
		modeltest.Answer(200, `{"error":{"code":502,"message":"Provider returned error"}}`),
		modeltest.Answer(200, `{"choices":[]}`))
	c := client(t, s)
	answer, err := c.Generate(t.Context(), session())
	want := &model.Answer{Text: "Said.", Usage: core.Usage{Calls: 1, InputTokens: 5, OutputTokens: 2, Unpriced: 1}}
	if diff := cmp.Diff(want, answer); err != nil || diff != "" {
		t.Errorf("%v, answer (-want +got):\n%s", err, diff)
	}
	for _, kind := range []remote.Kind{remote.KindBusy, remote.KindMalformed} {
		var e *remote.Error
		if _, err := c.Generate(t.Context(), session()); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("got %v, want kind %q", err, kind)
		}
	}
}

// For every conversation the request is valid: the server lints it.
func TestRequestsAreValid(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Stream(modeltest.OpenAI("Said.")...))
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
	for _, d := range modeltest.OpenAI("Said.") {
		f.Add(d)
	}
	f.Add(`{"choices":[{"delta":{"content":[{"type":"text","text":"<think>"}]}}],"usage":{"prompt_tokens":1,"prompt_cache_hit_tokens":9223372036854775807}}`)
	f.Fuzz(func(t *testing.T, data string) {
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			return modeltest.Response(r, "data: "+data+"\n\ndata: "+strings.Join(modeltest.OpenAI("Said."), "\n\ndata: ")+"\n\n"), nil
		})
		c, err := openai.New(remote.Options{ID: "m", BaseURL: "http://localhost", Retry: remote.Retry{Attempts: 1}, HTTPClient: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Generate(t.Context(), session())
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

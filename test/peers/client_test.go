package peers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/model"
)

var vendors = map[string]func(remote.Options) (*remote.Client, error){"anthropic": anthropic.New, "openai": openai.New}

const summary = "The parser keeps a stack of widths now. The changelog remains to be written."

// slowly delays the pieces of an answer so long that a client takes it for silence.
const slowly = 20_000

// cases are behaviours of a vendor with the expected outcome.
var cases = []struct {
	name     string // of the case and its model
	vendor   string // empty means both
	answers  []fixture
	kind     remote.Kind // of the error; empty if there is an answer
	is       error
	requests int
	unnoted  bool                     // aimock records a request only when it begins to answer
	silence  time.Duration            // the client's limit, if not long
	want     model.Answer             // without usage
	check    func(*remote.Error) bool // of the error, if not nil
	atLeast  time.Duration            // minimum duration
}{
	{
		name:     "success",
		answers:  []fixture{{"response": map[string]any{"content": summary, "usage": map[string]int{"prompt_tokens": 1234, "completion_tokens": 20}}}},
		requests: 1, want: model.Answer{Text: summary},
	},
	{
		name:     "a long answer in small pieces",
		answers:  []fixture{says(strings.Repeat("Sätze — und noch mehr. ", 150)).with("chunkSize", 1)},
		requests: 1, want: model.Answer{Text: strings.Repeat("Sätze — und noch mehr. ", 150)},
	},
	{
		name:     "reasoning before the answer",
		answers:  []fixture{{"response": map[string]any{"content": summary, "reasoning": "Let me think."}}},
		requests: 1, want: model.Answer{Text: summary},
	},
	{
		name:     "cut off at its longest answer",
		answers:  []fixture{{"response": map[string]any{"content": summary, "finishReason": "length"}}},
		requests: 1, want: model.Answer{Text: summary, Truncated: true},
	},
	{
		name:     "429 with Retry-After, then fine",
		answers:  []fixture{refuses(429, "rate_limit_error", "", "Rate limited", "retryAfter", 1), says(summary)},
		requests: 2, want: model.Answer{Text: summary},
		atLeast: time.Second,
	},
	{
		name:    "429 with a wait beyond the deadline",
		answers: []fixture{refuses(429, "rate_limit_error", "", "Rate limited", "retryAfter", 3600)},
		kind:    remote.KindBusy, requests: 1,
		check: func(e *remote.Error) bool { return e.Status == 429 && e.Wait == time.Hour },
	},
	{
		name:    "529",
		answers: []fixture{refuses(529, "overloaded_error", "", "Overloaded")},
		kind:    remote.KindBusy, requests: 3,
		check: func(e *remote.Error) bool { return e.Status == 529 && e.Code == "overloaded_error" },
	},
	{
		name:     "500, then fine",
		answers:  []fixture{refuses(500, "api_error", "", "Internal server error"), says(summary)},
		requests: 2, want: model.Answer{Text: summary},
	},
	{
		name:    "500 for ever",
		answers: []fixture{refuses(500, "server_error", "", "The server had an error")},
		kind:    remote.KindBusy, requests: 3,
	},
	{
		name:    "401",
		answers: []fixture{refuses(401, "authentication_error", "invalid_api_key", "Incorrect API key provided: sk-abcdefghijklmnopqrstuvwx")},
		kind:    remote.KindDenied, is: core.ErrUnavailable, requests: 1,
		check: func(e *remote.Error) bool { return !strings.Contains(e.Error(), "sk-abc") },
	},
	{
		name:    "malformed JSON",
		answers: []fixture{says(summary).with("chaos", map[string]any{"malformedRate": 1})},
		kind:    remote.KindMalformed, requests: 1,
	},
	{
		name:    "the connection is closed instead of an answer",
		answers: []fixture{says(summary).with("chaos", map[string]any{"disconnectRate": 1})},
		kind:    remote.KindCut, requests: 3,
	},
	{
		name:    "a cut stream",
		answers: []fixture{says(summary).with("truncateAfterChunks", 3)},
		kind:    remote.KindCut, requests: 3,
	},
	{
		name:     "a cut stream, then fine",
		answers:  []fixture{says("Something else entirely.").with("truncateAfterChunks", 3), says(summary)},
		requests: 2, want: model.Answer{Text: summary},
	},
	{
		name:    "silence instead of an answer",
		answers: []fixture{says(summary).with("chaos", map[string]any{"latencyMs": slowly})},
		kind:    remote.KindSilent, requests: 3, silence: 300 * time.Millisecond, unnoted: true,
	},
	{
		name:    "silence within the answer",
		answers: []fixture{says(summary).with("latency", slowly)},
		kind:    remote.KindSilent, requests: 3, silence: 300 * time.Millisecond,
	},
	{
		name: "too long", vendor: "openai",
		answers: []fixture{refuses(400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.")},
		kind:    remote.KindTooLong, is: model.ErrTooLong, requests: 1,
	},
	{
		name: "too long", vendor: "anthropic",
		answers: []fixture{refuses(400, "invalid_request_error", "", "prompt is too long: 210000 tokens > 200000 maximum")},
		kind:    remote.KindTooLong, is: model.ErrTooLong, requests: 1,
	},
	{
		name:    "an empty summary",
		answers: []fixture{says("")},
		kind:    remote.KindNoText, is: model.ErrNoText, requests: 1,
	},
	{
		name:    "tool calls instead of text",
		answers: []fixture{{"response": map[string]any{"toolCalls": []any{map[string]any{"name": "read_file", "arguments": map[string]any{"path": "a.go"}}}}}},
		kind:    remote.KindNoText, is: model.ErrNoText, requests: 1,
		check: func(e *remote.Error) bool { return strings.Contains(e.Error(), "read_file") },
	},
	{
		name:    "an answer that does not end",
		answers: []fixture{says(strings.Repeat("All work and no play. ", 20_000)).with("chunkSize", 1<<12).with("latency", 5)},
		kind:    remote.KindTooLarge, requests: 1,
	},
}

// modelOf returns the name of the model of a case.
func modelOf(vendor, name string) string {
	return vendor + "-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
}

// prompt has a tool call, so that it can be invalid.
var prompt = &model.Prompt{
	System: "You write summaries.",
	Messages: []core.Message{
		{Role: core.RoleUser, Parts: []core.Part{core.Text("Fix the parser.")}},
		{Role: core.RoleAssistant, Parts: []core.Part{core.Text("I look."), core.ToolCall{ID: "call_1", Name: "read_file", Args: `{"path":"a.go"}`}}},
		{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "call_1", Content: []core.Part{core.Text("package a")}}}},
		{Role: core.RoleUser, Parts: []core.Part{core.Text("Summarize.")}},
	},
	MaxOutput: 1000,
}

func TestClients(t *testing.T) {
	fixtures := map[string][]fixture{}
	for vendor := range vendors {
		for _, c := range cases {
			if c.vendor == "" || c.vendor == vendor {
				fixtures[modelOf(vendor, c.name)] = c.answers
			}
		}
	}
	server := start(t, fixtures)
	t.Run("group", func(t *testing.T) {
		for vendor, open := range vendors {
			for _, c := range cases {
				if c.vendor != "" && c.vendor != vendor {
					continue
				}
				t.Run(vendor+"/"+c.name, func(t *testing.T) {
					t.Parallel()
					name := modelOf(vendor, c.name)
					client, err := open(remote.Options{
						ID: name, BaseURL: server.tap.url + "/v1", MaxOutput: 8000, Silence: c.silence,
						Retry: remote.Retry{Attempts: 3, First: 5 * time.Millisecond},
					})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					began := time.Now()
					answer, err := client.Generate(ctx, prompt)
					took := time.Since(began)
					if n := server.tap.count(t, name); n != c.requests {
						t.Errorf("got %d requests, want %d", n, c.requests)
					}
					if ctx.Err() != nil || took < c.atLeast {
						t.Errorf("took %v", took)
					}
					if c.kind == "" {
						if err != nil {
							t.Fatal(err)
						}
						if answer.Text != c.want.Text || answer.Truncated != c.want.Truncated {
							t.Errorf("got %+v, want %+v", answer, c.want)
						}
						return
					}
					var e *remote.Error
					if !errors.As(err, &e) || e.Kind != c.kind || c.is != nil && !errors.Is(err, c.is) {
						t.Fatalf("got %v, want kind %q, %v", err, c.kind, c.is)
					}
					if c.check != nil && !c.check(e) {
						t.Errorf("got %+v", e)
					}
				})
			}
		}
	})
	noted := server.journal(t)
	for vendor := range vendors {
		for _, c := range cases {
			if n := noted[modelOf(vendor, c.name)]; (c.vendor == "" || c.vendor == vendor) && n != c.requests && !c.unnoted {
				t.Errorf("%s/%s: got %d requests in the server's journal, want %d", vendor, c.name, n, c.requests)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	server := start(t, map[string][]fixture{"m": {{"response": map[string]any{"content": summary, "usage": map[string]int{
		"prompt_tokens": 1234, "completion_tokens": 20, "input_tokens": 1234, "output_tokens": 20,
	}}}}})
	for vendor, open := range vendors {
		client, err := open(remote.Options{ID: "m", BaseURL: server.tap.url})
		if vendor == "openai" {
			client, err = open(remote.Options{ID: "m", BaseURL: server.tap.url + "/v1/"})
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Generate(t.Context(), prompt)
		if err != nil {
			t.Fatal(err)
		}
		if want := (core.Usage{Calls: 1, InputTokens: 1234, OutputTokens: 20, Unpriced: 1}); answer.Usage != want {
			t.Errorf("%s: got %+v, want %+v", vendor, answer.Usage, want)
		}
	}
}

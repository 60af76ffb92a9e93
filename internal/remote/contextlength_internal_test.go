package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// more are the errors recognised here and not by Roo-Code, by a text in the error.
var more = map[string]string{
	`413`:                        "the status says that the request is too large, whatever the text",
	`"status":0,"code":400`:      "either member may hold the status",
	`"message":"Bad Request"`:    "the nested message counts too",
	`"error":"context length"`:   "an error that is only a text",
	`400 context length`:         "the status is in the text",
	"maximum\u2028tokens":        "a line separator is a space",
	`context_length_exceeded`:    "the code of OpenAI, wherever it is",
	`prompt is too long`:         "Anthropic's text, however often it is wrapped",
	`Input is too long`:          "the text of Amazon Bedrock",
	`exceeds the maximum number`: "the text of Google Gemini",
}

// TestRecognisesWhatRooDoes holds that nothing is missed that Roo-Code recognises.
func TestRecognisesWhatRooDoes(t *testing.T) {
	used := map[string]bool{}
	type input struct {
		Error struct {
			Kind     string          `json:"kind"`
			Value    json.RawMessage `json:"value"`
			Message  string          `json:"message"`
			Name     string          `json:"name"`
			Props    json.RawMessage `json:"props"`
			Property string          `json:"property"`
			Status   int             `json:"status"`
			Body     json.RawMessage `json:"body"`
		} `json:"error"`
	}
	golden.Run(t, "checkContextWindowExceededError", func(in input) (any, error) {
		e := in.Error
		var got, want bool
		switch e.Kind {
		case "Error":
			got = IsContextLength(errors.New(e.Message))
		case "APIError.generate":
			got = isContextLength(e.Status, e.Body)
			want = e.Status == 400 && strings.Contains(string(e.Body), "maximum context")
		default:
			var head struct {
				Status json.RawMessage `json:"status"`
			}
			_ = json.Unmarshal(e.Value, &head) // some are not objects
			status := 0
			_ = json.Unmarshal(head.Status, &status) // and some statuses no numbers
			got = isContextLength(status, e.Value)
			want = roo.ContextWindowExceeded(e.Value, e.Kind == "APIError")
		}
		text := fmt.Sprintf("%d %s %s %s", e.Status, e.Value, e.Body, e.Message)
		switch {
		case want && !got && e.Kind != "APIError": // of which only its class speaks, not its content
			return nil, fmt.Errorf("not recognised: %s", text)
		case got && !want:
			reason := ""
			for part := range more {
				if strings.Contains(text, part) {
					reason, used[part] = part, true
				}
			}
			if reason == "" {
				return nil, fmt.Errorf("recognised without a reason: %s", text)
			}
		}
		return want, nil
	}, nil)
	for part := range more {
		if !used[part] {
			t.Errorf("no vector has %q", part)
		}
	}
}

func TestIsContextLengthResponse(t *testing.T) {
	for _, tt := range []struct {
		vendor string
		status int
		body   string
		want   bool
	}{
		{"OpenAI", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true},
		{"OpenAI Responses", 400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}`, true},
		{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213541 tokens > 200000 maximum"}}`, true},
		{"Anthropic", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, true},
		{"Anthropic, answer too long", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000\"}}", true},
		{"Bedrock", 400, `{"message":"Input is too long for requested model."}`, true},
		{"Gemini", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, true},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`, true},
		{"Ollama", 500, `{"error":"prompt too long; exceeded max context length by 5 tokens"}`, true},
		{"OpenRouter quoting", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}"}}}`, true},
		{"nginx", 413, `<html><h1>413 Request Entity Too Large</h1></html>`, true},
		{"rate limit", 429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. context length","code":"rate_limit_exceeded"}}`, false},
		{"key", 401, `{"error":{"message":"invalid x-api-key"}}`, false},
		{"overload", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, false},
		{"other 400", 400, `{"error":{"message":"messages.3: tool_result without tool_use"}}`, false},
		{"empty", 400, ``, false},
		{"deep", 400, deep(10000), false},
	} {
		if got := isContextLength(tt.status, []byte(tt.body)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.vendor, got, tt.want)
		}
	}
}

func deep(n int) string {
	s := make([]byte, 0, 2*n)
	for range n {
		s = append(s, '[')
	}
	for range n {
		s = append(s, ']')
	}
	return string(s)
}

// An sdkError has the shape of the errors of OpenAI's and Anthropic's SDKs.
type sdkError struct {
	StatusCode int
	raw        string
}

func (e *sdkError) Error() string   { return fmt.Sprintf("POST /v1: %d", e.StatusCode) }
func (e *sdkError) RawJSON() string { return e.raw }

func TestIsContextLength(t *testing.T) {
	overflown := &sdkError{400, `{"message":"too long","code":"context_length_exceeded"}`}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{overflown, true},
		{fmt.Errorf("turn 3: %w", overflown), true},
		{&sdkError{413, ""}, true},
		{&sdkError{429, `{"message":"maximum context length","code":"rate_limit_exceeded"}`}, false},
		{errors.New("400 Bad Request: prompt is too long: 5 tokens > 4 maximum"), true},
		{errors.New("400 context length"), true},
		{errors.New("Error: 400 context length exceeded"), true},
		{errors.New(`{"message":["context length exceeded"]}`), true},
		{&sdkError{400, `{"error":{"message":["too many tokens"]}}`}, true},
		{errors.New("429 too many tokens per minute: context length"), false},
		{errors.New("the context length of a line is set in the settings"), false},
		{errors.New("connection reset by peer"), false},
	} {
		if got := IsContextLength(tt.err); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}

func FuzzIsContextLength(f *testing.F) {
	f.Add(400, []byte(`{"error":{"message":"x","code":"context_length_exceeded"}}`))
	f.Fuzz(func(_ *testing.T, status int, body []byte) { isContextLength(status, body) })
}

package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"github.com/condensehq/condense/internal/testkit/apilint"
)

// A vendor is an API and the SDK for it.
type vendor struct {
	name     string // of the format
	path     string // of the endpoint
	required map[string]string
	lint     func([]byte) []apilint.Fault
	answer   string // of the API
	refusal  string // of the API, with a place for the reason
	// call reads a request into the SDK's own types, sends it, and returns the text of
	// the answer and the tokens it cost.
	call func(ctx context.Context, url string, request []byte) (text string, tokens int64, err error)
	// respell writes an object of a request like the SDK, where the API has two spellings.
	respell func(map[string]any)
}

const said, cost = "I see.", 12

var vendors = []*vendor{
	{
		name:     "anthropic",
		path:     "/v1/messages",
		required: map[string]string{"model": `"claude-sonnet-4-5"`, "max_tokens": "1024"},
		lint:     apilint.Anthropic,
		answer: fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5",
			"content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,
			"usage":{"input_tokens":9,"output_tokens":%d}}`, said, cost),
		refusal: `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`,
		call: func(ctx context.Context, url string, request []byte) (string, int64, error) {
			var params anthropic.MessageNewParams
			if err := json.Unmarshal(request, &params); err != nil {
				return "", 0, err
			}
			client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0))
			m, err := client.Messages.New(ctx, params)
			if err != nil {
				return "", 0, err
			}
			if len(m.Content) != 1 {
				return "", 0, fmt.Errorf("the SDK read %d blocks", len(m.Content))
			}
			return m.Content[0].Text, m.Usage.OutputTokens, nil
		},
		// A string is shorthand for one block of text.
		respell: func(o map[string]any) {
			key := "content"
			if _, ok := o["messages"]; ok {
				key = "system"
			} else if _, ok := o["role"]; !ok && o["type"] != "tool_result" {
				return // such as the arguments of a call
			}
			if s, ok := o[key].(string); ok {
				o[key] = []any{map[string]any{"type": "text", "text": s}}
			}
		},
	},
	{
		name:     "openai",
		path:     "/chat/completions",
		required: map[string]string{"model": `"gpt-5"`},
		lint:     apilint.OpenAI,
		answer: fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1763000000,"model":"gpt-5",
			"choices":[{"index":0,"message":{"role":"assistant","content":%q,"refusal":null},"logprobs":null,"finish_reason":"stop"}],
			"usage":{"prompt_tokens":9,"completion_tokens":%d,"total_tokens":21}}`, said, cost),
		refusal: `{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":null}}`,
		call: func(ctx context.Context, url string, request []byte) (string, int64, error) {
			var params openai.ChatCompletionNewParams
			if err := json.Unmarshal(request, &params); err != nil {
				return "", 0, err
			}
			client := openai.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
			c, err := client.Chat.Completions.New(ctx, params)
			if refused := (*openai.Error)(nil); errors.As(err, &refused) {
				return "", 0, fmt.Errorf("%w: %s", err, refused.Message)
			}
			if err != nil {
				return "", 0, err
			}
			if len(c.Choices) != 1 {
				return "", 0, fmt.Errorf("the SDK read %d choices", len(c.Choices))
			}
			return c.Choices[0].Message.Content, c.Usage.CompletionTokens, nil
		},
		// An assistant that only calls tools has no content, which may be null or absent.
		respell: func(o map[string]any) {
			if content, ok := o["content"]; ok && content == nil && o["role"] == "assistant" {
				delete(o, "content")
			}
		},
	},
}

// send sends the request with the SDK to a server that rejects what the vendor would
// reject, and returns what arrived there.
func (v *vendor) send(t *testing.T, request []byte) (sent []byte, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status, body := v.serve(r)
		if status == http.StatusOK {
			sent = body
			body = []byte(v.answer)
		}
		w.WriteHeader(status)
		if _, err := w.Write(body); err != nil {
			t.Errorf("the SDK hung up: %v", err)
		}
	}))
	defer server.Close()
	text, tokens, err := v.call(t.Context(), server.URL, request)
	if err == nil && (text != said || tokens != cost) {
		err = fmt.Errorf("the SDK read %q, %d tokens; want %q, %d", text, tokens, said, cost)
	}
	return sent, err
}

// serve returns the body of a valid request, or the status and answer for an invalid one.
func (v *vendor) serve(r *http.Request) (status int, body []byte) {
	if r.Method != http.MethodPost || r.URL.Path != v.path {
		return http.StatusNotFound, fmt.Appendf(nil, v.refusal, r.Method+" "+r.URL.Path)
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		var faults []error
		for _, f := range v.lint(body) {
			faults = append(faults, errors.New(f.String()))
		}
		err = errors.Join(faults...)
	}
	if err != nil {
		return http.StatusBadRequest, fmt.Appendf(nil, v.refusal, err.Error())
	}
	return http.StatusOK, body
}

// plain returns the values of a request, in one spelling.
func (v *vendor) plain(t *testing.T, request []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(request, &value); err != nil {
		t.Fatalf("%s: %v", v.name, err)
	}
	v.respellAll(value)
	return value
}

func (v *vendor) respellAll(value any) {
	switch value := value.(type) {
	case []any:
		for _, e := range value {
			v.respellAll(e)
		}
	case map[string]any:
		v.respell(value)
		for _, e := range value {
			v.respellAll(e)
		}
	}
}

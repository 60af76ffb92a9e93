package remote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReported(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   Error // Kind, Code, Message, Param
	}{
		{"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, Error{Kind: KindBusy, Code: "overloaded_error", Message: "Overloaded"}},
		{"OpenAI", 400, `{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`, Error{Kind: KindRefused, Code: "unsupported_parameter", Message: "Unsupported parameter", Param: "max_tokens"}},
		{"OpenAI without a code", 400, `{"error":{"message":"Bad","type":"invalid_request_error","param":null,"code":null}}`, Error{Kind: KindRefused, Code: "invalid_request_error", Message: "Bad"}},
		{"OpenRouter, in a stream", 0, `{"id":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[]}`, Error{Kind: KindBusy, Message: "Provider disconnected"}},
		{"Ollama", 404, `{"error":"model \"x\" not found, try pulling it first"}`, Error{Kind: KindDenied, Message: `model "x" not found, try pulling it first`}},
		{"FastAPI", 422, `{"detail":[{"msg":"field required"}]}`, Error{Kind: KindRefused, Message: `[{"msg":"field required"}]`}},
		{"LiteLLM", 429, `{"message":"Rate limited"}`, Error{Kind: KindBusy, Message: "Rate limited"}},
		{"llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`, Error{Kind: KindTooLong, Code: "exceed_context_size_error", Message: "the request exceeds the available context size, try increasing it"}},
		{"in a stream, unknown", 0, `{"error":{"message":"something"}}`, Error{Kind: KindCut, Message: "something"}},
		{"in a stream, denied", 0, `{"error":{"type":"permission_error","message":"no"}}`, Error{Kind: KindDenied, Code: "permission_error", Message: "no"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := Reported(tt.status, []byte(tt.body))
			if e == nil {
				t.Fatal("got none")
			}
			if e.Kind != tt.want.Kind || e.Code != tt.want.Code || e.Message != tt.want.Message || e.Param != tt.want.Param {
				t.Errorf("got %+v, want %+v", *e, tt.want)
			}
		})
	}
	for _, body := range []string{"", "null", "[]", "oops", "{}", `{"id":"x"}`, `{"error":null}`} {
		if e := Reported(500, []byte(body)); e != nil {
			t.Errorf("%q: got %v, want none", body, e)
		}
	}
}

func TestTidy(t *testing.T) {
	got := tidy("a\n\tb\x00c \xff " + strings.Repeat("ü", 1000))
	if !strings.HasPrefix(got, "a b c \uFFFD ü") || utf8.RuneCountInString(got) != longestMessage+1 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

// Whatever a server says, the error is one short line that can be shown.
func FuzzReported(f *testing.F) {
	for _, s := range []string{`{"error":{"type":"x","code":7,"message":"y"}}`, `{"error":"x"}`, `{"detail":{}}`, "<html>", `{"error":{"message":{}}}`} {
		f.Add(400, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := refusal(status, nil, []byte(body))
		if _, ok := kinds[e.Kind]; !ok {
			t.Errorf("got the kind %q", e.Kind)
		}
		e.Message, e.Code = tidy(e.Message), tidy(e.Code)
		if text := e.Error(); strings.ContainsAny(text, "\r\n\x00") || len(text) > 10_000 || !utf8.ValidString(text) {
			t.Errorf("got %q", text)
		}
	})
}

package wire_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// answers are what vendors send, and what is to be known of it.
var answers = []struct {
	name string
	api  wire.API
	body string
	want wire.Answer
}{
	{"messages", wire.Messages, `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":20},"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{"usage":{"input_tokens":7},"type":"message_stop"}}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"error\":\"é😀 {\\\"type\\\":\\\"error\\\"}"}}

event: some_new_event
data: {"type":"some_new_event","x":[[[[[[[[[[{"type":"error"}]]]]]]]]]],"usage":null}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":500,"output_tokens":42}}

event: message_stop
data: {"type":"message_stop"}

`, wire.Answer{ID: "msg_1", Model: "claude-x", Stop: "tool_use", Input: 123, CacheRead: 100, CacheWrite: 20, Output: 42, Complete: true}},
	{
		"messages without terminator", wire.Messages, "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"usage\":{\"input_tokens\":3}}}\n\n" +
			"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\ndata: {\"type\":\"mess",
		wire.Answer{ID: "msg_1", Stop: "end_turn", Input: 3, Output: 4},
	},
	{
		"messages, error after 200", wire.Messages, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		wire.Answer{ID: "msg_1", ErrorType: "overloaded_error", ErrorText: "Overloaded"},
	},
	{
		"messages, usage at the end", wire.Messages, "data: {\"message\":{\"usage\":{\"input_tokens\":0}},\"type\":\"message_start\"}\n\ndata:{\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":1},\"type\":\"message_delta\"}\n\ndata: {\"type\":\ndata: \"message_stop\"}\n\n",
		wire.Answer{Input: 10, CacheRead: 1, Complete: true},
	},
	{
		"messages, whole", wire.Messages, `{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":4,"output_tokens":8}}`,
		wire.Answer{ID: "msg_1", Model: "m", Stop: "end_turn", Input: 7, CacheRead: 2, CacheWrite: 4, Output: 8, Complete: true},
	},
	{"messages, counted", wire.Messages, `{"input_tokens":70}`, wire.Answer{Input: 70, Complete: true}},
	{"messages, cut", wire.Messages, `{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":"x`, wire.Answer{ID: "msg_1", Model: "m"}},
	{
		"messages, overflow", wire.Messages, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213541 tokens > 200000 maximum"},"request_id":"r"}`,
		wire.Answer{ErrorType: "invalid_request_error", ErrorText: "prompt is too long: 213541 tokens > 200000 maximum", Overflow: true},
	},
	{"messages, error in words of a gateway", wire.Messages, `{"error":"no such model"}`, wire.Answer{ErrorType: "error", ErrorText: "no such model"}},
	{"chat", wire.Chat, `data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

: comment

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"[DONE] x"},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":30}}}

data: [DONE]

`, wire.Answer{ID: "c1", Model: "gpt-x", Stop: "stop", Input: 100, CacheRead: 64, CacheWrite: 30, Output: 5, Complete: true}},
	{"chat, last empty line missing", wire.Chat, "data: {\"id\":\"c1\",\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n", wire.Answer{ID: "c1", Stop: "stop", Complete: true}},
	{"chat without terminator", wire.Chat, "data: {\"id\":\"c1\",\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n", wire.Answer{ID: "c1", Stop: "stop"}},
	{
		"chat, whole", wire.Chat, `{"id":"c1","model":"deepseek","choices":[{"message":{"content":"x"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":8}}`,
		wire.Answer{ID: "c1", Model: "deepseek", Stop: "length", Input: 9, CacheRead: 8, Output: 1, Complete: true},
	},
	{
		"chat, overflow", wire.Chat, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		wire.Answer{ErrorType: "context_length_exceeded", ErrorText: "This model's maximum context length is 8192 tokens.", Overflow: true},
	},
	{
		"chat, rate limit", wire.Chat, `{"error":{"message":"Request too large on tokens per min: Limit 30000, Requested 40000. context length","type":"tokens","code":"rate_limit_exceeded"}}`,
		wire.Answer{ErrorType: "rate_limit_exceeded", ErrorText: "Request too large on tokens per min: Limit 30000, Requested 40000. context length"},
	},
	{"chat, number as code", wire.Chat, `{"error":{"message":"x","code":500}}`, wire.Answer{ErrorType: "error", ErrorText: "x"}},
	{"responses", wire.Responses, `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"gpt-x","error":null,"usage":null,"incomplete_details":null}}

event: response.output_item.done
data: {"type":"response.output_item.done","item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{}"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"content":[{"text":"x"}]}],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":80,"cache_write_tokens":7},"output_tokens":6}}}

`, wire.Answer{ID: "resp_1", Model: "gpt-x", Stop: "completed", Input: 90, CacheRead: 80, CacheWrite: 7, Output: 6, Complete: true}},
	{
		"responses, incomplete", wire.Responses, `{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error":null,"usage":{"input_tokens":1}}`,
		wire.Answer{ID: "resp_1", Stop: "max_output_tokens", Input: 1, Complete: true},
	},
	{
		"responses, failed after 200", wire.Responses, "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"resp_1\",\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}}\n\n",
		wire.Answer{ID: "resp_1", Stop: "failed", ErrorType: "context_length_exceeded", ErrorText: "Your input exceeds the context window of this model.", Overflow: true},
	},
	{"responses, error event", wire.Responses, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The server had an error\"}\n\n", wire.Answer{ErrorType: "server_error", ErrorText: "The server had an error"}},
	{"no JSON", wire.Messages, "<html>502</html>", wire.Answer{}},
	{"nothing", wire.Messages, "", wire.Answer{}},
}

// watch reads a body in pieces of n bytes; 0 is all at once.
func watch(api wire.API, body []byte, n int) wire.Answer {
	w := wire.Watch(api)
	for n > 0 && len(body) > n {
		_, _ = w.Write(body[:n])
		body = body[n:]
	}
	_, _ = w.Write(body)
	w.Answer() // asking twice changes nothing
	return w.Answer()
}

// TestWatch reads answers, in pieces of any size, with lines of any kind.
func TestWatch(t *testing.T) {
	for _, tt := range answers {
		crlf := strings.ReplaceAll(tt.body, "\n", "\r\n")
		for name, body := range map[string][]byte{
			"": []byte(tt.body), "CRLF": []byte(crlf), "CR": []byte(strings.ReplaceAll(tt.body, "\n", "\r")), "mark": []byte("\xef\xbb\xbf" + tt.body),
		} {
			for _, n := range []int{0, 1, 2, 3, 7, 64} {
				if got := watch(tt.api, body, n); got != tt.want {
					t.Errorf("%s %s in pieces of %d\n got %+v\nwant %+v", tt.name, name, n, got, tt.want)
				}
			}
		}
	}
}

// TestWatchVendor: what the scripted vendor sends says the same, streamed or not.
func TestWatchVendor(t *testing.T) {
	for api, path := range map[wire.API]string{wire.Messages: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses"} {
		var seen []wire.Answer
		for _, stream := range []string{"true", "false"} {
			vendor := upstream.New(upstream.Options{})
			body := `{"stream":` + stream + `,"stream_options":{"include_usage":true},"max_tokens":5000,` + request(api, `{"role":"user","content":"hello"}`)[1:]
			r := httptest.NewRecorder()
			vendor.ServeHTTP(r, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
			a := watch(api, r.Body.Bytes(), 5)
			u := vendor.Records()[0].Usage
			if !a.Complete || a.ID == "" || a.Input != u.Prompt || a.Output != u.Output || a.CacheRead != u.CacheRead || a.CacheWrite != u.CacheWrite && api == wire.Messages {
				t.Errorf("%s: got %+v, the vendor counted %+v", api, a, u)
			}
			a.ID = ""
			seen = append(seen, a)
		}
		if seen[0] != seen[1] {
			t.Errorf("%s: streamed %+v, whole %+v", api, seen[0], seen[1])
		}
	}
}

// TestWatchMemory: a long answer is not kept.
func TestWatchMemory(t *testing.T) {
	w := wire.Watch(wire.Messages)
	_, _ = w.Write([]byte(`data: {"type":"content_block_start","content_block":{"type":"compaction","content":"`))
	piece := bytes.Repeat([]byte("x "), 1<<15)
	if n := testing.AllocsPerRun(100, func() { _, _ = w.Write(piece) }); n > 0 {
		t.Errorf("%g allocations for each piece of an event", n)
	}
	_, _ = w.Write([]byte("\"}}\n\ndata: {\"type\":\"error\",\"error\":{\"message\":\""))
	for range 100 {
		_, _ = w.Write(piece)
	}
	_, _ = w.Write([]byte("\"}}\n\n"))
	if a := w.Answer(); len(a.ErrorText) > 4<<10 || a.ErrorType != "error" {
		t.Errorf("%d bytes of an error text, type %q", len(a.ErrorText), a.ErrorType)
	}
}

// FuzzWatch: how a stream is cut makes no difference.
func FuzzWatch(f *testing.F) {
	for i, a := range answers {
		f.Add(uint8(i), uint16(i*13), uint16(i*7), []byte(a.body))
	}
	f.Fuzz(func(t *testing.T, which uint8, i, j uint16, body []byte) {
		api := []wire.API{wire.Messages, wire.Chat, wire.Responses}[int(which)%3]
		want := watch(api, body, 0)
		if got := watch(api, body, 1); got != want {
			t.Fatalf("bytes: got %+v, want %+v", got, want)
		}
		a, b := min(int(i), len(body)), min(int(j), len(body))
		w := wire.Watch(api)
		for _, p := range [][]byte{body[:min(a, b)], body[min(a, b):max(a, b)], body[max(a, b):]} {
			_, _ = w.Write(p)
		}
		if got := w.Answer(); got != want {
			t.Fatalf("cut at %d and %d: got %+v, want %+v", a, b, got, want)
		}
	})
}

func TestRefusal(t *testing.T) {
	for _, api := range []wire.API{wire.Messages, wire.Chat, wire.Responses} {
		for status, want := range map[int]string{400: "invalid_request_error", 502: "error", 413: "request_too_large"} {
			a := watch(api, wire.Refusal(api, status, `no "x"`), 0)
			if a.ErrorText != `no "x"` || !strings.Contains(a.ErrorType, want) || a.Complete {
				t.Errorf("%s %d: %+v", api, status, a)
			}
		}
	}
}

func BenchmarkWatch(b *testing.B) {
	event := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words of an answer\"}}\n\n")
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	w := wire.Watch(wire.Messages)
	for b.Loop() {
		_, _ = w.Write(event)
	}
}

// TestAbsurdUsage: a vendor's numbers can be added up and multiplied, whatever they are.
func TestAbsurdUsage(t *testing.T) {
	w := wire.Watch(wire.Messages)
	_, _ = w.Write([]byte(`{"type":"message","usage":{"input_tokens":99999999999999999999,"cache_read_input_tokens":9223372036854775807,"output_tokens":-5}}`))
	if a := w.Answer(); a.Input <= 0 || a.Input > 1<<40 || a.CacheRead > a.Input || a.Output != 0 {
		t.Errorf("got %+v", a)
	}
}

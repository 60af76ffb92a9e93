package upstream_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

type object = map[string]any

// played returns the body of a request after four calls.
func played(t *testing.T, api upstream.API, thinking string) []byte {
	t.Helper()
	_, s := serve(t, upstream.Options{Script: upstream.Loop(4, 400, nil)})
	c := &upstream.Client{URL: s.URL, API: api, Model: models[api], Thinking: thinking, HTTP: s.Client()}
	if thinking == "enabled" {
		c.Model = older
	}
	if _, err := c.Say(t.Context(), "Play."); err != nil {
		t.Fatal(err)
	}
	return c.Body
}

var paths = map[upstream.API]string{upstream.Messages: "/v1/messages", upstream.Chat: "/v1/chat/completions", upstream.Responses: "/v1/responses"}

// post sends a body to a new vendor and returns what it recorded and answered.
func post(t *testing.T, v *upstream.Vendor, path string, body []byte, header ...string) (upstream.Record, string) {
	t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("X-Api-Key", "dummy")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	v.ServeHTTP(w, req)
	all := v.Records()
	answer, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all[len(all)-1], string(answer)
}

// edit is a change of a request's JSON.
type edit struct {
	name   string
	change func(o object)
	rule   string // "" is accepted
	text   string // part of the refusal
}

func try(t *testing.T, api upstream.API, body []byte, edits []edit) {
	t.Helper()
	for _, e := range edits {
		t.Run(fmt.Sprintf("%s/%s", api, e.name), func(t *testing.T) {
			var o object
			if err := json.Unmarshal(body, &o); err != nil {
				t.Fatal(err)
			}
			e.change(o)
			changed, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			r, answer := post(t, upstream.New(upstream.Options{}), paths[api], changed)
			if r.Rule != e.rule || !strings.Contains(r.Error, e.text) {
				t.Errorf("rule %q, want %q: %s", r.Rule, e.rule, answer)
			}
			if (r.Status == 200) != (e.rule == "") {
				t.Errorf("status %d", r.Status)
			}
		})
	}
}

// at follows a path of keys and indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(object)[p]
		case int:
			all := list(v)
			v = all[(p+len(all))%len(all)]
		}
	}
	return v
}

// list returns an array; nil if v is none.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func obj(v any, path ...any) object { return at(v, path...).(object) }

// cut removes element i of a list.
func cut(o object, key string, i int) {
	all := list(o[key])
	o[key] = append(append([]any(nil), all[:i]...), all[i+1:]...)
}

// put inserts values before element i of a list.
func put(o object, key string, i int, values ...any) {
	all := list(o[key])
	o[key] = append(append(append([]any(nil), all[:i]...), values...), all[i:]...)
}

func textBlock(s string) object { return object{"type": "text", "text": s} }

func message(role, s string) object { return object{"role": role, "content": s} }

func marker(o object, ttl ...string) object {
	c := object{"type": "ephemeral"}
	if len(ttl) > 0 {
		c["ttl"] = ttl[0]
	}
	o["cache_control"] = c
	return o
}

// strip removes the thinking of messages from..to.
func strip(o object, from, to int) {
	for i, m := range list(o["messages"]) {
		m := m.(object)
		if content, ok := m["content"].([]any); ok && m["role"] == "assistant" && i >= from && i <= to {
			var kept []any
			for _, b := range content {
				if b.(object)["type"] != "thinking" {
					kept = append(kept, b)
				}
			}
			m["content"] = kept
		}
	}
}

// serverTool puts a search that the vendor ran before the first call.
func serverTool(o object) {
	put(obj(o, "messages", 1), "content", 1,
		object{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": object{"query": "x"}},
		object{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []any{}})
}

// TestMessages changes a request after four calls: user, then assistant (thinking, call) and user (result) four times.
func TestMessages(t *testing.T) {
	body := played(t, upstream.Messages, "adaptive")
	content := func(o object, i int) object { return obj(o, "messages", i) }
	try(t, upstream.Messages, body, []edit{
		{"nothing", func(object) {}, "", ""},
		{"other layout, other markers", func(o object) {
			delete(obj(o, "system", 0), "cache_control")
			marker(obj(o, "messages", 2, "content", 0))
		}, "", ""},
		{"a string is one block", func(o object) { content(o, 0)["content"] = "Play." }, "", ""},
		{"effort, tool choice, metadata", func(o object) {
			o["tool_choice"], o["metadata"], o["output_config"] = object{"type": "auto"}, object{"user_id": "u"}, object{"effort": "low"}
		}, "", ""},
		{"no model", func(o object) { delete(o, "model") }, "field", "model: Field required"},
		{"no max_tokens", func(o object) { delete(o, "max_tokens") }, "field", "max_tokens: Field required"},
		{"a field without its beta", func(o object) { o["context_management"] = object{"edits": []any{}} }, "beta", "context_management: Extra inputs are not permitted"},
		{"no messages", func(o object) { o["messages"] = []any{} }, "messages", "at least one message"},

		{"no result", func(o object) { content(o, 2)["content"] = "What next?" }, "pairs", "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_"},
		{"no call", func(o object) { content(o, 1)["content"] = "Hello." }, "pairs", "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks"},
		{"a text before the result", func(o object) { put(content(o, 2), "content", 0, textBlock("Here:")) }, "pairs", "ids were found without"},
		{"a text after the result", func(o object) { strip(o, 0, 9); put(content(o, 2), "content", 1, textBlock("Here.")) }, "", ""},
		{"the result in two messages", func(o object) {
			put(o, "messages", 9, message("user", "Go on."))
		}, "", ""},
		{"a message between", func(o object) { strip(o, 0, 9); put(o, "messages", 2, message("assistant", "Wait.")) }, "", ""}, // merged: still before the result
		{"two results", func(o object) { put(content(o, 2), "content", 1, at(o, "messages", 2, "content", 0)) }, "pairs", "multiple `tool_result` blocks"},
		{"the same call twice", func(o object) {
			strip(o, 0, 9)
			put(o, "messages", 3, at(o, "messages", 1), at(o, "messages", 2))
		}, "ids", "`tool_use` ids must be unique"},
		{"input is no object", func(o object) { obj(o, "messages", 1, "content", -1)["input"] = "ls" }, "field", "input"},

		{"a server tool", func(o object) { serverTool(o); strip(o, 0, 9) }, "", ""},
		{"a server tool without result", func(o object) { serverTool(o); strip(o, 0, 9); cut(content(o, 1), "content", 1) }, "pairs", "without a corresponding result"},
		{"a server tool without call", func(o object) { serverTool(o); strip(o, 0, 9); cut(content(o, 1), "content", 0) }, "pairs", "unexpected `tool_use_id` found in `web_search_tool_result`"},

		{"system first", func(o object) { put(o, "messages", 0, message("system", "Be brief.")) }, "role", "`system` messages must follow"},
		{"system between call and result", func(o object) { put(o, "messages", 2, message("system", "Be brief.")) }, "role", "`system` messages must follow"},
		{"system between users", func(o object) { put(o, "messages", 1, message("system", "Be brief."), message("user", "Play.")) }, "role", "`system` messages must follow"},
		{"two of system", func(o object) { put(o, "messages", 9, message("system", "Be"), message("system", "brief.")) }, "role", "`system` messages must follow"},
		{"system at the end", func(o object) { put(o, "messages", 9, message("system", "Be brief.")) }, "", ""},
		{"system after the first", func(o object) { strip(o, 0, 9); put(o, "messages", 1, message("system", "Be brief.")) }, "", ""},
		{"assistant first", func(o object) { put(o, "messages", 0, message("assistant", "Hello.")) }, "role", `first message must use the "user" role`},
		{"assistant last", func(o object) { put(o, "messages", 9, message("assistant", "So")) }, "role", "does not support assistant message prefill"},
		{"assistant last, older model", func(o object) {
			delete(o, "thinking")
			o["model"] = older
			put(o, "messages", 9, message("assistant", "So"))
		}, "", ""},
		{"a role of others", func(o object) { put(o, "messages", 1, message("tool", "x")) }, "role", "Unexpected role"},
		{"a call of the user", func(o object) { content(o, 1)["role"] = "user" }, "role", "can only be in `assistant` messages"},

		{"empty text", func(o object) { obj(o, "messages", 0, "content", 0)["text"] = "" }, "text", "messages: text content blocks must be non-empty"},
		{"white text", func(o object) { obj(o, "messages", 0, "content", 0)["text"] = " \n" }, "text", "non-whitespace"},
		{"empty text in a result", func(o object) { obj(o, "messages", 8, "content", 0)["content"] = []any{textBlock("")} }, "text", "non-empty"},
		{"empty result", func(o object) { obj(o, "messages", 8, "content", 0)["content"] = "" }, "", ""},
		{"another effort, without text", func(o object) {
			put(o, "messages", 1, object{"role": "system", "content": []any{}, "output_config": object{"effort": "medium"}})
		}, "", ""},
		{"empty message", func(o object) { content(o, 0)["content"] = []any{} }, "text", "all messages must have non-empty content"},

		{"four markers", func(o object) { marker(obj(o, "tools", 0)); marker(obj(o, "messages", 0, "content", 0)) }, "", ""},
		{"five markers", func(o object) {
			marker(obj(o, "tools", 0))
			marker(obj(o, "messages", 0, "content", 0))
			marker(obj(o, "messages", 2, "content", 0))
		}, "markers", "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"the automatic marker is one", func(o object) {
			marker(obj(o, "tools", 0))
			marker(obj(o, "messages", 0, "content", 0))
			marker(o)
		}, "markers", "Found 5"},
		{"a marker in a result", func(o object) {
			marker(obj(o, "tools", 0))
			marker(obj(o, "messages", 0, "content", 0))
			obj(o, "messages", 2, "content", 0)["content"] = []any{marker(textBlock("x"))}
		}, "markers", "Found 5"},
		{"1h before 5m", func(o object) { marker(obj(o, "system", 0), "1h") }, "", ""},
		{"1h after 5m", func(o object) { marker(obj(o, "messages", 8, "content", 0), "1h") }, "markers", "must not come after a ttl='5m'"},
		{"a marker on thinking", func(o object) { marker(obj(o, "messages", 1, "content", 0)) }, "markers", "messages.1.content.0.thinking.cache_control: Extra inputs"},

		{"a foreign signature", func(o object) { obj(o, "messages", 3, "content", 0)["signature"] = "c2lnbmF0dXJl" }, "thinking", "messages.3.content.0: Invalid `signature` in `thinking` block"},
		{"other thinking", func(o object) { obj(o, "messages", 3, "content", 0)["thinking"] = "Hm." }, "thinking", "Invalid `signature`"},
		{"other thinking at the end", func(o object) { obj(o, "messages", 7, "content", 0)["thinking"] = "Hm." }, "thinking", "in the latest assistant message cannot be modified"},
		{"a shorter result", func(o object) { obj(o, "messages", 2, "content", 0)["content"] = "x" }, "binding", "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{"a shorter result, model not bound", func(o object) { o["model"] = "claude-opus-5"; obj(o, "messages", 2, "content", 0)["content"] = "x" }, "", ""},
		{"a shorter last result", func(o object) { obj(o, "messages", 8, "content", 0)["content"] = "x" }, "", ""},
		{"a shorter result without thinking after it", func(o object) { strip(o, 3, 9); obj(o, "messages", 2, "content", 0)["content"] = "x" }, "", ""},
		{"other system prompt", func(o object) { obj(o, "system", 0)["text"] = "x" }, "binding", "messages.1.content.0"},
		{"other tool", func(o object) { obj(o, "tools", 0)["description"] = "x" }, "binding", "messages.1.content.0"},
		{"a tool to be found by search", func(o object) {
			tools, _ := o["tools"].([]any)
			o["tools"] = append(tools, object{"name": "x", "defer_loading": true, "input_schema": object{"type": "object"}})
		}, "", ""},
		{"other tool without thinking", func(o object) { strip(o, 0, 9); obj(o, "tools", 0)["description"] = "x" }, "", ""},
		{"other input", func(o object) { obj(o, "messages", 1, "content", -1)["input"] = object{"command": "ls"} }, "binding", "messages.3"},
		{"a message removed", func(o object) { cut(o, "messages", 0); cut(o, "messages", 0); cut(o, "messages", 0) }, "role", ""},
		{"a call and its result removed", func(o object) { cut(o, "messages", 3); cut(o, "messages", 3) }, "binding", "messages.3"},
		{"a text added", func(o object) { put(content(o, 2), "content", 1, textBlock("x")) }, "binding", "messages.3"},
		{"thinking removed from the start", func(o object) { strip(o, 0, 3) }, "", ""},
		{"thinking removed from the end", func(o object) { strip(o, 5, 9) }, "", ""},
		{"all thinking removed", func(o object) { strip(o, 0, 9) }, "", ""},
		{"thinking removed from the middle", func(o object) { strip(o, 3, 3) }, "binding", "messages.5"},
		{"drop_block without its beta", func(o object) {
			obj(o, "thinking")["block_binding"] = object{"prefix_mismatch_behavior": "drop_block"}
		}, "beta", "thinking.block_binding: Extra inputs"},
	})
	enabled := played(t, upstream.Messages, "enabled")
	try(t, upstream.Messages, enabled, []edit{
		{"enabled", func(object) {}, "", ""},
		{"enabled, no thinking in the open round", func(o object) { strip(o, 0, 9) }, "thinking", "messages.7.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		{"enabled, thinking of the open round only", func(o object) { strip(o, 0, 5) }, "", ""},
		{"enabled, no open round", func(o object) {
			strip(o, 0, 9)
			put(o, "messages", 9, message("assistant", "Done."), message("user", "More."))
		}, "", ""},
		{"enabled, newer model", func(o object) { o["model"] = "claude-opus-5-5" }, "field", "\"thinking.type.enabled\" is not supported for this model"},
		{"adaptive", func(o object) { o["thinking"] = object{"type": "adaptive"} }, "field", "adaptive thinking is not supported"},
		{"budget above max_tokens", func(o object) { obj(o, "thinking")["budget_tokens"] = 9000 }, "field", "`max_tokens` must be greater than"},
	})
}

// TestDropBlock: with its beta, changed prefixes are accepted.
func TestDropBlock(t *testing.T) {
	var o object
	if err := json.Unmarshal(played(t, upstream.Messages, "adaptive"), &o); err != nil {
		t.Fatal(err)
	}
	obj(o, "thinking")["block_binding"] = object{"prefix_mismatch_behavior": "drop_block"}
	obj(o, "system", 0)["text"] = "x"
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	v := upstream.New(upstream.Options{})
	if r, answer := post(t, v, "/v1/messages", body, "Anthropic-Beta", "a,thinking-binding-controls-2026-08-01"); r.Status != 200 {
		t.Error(answer)
	}
}

// TestPutIn: thinking that was removed may not come again after thinking that was made without it.
func TestPutIn(t *testing.T) {
	v, s := serve(t, upstream.Options{Script: upstream.Loop(9, 400, nil)})
	c := &upstream.Client{URL: s.URL, API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", HTTP: s.Client()}
	c.History = append(c.History, object{"role": "user", "content": []any{textBlock("Play.")}})
	step := func() error { _, _, err := c.Step(t.Context()); return err }
	for range 2 {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	before := append([]object(nil), c.History...)
	for i, m := range before {
		if m["role"] == "assistant" {
			c.History[i] = object{"role": "assistant", "content": list(m["content"])[1:]}
		}
	}
	for range 2 {
		if err := step(); err != nil {
			t.Fatal("without its thinking: ", err)
		}
	}
	copy(c.History, before)
	if err := step(); err == nil || v.Refusals()[0].Rule != "binding" {
		t.Errorf("put in again: %v", err)
	}
}

func TestChat(t *testing.T) {
	// system, user, then assistant (call) and tool four times
	try(t, upstream.Chat, played(t, upstream.Chat, ""), []edit{
		{"nothing", func(object) {}, "", ""},
		{"no result", func(o object) { cut(o, "messages", 3) }, "pairs", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_"},
		{"no last result", func(o object) { cut(o, "messages", 9) }, "pairs", "did not have response messages"},
		{"no call", func(o object) { cut(o, "messages", 2) }, "pairs", "messages with role 'tool' must be a response"},
		{"a message between", func(o object) { strip(o, 0, 9); put(o, "messages", 3, message("user", "x")) }, "pairs", "must be followed by"},
		{"the same call twice", func(o object) { put(o, "messages", 4, at(o, "messages", 2), at(o, "messages", 3)) }, "ids", "Duplicate"},
		{"no content", func(o object) { put(o, "messages", 10, object{"role": "user"}) }, "text", "expected a string, got null"},
		{"a role of others", func(o object) { put(o, "messages", 1, message("model", "x")) }, "role", "Invalid value: 'model'"},
		{"another message", func(o object) { put(o, "messages", 10, message("user", "x")) }, "", ""},
	})
}

func TestResponses(t *testing.T) {
	// user, then reasoning, call and output four times
	try(t, upstream.Responses, played(t, upstream.Responses, "adaptive"), []edit{
		{"nothing", func(object) {}, "", ""},
		{"a string", func(o object) { o["input"] = "x" }, "", ""},
		{"no output", func(o object) { cut(o, "input", 3) }, "pairs", "No tool output found for function call call_"},
		{"no call", func(o object) { cut(o, "input", 1); cut(o, "input", 1) }, "pairs", "No tool call found for function call output with call_id call_"},
		{"an output of another kind", func(o object) { obj(o, "input", 3)["type"] = "custom_tool_call_output" }, "pairs", "No tool call found for custom tool call output"},
		{"an item between", func(o object) { put(o, "input", 3, message("user", "x")) }, "", ""},
		{"the same call twice", func(o object) { put(o, "input", 4, at(o, "input", 2)) }, "ids", "Duplicate"},
		{"the same output twice", func(o object) { put(o, "input", 4, at(o, "input", 3)) }, "pairs", "Duplicate"},
		{"reasoning alone", func(o object) { cut(o, "input", 2); cut(o, "input", 2) }, "thinking", "was provided without its required following item"},
		{"an item after reasoning", func(o object) { put(o, "input", 2, message("user", "x")) }, "thinking", "without its required following item"},
		{"other reasoning", func(o object) { obj(o, "input", 1)["encrypted_content"] = "eA==" }, "thinking", "could not be verified"},
		{"reasoning removed", func(o object) { cut(o, "input", 1) }, "", ""},
		{"all of a round removed", func(o object) { cut(o, "input", 4); cut(o, "input", 4); cut(o, "input", 4) }, "", ""},
		{"a history that is elsewhere", func(o object) { o["previous_response_id"] = "resp_1" }, "state", "not found"},
		{"a role of others", func(o object) { put(o, "input", 1, message("tool", "x")) }, "role", "Invalid value: 'tool'"},
		{"empty content", func(o object) { put(o, "input", 1, object{"role": "user", "content": []any{}}) }, "text", "empty array"},
	})
}

// TestRefusalShapes: errors have the vendors' shapes.
func TestRefusalShapes(t *testing.T) {
	for api, want := range map[upstream.API]string{
		upstream.Messages:  `{"error":{"message":"model: Field required","type":"invalid_request_error"},"request_id":"req_000000000000000000000001","type":"error"}`,
		upstream.Chat:      `{"error":{"code":null,"message":"you must provide a model parameter","param":"messages","type":"invalid_request_error"}}`,
		upstream.Responses: `{"error":{"code":null,"message":"Missing required parameter: 'model'.","param":"input","type":"invalid_request_error"}}`,
	} {
		body := `{"messages":[{"role":"user","content":"x"}],"input":"x"}`
		if _, answer := post(t, upstream.New(upstream.Options{}), paths[api], []byte(body)); answer != want {
			t.Errorf("%s\n got %s\nwant %s", api, answer, want)
		}
	}
}

// TestCompressed: bodies may be compressed, as Codex does; the record has the bytes as they came.
func TestCompressed(t *testing.T) {
	plain := []byte(`{"model":"gpt-5.6","input":"x"}`)
	var zipped, zstded bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&zstded)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{g, z} {
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		encoding string
		body     []byte
		status   int
	}{{"", plain, 200}, {"gzip", zipped.Bytes(), 200}, {"zstd", zstded.Bytes(), 200}, {"zstd", plain, 400}, {"gzip", plain, 400}, {"br", plain, 415}} {
		r, answer := post(t, upstream.New(upstream.Options{}), "/v1/responses", c.body, "Content-Encoding", c.encoding)
		if r.Status != c.status || !bytes.Equal(r.Body, c.body) {
			t.Errorf("%q: %d, want %d: %s", c.encoding, r.Status, c.status, answer)
		}
	}
}

package wire_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// check reports what Check says of a request with its own messages, as if all were new.
func check(t interface{ Fatalf(string, ...any) }, api wire.API, body string) error {
	r, err := wire.Parse(api, []byte(body), nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	view := make([][]byte, len(r.Messages))
	for i, m := range r.Messages {
		view[i] = slices.Clone(m.Raw)
	}
	return (*wire.Cache)(nil).Check(api, r, view)
}

// TestCheck: faults are named with their message and rule.
func TestCheck(t *testing.T) {
	const user, call, result = `{"role":"user","content":"x"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`
	const ask, answer, item = `{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]}`, `{"role":"tool","tool_call_id":"a","content":"x"}`, `{"type":"reasoning","summary":[]}`
	mark := func(ttl string) string {
		return `{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"` + ttl + `"}}]}`
	}
	for _, tt := range []struct {
		api      wire.API
		messages []string
		want     string
	}{
		{wire.Messages, []string{user}, ""},
		{wire.Messages, []string{user, call, result}, ""},
		{wire.Messages, []string{user, call, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"and"}]}`}, ""},
		{wire.Messages, []string{user, call, result, user}, ""},
		{wire.Messages, []string{user, call, result, `{"role":"system","content":"x"}`}, ""},
		{wire.Messages, []string{user, `{"role":"system","content":[],"output_config":{"effort":"medium"}}`, call, result}, ""}, // pi, Claude Code
		{wire.Messages, []string{user, `{"role":"system","content":[],"output_config":{"effort":"medium"}}`}, ""},               // Claude Code, after /compact
		{wire.Messages, []string{user, `{"role":"system","content":[]}`}, "messages.1: the content is missing or empty"},
		{wire.Messages, []string{user, `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"n","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}`, user}, ""},
		{wire.Messages, nil, "messages: at least one message is required"},
		{wire.Messages, []string{user, call, user}, "messages.1: tool calls were found without a result after them"},
		{wire.Messages, []string{user, call}, "messages.1: tool calls were found without a result after them"},
		{wire.Messages, []string{user, result}, "messages.1: a tool result has no tool call before it"},
		{wire.Messages, []string{user, call, result, result}, "messages.3: a tool call must have a single result"},
		{wire.Messages, []string{user, call, result, call, result}, "messages.3: the ids of tool calls must be unique"},
		{wire.Messages, []string{user, call, user, result}, "messages.3: tool results must be before other content"},
		{wire.Messages, []string{`{"role":"system","content":"x"}`, user}, "messages.0: `system` messages must follow"},
		{wire.Messages, []string{call, result}, `messages.0: the first message must use the "user" role`},
		{wire.Messages, []string{user, `{"role":"assistant","content":"x"}`}, "messages.1: the conversation must end with a user message"},
		{wire.Messages, []string{`{"role":"user","content":" \n"}`}, "messages.0: the content is missing or empty"},
		{wire.Messages, []string{`{"role":"user","content":[{"type":"text","text":""}]}`}, "messages.0: text content blocks must be non-empty"},
		{wire.Messages, []string{user, call, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}]}`}, "messages.2: text content blocks must be non-empty"},
		{wire.Messages, []string{user, call, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true}]}`}, "messages.2: the result of a failed call must not be empty"},
		{wire.Messages, []string{`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a:b"}]}`}, "messages.0: a tool call or result has no valid ID"},
		{wire.Messages, []string{user, `{"role":"assistant","content":[{"type":"thinking","cache_control":{"type":"ephemeral"}}]}`, user}, "messages.1: cache_control cannot be set on thinking blocks"},
		{wire.Messages, []string{mark("5m"), mark("5m"), mark("5m"), mark("5m"), mark("5m")}, "messages: a maximum of 4 blocks"},
		{wire.Messages, []string{mark("1h"), mark("5m")}, ""},
		{wire.Messages, []string{mark("5m"), mark("1h")}, "messages: a cache_control block with a longer ttl"},
		{wire.Messages, []string{`{"role":"tool","content":"x"}`}, "messages.0: the role is none that the API knows"},
		{wire.Messages, []string{`{"role":"user",}`}, "messages.0: byte 15: unexpected }"},
		{wire.Chat, []string{ask, answer, user}, ""},
		{wire.Chat, []string{ask, user, answer}, "messages.0: tool calls were found"},
		{wire.Chat, []string{answer}, "messages.0: a tool result has no tool call"},
		{wire.Chat, []string{`{"role":"assistant","content":"x","tool_calls":[]}`}, "messages.0: tool_calls must not be empty"},
		{wire.Responses, []string{item, `{"type":"function_call","call_id":"a"}`, user, `{"type":"function_call_output","call_id":"a","output":""}`}, ""},
		{wire.Responses, []string{`{"type":"function_call","call_id":"a"}`}, "messages.0: tool calls were found without a result"},
		{wire.Responses, []string{`{"type":"function_call_output","call_id":"a"}`}, "messages.0: a tool result has no tool call"},
		{wire.Responses, []string{`{"type":"function_call","call_id":"a"}`, `{"type":"custom_tool_call_output","call_id":"a"}`}, "messages.1: a tool result has no tool call"},
		{wire.Responses, []string{item, user}, "messages.0: reasoning was provided without the item"},
	} {
		r := parse(t, tt.api, request(tt.api, user))
		var view [][]byte
		for _, m := range tt.messages {
			view = append(view, []byte(m))
		}
		err := (*wire.Cache)(nil).Check(tt.api, r, view)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.messages, got, tt.want)
		}
	}
}

// TestCheckClient: faults of the client's own messages are marked.
func TestCheckClient(t *testing.T) {
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}`
	r := parse(t, wire.Messages, request(wire.Messages, `{"role":"user","content":"x"}`, call, `{"role":"user","content":""}`))
	own := [][]byte{[]byte(`{"role":"user","content":"y"}`), r.Messages[1].Raw, r.Messages[2].Raw}
	var f *wire.RuleError
	if err := (*wire.Cache)(nil).Check(wire.Messages, r, own); !errors.As(err, &f) || !f.Client {
		t.Errorf("got %v, want a fault of the client's", err)
	}
	own[0] = []byte(`{"role":"user","content":""}`)
	if err := (*wire.Cache)(nil).Check(wire.Messages, r, own); !errors.As(err, &f) || f.Client || f.Index != 0 {
		t.Errorf("got %v, want the fault of message 0", err)
	}
}

// TestCheckVendor: the scripted vendor takes what Check takes, and refuses what Check refuses for the order of
// messages, pairs, roles, texts and markers.
func TestCheckVendor(t *testing.T) {
	vendor := upstream.New(upstream.Options{Model: func(string) upstream.Model { return upstream.Model{} }})
	for _, tt := range []struct {
		api  wire.API
		path string
		one  func(*rapid.T) string
	}{
		{wire.Messages, "/v1/messages", genMessage}, {wire.Chat, "/v1/chat/completions", genChat}, {wire.Responses, "/v1/responses", genItem},
	} {
		taken, tried := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			list := slices.Clone(rapid.SampledFrom(good[tt.api]).Draw(t, "messages"))
			for range rapid.IntRange(0, 3).Draw(t, "edits") {
				at := rapid.IntRange(0, len(list)-1).Draw(t, "at")
				one := tt.one(t)
				switch rapid.IntRange(0, 3).Draw(t, "edit") {
				case 0:
					list[at] = one
				case 1:
					list = slices.Insert(list, at, one)
				case 2:
					list = append(list, one)
				default:
					if list = slices.Delete(list, at, at+1); len(list) == 0 {
						list = []string{one}
					}
				}
			}
			tried++
			body := request(tt.api, list...)
			if tt.api == wire.Messages {
				body = `{"max_tokens":5000,` + rapid.SampledFrom([]string{``, `"thinking":{"type":"enabled","budget_tokens":2000},`, `"cache_control":{"type":"ephemeral"},`, `"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],`}).Draw(t, "fields") + body[1:]
			}
			ours := check(t, tt.api, body)
			w := httptest.NewRecorder()
			vendor.ServeHTTP(w, httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(body)))
			if ours == nil {
				taken++
			}
			if (ours == nil) != (w.Code == http.StatusOK) && !stricter(ours) {
				t.Fatalf("%s\nCheck: %v\nvendor: %d %s", body, ours, w.Code, w.Body)
			}
		})
		if taken*10 < tried || taken*10 > tried*9 {
			t.Errorf("%s: %d of %d requests were taken: the test says little", tt.api, taken, tried)
		}
	}
}

// stricter are rules of vendors that the scripted one does not have.
func stricter(err error) bool {
	for _, s := range []string{"content is missing", "failed call", "no valid ID", "tool_calls must not"} {
		if err != nil && strings.Contains(err.Error(), s) {
			return true
		}
	}
	return false
}

// good are conversations that the vendors take.
var good = map[wire.API][][]string{
	wire.Messages: {
		{`{"role":"user","content":"x"}`},
		{`{"role":"user","content":"x"}`, use("a"), answer("a"), use("b"), answer("b")},
		{`{"role":"user","content":"x"}`, `{"role":"system","content":[{"type":"text","text":"s"},{"type":"text","text":"s"}]}`, use("a"), answer("a"), `{"role":"assistant","content":"done"}`, `{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`},
		{`{"role":"user","content":"x"}`, use("a"), use("b"), answer("a"), answer("b"), `{"role":"user","content":"x"}`},
	},
	wire.Chat: {
		{`{"role":"system","content":"x"}`, `{"role":"user","content":"x"}`, ask("a"), reply("a"), ask("b"), reply("b")},
		{`{"role":"user","content":"x"}`, ask("a"), reply("a"), `{"role":"assistant","content":"x"}`, `{"role":"user","content":"x"}`},
	},
	wire.Responses: {
		{`{"role":"user","content":"x"}`, `{"type":"function_call","call_id":"a","name":"n","arguments":"{}"}`, `{"type":"function_call_output","call_id":"a","output":"x"}`},
		{`{"role":"user","content":"x"}`, `{"type":"function_call","call_id":"a","name":"n","arguments":"{}"}`, `{"type":"custom_tool_call","call_id":"b","name":"n","input":"x"}`, `{"type":"custom_tool_call_output","call_id":"b","output":"x"}`, `{"type":"function_call_output","call_id":"a","output":"x"}`, `{"role":"user","content":"x"}`},
	},
}

func use(id string) string {
	return `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"` + id + `","name":"n","input":{}}]}`
}

func answer(id string) string {
	return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"x"}]}`
}

func ask(id string) string {
	return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"n","arguments":"{}"}}]}`
}

func reply(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"x"}` }

var (
	genID   = rapid.SampledFrom([]string{"a", "b", "c"})
	genMark = rapid.SampledFrom([]string{"", "", "", "", "", `,"cache_control":{"type":"ephemeral"}`, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`})
)

func genMessage(t *rapid.T) string {
	id, mark := genID.Draw(t, "id"), genMark.Draw(t, "mark")
	result := func(id string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":"x"` + mark + `}`
	}
	text := `{"type":"text","text":"` + rapid.SampledFrom([]string{"x", "x", "x", "x", "x", "x", "", " "}).Draw(t, "text") + `"` + mark + `}`
	use := `{"type":"tool_use","id":"` + id + `","name":"n","input":{}` + mark + `}`
	return rapid.SampledFrom([]string{
		`{"role":"user","content":"x"}`, `{"role":"user","content":[` + text + `]}`, `{"role":"user","content":[` + result(id) + `]}`, `{"role":"user","content":[` + result(id) + `]}`,
		`{"role":"user","content":[` + result(id) + `,` + text + `]}`, `{"role":"user","content":[` + result("a") + `,` + result("b") + `]}`, `{"role":"user","content":[` + text + `,` + result(id) + `]}`,
		`{"role":"assistant","content":[` + use + `]}`, `{"role":"assistant","content":[` + text + `,` + use + `]}`, `{"role":"assistant","content":"x"}`, `{"role":"system","content":[` + text + `]}`, `{"role":"system","content":[` + text + `,{"type":"text","text":"s"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}},{"type":"tool_use","id":"b","name":"n","input":{}}]}`,
	}).Draw(t, "message")
}

func genChat(t *rapid.T) string {
	id := genID.Draw(t, "id")
	return rapid.SampledFrom([]string{
		`{"role":"user","content":"x"}`, `{"role":"system","content":"x"}`, `{"role":"developer","content":[]}`, `{"role":"assistant","content":"x"}`, `{"role":"assistant","content":null}`, `{"role":"tool","tool_call_id":"` + id + `","content":"x"}`,
		`{"role":"tool","tool_call_id":"` + id + `","content":"x"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
		`{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
	}).Draw(t, "message")
}

func genItem(t *rapid.T) string {
	id := genID.Draw(t, "id")
	return rapid.SampledFrom([]string{
		`{"role":"user","content":"x"}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}`, `{"role":"tool","content":"x"}`, `{"role":"user","content":[]}`,
		`{"type":"function_call","call_id":"` + id + `","name":"n","arguments":"{}"}`, `{"type":"function_call_output","call_id":"` + id + `","output":"x"}`, `{"type":"custom_tool_call","call_id":"` + id + `","name":"n","input":"x"}`,
		`{"type":"custom_tool_call_output","call_id":"` + id + `","output":"x"}`, `{"type":"local_shell_call","call_id":"` + id + `","action":{}}`, `{"type":"local_shell_call_output","id":"` + id + `","output":"x"}`, `{"type":"web_search_call","id":"w"}`,
	}).Draw(t, "item")
}

// TestOpenRound finds the round of tools that the end of a conversation is in.
func TestOpenRound(t *testing.T) {
	const user, say, call, result = `{"role":"user","content":"x"}`, `{"role":"assistant","content":"x"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`
	const both, system = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"x"}]}`, `{"role":"system","content":"x"}`
	const think, fn, out = `{"type":"reasoning"}`, `{"type":"function_call","call_id":"a"}`, `{"type":"function_call_output","call_id":"a"}`
	for _, tt := range []struct {
		api      wire.API
		messages []string
		want     int
	}{
		{wire.Messages, nil, 0},
		{wire.Messages, []string{user}, 1},
		{wire.Messages, []string{user, say}, 2},
		{wire.Messages, []string{user, call}, 1},
		{wire.Messages, []string{user, call, result}, 1},
		{wire.Messages, []string{user, call, result, say, call, result}, 3},
		{wire.Messages, []string{user, call, both}, 1},
		{wire.Messages, []string{user, call, result, user}, 1},
		{wire.Messages, []string{user, call, result, system}, 1},
		{wire.Messages, []string{user, call, result, say, user}, 5},
		{wire.Messages, []string{user, call, result, say}, 4},
		{wire.Responses, []string{user, think, fn, out, think, fn, fn, out, out}, 4},
		{wire.Responses, []string{user, think, fn, out, user}, 5},
		{wire.Chat, []string{user, `{"role":"assistant","tool_calls":[{"id":"a"}]}`, `{"role":"tool","tool_call_id":"a"}`}, 1},
		{wire.Chat, []string{user, `{"role":"assistant","tool_calls":[{"id":"a"}]}`, `{"role":"tool","tool_call_id":"a"}`, user}, 4},
	} {
		if got := wire.OpenRound(parse(t, tt.api, request(tt.api, tt.messages...)).Messages); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.messages, got, tt.want)
		}
	}
}

// TestEdit: edits change what they name and nothing else.
func TestEdit(t *testing.T) {
	for _, tt := range []struct{ name, message, want string }{
		{"strip", `{"role":"assistant", "content":[ {"type":"thinking","thinking":"t"} , {"type":"text", "text":"x"}]}`, `{"role":"assistant", "content":[{"type":"text", "text":"x"}]}`},
		{"strip", `{"role":"assistant","content":[{"type":"redacted_thinking","data":"t"}]}`, ``},
		{"strip", `{"role":"assistant", "content":"x"}`, `{"role":"assistant", "content":"x"}`},
		{
			"unmark", `{"role":"user","content":[{"type":"tool_result", "tool_use_id":"a","content":[{"type":"text","text":"x","cache_control":null}], "cache_control":{"type":"ephemeral"}},{"type":"tool_use","input":{"cache_control":1}}]}`,
			`{"role":"user","content":[{"type":"tool_result", "tool_use_id":"a","content":[{"type":"text","text":"x"}]},{"type":"tool_use","input":{"cache_control":1}}]}`,
		},
		{"unmark", `{"role":"user", "content":[{"type":"text","text":"\"cache_control\""}]}`, `{"role":"user", "content":[{"type":"text","text":"\"cache_control\""}]}`},
		{"mark", `{"role":"user", "content":"x"}`, `{"role":"user", "content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}`},
		{"mark", `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"text","text":""},{"type":"thinking"}]}`, `{"role":"assistant","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"text","text":""},{"type":"thinking"}]}`},
		{"mark", `{"role":"assistant","content":[{"cache_control":{"type":"ephemeral","ttl":"1h"},"type":"text","text":"x"}]}`, `{"role":"assistant","content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"x"}]}`},
		{"mark", `{"role":"assistant","content":[{"type":"thinking"}]}`, `{"role":"assistant","content":[{"type":"thinking"}]}`},
		{"mark 1h", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`},
	} {
		in := []byte(tt.message)
		var got []byte
		switch tt.name {
		case "strip":
			got = wire.StripThinking(wire.Messages, in)
		case "unmark":
			got = wire.Unmark(in)
		case "mark":
			got = wire.Mark(wire.Messages, in, 5*time.Minute)
		case "mark 1h":
			got = wire.Mark(wire.Messages, in, time.Hour)
		}
		if string(got) != tt.want || string(in) != tt.message {
			t.Errorf("%s %s\n got %s\nwant %s", tt.name, tt.message, got, tt.want)
		}
	}
	if wire.StripThinking(wire.Responses, []byte(`{"type":"reasoning"}`)) != nil {
		t.Error("a reasoning item is left")
	}
	r := parse(t, wire.Responses, `{"input" : "hi" , "model":"m"}`)
	got := r.With([][]byte{[]byte(`{"role":"user","content":"note"}`), r.Messages[0].Raw})
	if want := `{"input" : [{"role":"user","content":"note"},{"role":"user","content":"hi"}] , "model":"m"}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}

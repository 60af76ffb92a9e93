package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit"
)

func parse(t *testing.T, api wire.API, body string, volatile ...wire.Volatile) *wire.Request {
	t.Helper()
	r, err := wire.Parse(api, []byte(body), &wire.Options{Volatile: volatile})
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return r
}

// request returns the body of a request with the messages.
func request(api wire.API, messages ...string) string {
	name := "messages"
	if api == wire.Responses {
		name = "input"
	}
	return `{"model":"m","` + name + `":[` + strings.Join(messages, ",") + `]}`
}

// hashOf returns the hash of one message.
func hashOf(t *testing.T, api wire.API, message string, volatile ...wire.Volatile) wire.Hash {
	t.Helper()
	return parse(t, api, request(api, message), volatile...).Messages[0].Hash
}

// TestHash: messages that say the same have the same hash, and others do not.
func TestHash(t *testing.T) {
	billing := wire.Volatile{Begin: "x-anthropic-billing-header"}
	today := wire.Volatile{Begin: "<system-reminder>", End: "</system-reminder>"}
	for _, tt := range []struct {
		name     string
		api      wire.API
		same     []string
		volatile []wire.Volatile
		others   []string
	}{
		{"string and block", wire.Messages, []string{
			`{"role":"user","content":"hello"}`,
			` { "content" : [ { "text" : "hello" , "type" : "text" } ] , "role" : "user" }`,
			`{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}`,
			`{"role":"assistant","role":"user","content":"old","content":"h\u0065llo"}`,
		}, nil, []string{
			`{"role":"assistant","content":"hello"}`,
			`{"role":"user","content":"hello "}`,
			`{"role":"user","content":[{"type":"text","text":"hel"},{"type":"text","text":"lo"}]}`,
			`{"role":"user","content":[{"type":"text","text":"hello","citations":[]}]}`,
			`{"role":"user","content":[]}`,
			`{"role":"user","content":["hello",1]}`,
		}},
		{"escapes", wire.Messages, []string{
			`{"role":"user","content":"é😀\n\t/\"\\"}`,
			`{"role":"user","content":"\u00e9\uD83D\ude00\u000a\u0009\/\u0022\u005c"}`,
		}, nil, []string{`{"role":"user","content":"\ud83d"}`, `{"role":"user","content":"\ude00"}`, `{"role":"user","content":"\ufffd"}`, `{"role":"user","content":"\\u00e9"}`}},
		{"results", wire.Messages, []string{
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`,
			`{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","cache_control":{"type":"ephemeral","ttl":"1h"},"content":[{"type":"text","text":"x","cache_control":null}]}]}`,
		}, nil, []string{
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x","is_error":true}]}`,
		}},
		{"arguments are the agent's own", wire.Messages, []string{`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{"cache_control":{"type":"ephemeral"}}}]}`}, nil, []string{
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{"cache_control":{"type":"other"}}}]}`,
		}},
		{"long", wire.Messages, []string{
			`{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", 2000) + `"}},{"type":"text","text":"` + strings.Repeat(`\n`, 900) + `"}]}`,
			`{"content":[{"source":{"data":"` + strings.Repeat("A", 2000) + `","type":"base64"},"type":"image"},{"text":"` + strings.Repeat(`\u000A`, 900) + `","type":"text"}],"role":"user"}`,
		}, nil, []string{`{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", 1999) + `B"}},{"type":"text","text":"` + strings.Repeat(`\n`, 900) + `"}]}`}},
		{"volatile", wire.Messages, []string{
			`{"role":"user","content":"hello"}`,
			`{"role":"user","content":"hello<system-reminder>1</system-reminder>"}`,
			`{"role":"user","content":"hel<system-reminder>1</system-reminder>lo<system-reminder>2</system-reminder>"}`,
			`{"role":"user","content":[{"type":"text","text":"\u003csystem-reminder>3</system-reminder>"},{"type":"text","text":"hello"}]}`,
			`{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":" <system-reminder>4"}]}`,
			`{"role":"user","content":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1"},{"type":"text","text":"hello"}]}`,
			`{"role":"user","content":"x-anthropic-billing-header: cc_version=1\nhello"}`,
		}, []wire.Volatile{today, billing}, []string{`{"role":"user","content":"<system-reminder>1</system-reminder>"}`}},
		{"not volatile", wire.Messages, []string{`{"role":"assistant","content":"<system-reminder>1</system-reminder>"}`}, []wire.Volatile{today}, []string{
			`{"role":"assistant","content":""}`, `{"role":"assistant","content":"<system-reminder>2</system-reminder>"}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"<system-reminder>1</system-reminder>"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"<system-reminder>2</system-reminder>"}]}`,
		}},
		{"chat", wire.Chat, []string{
			`{"role":"user","content":"hi"}`, `{"content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}],"role":"user"}`,
			`{"content":[{"type":"text","text":"hi","prompt_cache_breakpoint":{}}],"role":"user"}`,
		}, []wire.Volatile{today}, []string{
			`{"content":"<system-reminder>1</system-reminder>","role":"tool","tool_call_id":"a"}`,
			`{"content":"<system-reminder>2</system-reminder>","role":"tool","tool_call_id":"a"}`,
		}},
		{"items", wire.Responses, []string{
			`{"role":"user","content":"hi"}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`,
		}, nil, []string{`{"type":"function_call_output","call_id":"a","output":"hi"}`, `{"type":"message","id":"1","role":"user","content":"hi"}`}},
		{"an answer sent back", wire.Responses, []string{
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`,
			`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}`,
		}, nil, []string{
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[1]}]}`,
			`{"id":"rs_1","type":"item_reference"}`, `{"id":"rs_2","type":"item_reference"}`,
		}},
		{"an answer as Codex keeps it", wire.Responses, []string{
			`{"type":"reasoning","summary":[],"encrypted_content":"x"}`,
			`{"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":"x","internal_chat_message_metadata_passthrough":{"turn_id":"1"}}`,
		}, nil, []string{`{"type":"reasoning","summary":[],"content":[],"encrypted_content":"x"}`}},
	} {
		want := hashOf(t, tt.api, tt.same[0], tt.volatile...)
		for _, m := range tt.same {
			if hashOf(t, tt.api, m, tt.volatile...) != want {
				t.Errorf("%s: another hash: %s", tt.name, m)
			}
		}
		seen := map[wire.Hash]string{want: tt.same[0]}
		for _, m := range tt.others {
			h := hashOf(t, tt.api, m, tt.volatile...)
			if other, ok := seen[h]; ok {
				t.Errorf("%s: the same hash: %s and %s", tt.name, m, other)
			}
			seen[h] = m
		}
	}
	whole := parse(t, wire.Responses, `{"input":"h\u0069"}`).Messages
	if len(whole) != 1 || whole[0].Hash != hashOf(t, wire.Responses, `{"role":"user","content":"hi"}`) || !whole[0].Typed {
		t.Errorf("input as a string: %+v", whole)
	}
}

// TestVolatile: whatever volatile texts say, and wherever they are, a hash does not depend on them.
func TestVolatile(t *testing.T) {
	volatile := &wire.Options{Volatile: []wire.Volatile{{Begin: "<r>", End: "</r>"}, {Begin: "v:"}}}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "\n", "<", "</r>", ">", ":"}), 1, 6).Draw(t, "words")
		var hashes [2]wire.Hash
		for i := range hashes {
			text := "x"
			for _, w := range words {
				text += w + rapid.SampledFrom([]string{"", "<r></r>", "<r>one</r><r>two</r>", "v:1\n"}).Draw(t, "volatile")
			}
			text += rapid.SampledFrom([]string{"", "v:", "<r>open"}).Draw(t, "rest")
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			r, err := wire.Parse(wire.Messages, []byte(request(wire.Messages, `{"role":"user","content":`+string(quoted)+`}`)), volatile)
			if err != nil {
				t.Fatal(err)
			}
			hashes[i] = r.Messages[0].Hash
		}
		if hashes[0] != hashes[1] {
			t.Errorf("another hash of %q", words)
		}
	})
}

// TestAllocations: their number depends on the number of messages, not on their length.
func TestAllocations(t *testing.T) {
	count := func(size int) float64 {
		body := []byte(request(wire.Messages, slices.Repeat([]string{`{"role":"user","content":[{"type":"text","text":"` + strings.Repeat(`x\n`, size) + `"}]}`}, 100)...))
		return testing.AllocsPerRun(10, func() {
			if _, err := wire.Parse(wire.Messages, body, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := count(100), count(10_000); many > few+20 {
		t.Errorf("%g allocations for short texts, %g for long ones", few, many)
	}
}

// TestRequest reads the fields of requests as real clients send them.
func TestRequest(t *testing.T) {
	for _, tt := range []struct {
		api  wire.API
		body string
		want string
	}{
		{
			wire.Messages, `{"model":"claude-x","max_tokens":32000,"stream":true,"system":"s","tools":[],"messages":[],"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"metadata":{"user_id":"{\"session_id\":\"abc\"}"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}}`,
			"claude-x 32000 stream adaptive high abc",
		},
		{wire.Messages, `{"model":"a","model":"b","messages":null,"messages":[],"metadata":{"user_id":"user_1_account_2_session_3"},"thinking":{"type":"disabled"},"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}`, "b 0 3 compacts"},
		{wire.Messages, `{"messages":[],"tool_choice":{"type":"any"},"compaction":{"type":"summarize"}}`, " 0 compacts structured"},
		{wire.Messages, `{"messages":[{"role":"user","content":[{"type":"compaction","content":"x"}]}],"tool_choice":{"type":"auto"},"compaction":null}`, " 0 compacts"},
		{wire.Messages, `{"messages":[],"output_config":{"format":{"type":"json_schema"}},"cache_control":{"type":"ephemeral"}}`, " 0 structured ttl=5m0s markers=1"},
		{wire.Messages, `{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"t","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]}]}`, " 0 ttl=1h0m0s markers=2"},
		{wire.Chat, `{"messages":[],"max_tokens":1,"max_completion_tokens":2,"reasoning_effort":"low","prompt_cache_key":"k","response_format":{"type":"json_object"},"prompt_cache_retention":"24h"}`, " 2 low k structured ttl=24h0m0s"},
		{wire.Chat, `{"messages":[],"response_format":{"type":"text"},"tool_choice":"required"}`, " 0 structured"},
		{wire.Chat, `{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto"}}}`, " 0"},
		{wire.Responses, `{"input":[],"max_output_tokens":5,"reasoning":{"effort":"medium"},"instructions":"s","prompt_cache_key":"k","text":{"format":{"type":"text"}},"prompt_cache_options":{"mode":"explicit","ttl":"30m"}}`, " 5 medium k ttl=30m0s"},
		{wire.Responses, `{"input":"hi","previous_response_id":"r"}`, " 0 stateful"},
		{wire.Responses, `{"input":"hi","conversation":{"id":"c"},"prompt_cache_key":"k","previous_response_id":null}`, " 0 c stateful"},
		{wire.Responses, `{"input":[{"type":"item_reference","id":"x"}]}`, " 0 stateful"},
		{wire.Responses, `{"input":[{"type":"compaction_trigger"}]}`, " 0 compacts"},
		{wire.Responses, `{"input":[{"type":"compaction","encrypted_content":"x"}]}`, " 0"},
		{wire.Responses, `{"prompt":{"id":"p"}}`, " 0"},
		{wire.Responses, `{"input":[],"context_management":[{"type":"compaction","compact_threshold":1}],"text":{"format":{"type":"json_schema"}},"tool_choice":{"type":"function","name":"f"}}`, " 0 compacts structured"},
	} {
		r := parse(t, tt.api, tt.body)
		var got strings.Builder
		fmt.Fprintf(&got, "%s %d", r.Model, r.MaxOutput)
		for _, word := range []struct {
			ok   bool
			text string
		}{
			{r.Stream, "stream"},
			{r.Thinking != "", r.Thinking},
			{r.Effort != "", r.Effort},
			{r.Session != "", r.Session},
			{r.Stateful, "stateful"},
			{r.Compacts, "compacts"},
			{r.Structured, "structured"},
			{r.TTL != 0, "ttl=" + r.TTL.String()},
			{r.HeadMarkers != 0, fmt.Sprint("markers=", r.HeadMarkers)},
		} {
			if word.ok {
				got.WriteString(" " + word.text)
			}
		}
		if got.String() != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.body, &got, tt.want)
		}
	}
	head := parse(t, wire.Messages, `{"system":"s","tools":[{"name":"t"}],"messages":[]}`).Head
	for _, body := range []string{
		`{"model":"other","messages":[{"role":"user","content":"x"}],"tools":[{"cache_control":{"type":"ephemeral"},"name":"t"}],"system":[{"type":"text","text":"s"}]}`,
		`{"messages":[],"tools":[{"name":"t"}],"system":[{"type":"text","text":"v: 1"},{"type":"text","text":"s"}]}`,
	} {
		if parse(t, wire.Messages, body, wire.Volatile{Begin: "v:"}).Head != head {
			t.Errorf("another head: %s", body)
		}
	}
	if parse(t, wire.Messages, `{"system":"s","tools":[{"name":"u"}],"messages":[]}`).Head == head {
		t.Error("other tools, same head")
	}
}

// TestMessage reads the shapes of messages that real clients send.
func TestMessage(t *testing.T) {
	for _, tt := range []struct {
		api     wire.API
		message string
		want    string
	}{
		{wire.Messages, `{"role":"user","content":"hi"}`, "user typed"},
		{wire.Messages, `{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}}]}`, "user typed"},
		{wire.Messages, `{"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"}}]}`, "user typed"},
		{wire.Messages, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`, "user results=a,b markers=1"},
		{wire.Messages, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"and","cache_control":{"type":"ephemeral"}}]}`, "user typed results=a markers=1"},
		{wire.Messages, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"<r>1</r>"}]}`, "user results=a"},
		{wire.Messages, `{"role":"system","content":[{"type":"text","text":"mid"}],"output_config":{"effort":"medium"}}`, "system"},
		{wire.Messages, `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"n","input":{}}]}`, "assistant calls=a thinking"},
		{wire.Messages, `{"role":"assistant","content":[{"type":"redacted_thinking","data":"s"}]}`, "assistant thinking"},
		{wire.Messages, `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"x","citations":[{"type":"web_search_result_location"}]}]}`, "assistant"},
		{wire.Messages, `{"role":"assistant","content":[{"type":"mcp_tool_use","id":"m","name":"n","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"m","content":[{"type":"text","text":"x"}]}]}`, "assistant"},
		{wire.Chat, `{"role":"developer","content":"x"}`, "developer"},
		{wire.Chat, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}`, "user typed"},
		{wire.Chat, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"n","input":"x"}}]}`, "assistant calls=a,b"},
		{wire.Chat, `{"role":"assistant","content":"x","reasoning_content":"why"}`, "assistant thinking"},
		{wire.Chat, `{"role":"assistant","content":null,"refusal":"no"}`, "assistant"},
		{wire.Chat, `{"role":"assistant","content":null,"function_call":{"name":"n","arguments":""}}`, "assistant calls=function:n"},
		{wire.Chat, `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}`, "tool results=a"},
		{wire.Chat, `{"role":"function","name":"n","content":"x"}`, "tool results=function:n"},
		{wire.Responses, `{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"x"}]}`, "user typed"},
		{wire.Responses, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}`, "assistant"},
		{wire.Responses, `{"type":"reasoning","summary":[],"encrypted_content":"x"}`, "assistant thinking"},
		{wire.Responses, `{"type":"function_call","call_id":"a","name":"n","arguments":"{}"}`, "assistant calls=a"},
		{wire.Responses, `{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:"}]}`, "tool results=a"},
		{wire.Responses, `{"type":"custom_tool_call","call_id":"a","name":"apply_patch","input":"x"}`, "assistant calls=a"},
		{wire.Responses, `{"type":"custom_tool_call_output","call_id":"a","output":"x"}`, "tool results=a"},
		{wire.Responses, `{"type":"local_shell_call","call_id":"a","action":{"type":"exec"}}`, "assistant calls=a"},
		{wire.Responses, `{"type":"local_shell_call_output","call_id":"a","output":"x"}`, "tool results=a"},
		{wire.Responses, `{"type":"apply_patch_call_output","call_id":"a","status":"completed"}`, "tool results=a"},
		{wire.Responses, `{"type":"tool_search_call","call_id":null,"execution":"server"}`, "assistant"},
		{wire.Responses, `{"type":"web_search_call","id":"ws_1","status":"completed"}`, "assistant"},
		{wire.Responses, `{"type":"mcp_call","id":"mcp_1","name":"n","output":"x"}`, "assistant"},
		{wire.Responses, `{"type":"compaction","encrypted_content":"x"}`, "assistant"},
		{wire.Responses, `{"type":"additional_tools","tools":[]}`, "developer"},
	} {
		m := parse(t, tt.api, request(tt.api, tt.message), wire.Volatile{Begin: "<r>", End: "</r>"}).Messages[0]
		got := m.Role
		if m.Typed {
			got += " typed"
		}
		if m.Calls != nil {
			got += " calls=" + strings.Join(m.Calls, ",")
		}
		if m.Results != nil {
			got += " results=" + strings.Join(m.Results, ",")
		}
		if m.Thinking {
			got += " thinking"
		}
		if m.Markers > 0 {
			got += fmt.Sprint(" markers=", m.Markers)
		}
		if got != tt.want || string(m.Raw) != tt.message {
			t.Errorf("%s\n got %s\nwant %s", m.Raw, got, tt.want)
		}
	}
}

// TestMalformed: a malformed body is an error that names the byte.
func TestMalformed(t *testing.T) {
	for body, want := range map[string]string{
		``: "byte 0: want a JSON object", `[]`: "byte 0: want a JSON object", `{`: "byte 1: want the name of a member", `{"a":1} x`: "byte 8: unexpected data after the request",
		`{"messages":[1]}`: "byte 13: want a message, which is an object", `{"messages":[{}],}`: "byte 17: unexpected }", `{"messages":[{"content":"` + "\n" + `"}]}`: "byte 25: control character in a string",
		`{"messages":[{"content":"\x"}]}`: "byte 25: invalid escape in a string", `{"messages":[{"content":"`: "byte 25: unexpected end in a string", `{"a":01,"messages":[]}`: "byte 5: want a JSON value",
		`{"messages":[{} {}]}`: "byte 16: want a comma or ]", `{"a":` + strings.Repeat("[", 20000): "byte 10005: nested too deeply", `{"messages":{}}`: "the request has no messages", `{"a" 1}`: "byte 5: want a colon",
	} {
		if _, err := wire.Parse(wire.Messages, []byte(body), nil); err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", body, err, want)
		}
	}
	if _, err := wire.Parse("gemini", []byte(`{}`), nil); err == nil {
		t.Error("an unknown API was read")
	}
}

// TestSamples reads requests of real agents.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		api := wire.Messages
		if strings.HasPrefix(filepath.Base(f), "codex") {
			api = wire.Responses
		}
		checkBody(t, api, body)
		if err := check(t, api, string(body)); err != nil && !strings.Contains(f, "count-tokens") {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestSamplesGrow: the messages of an agent's earlier request are those at the beginning of a later one.
func TestSamplesGrow(t *testing.T) {
	read := func(name string) *wire.Request {
		body, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, wire.Messages, string(body), wire.Volatile{Begin: "x-anthropic-billing-header"})
	}
	before, after := read("claude-adaptive-2.json"), read("claude-adaptive-4.json")
	if before.Head != after.Head || before.Session == "" || before.Session != after.Session || len(after.Messages) <= len(before.Messages) {
		t.Fatalf("heads %x and %x, sessions %q and %q", before.Head, after.Head, before.Session, after.Session)
	}
	for i, m := range before.Messages {
		if m.Hash != after.Messages[i].Hash {
			t.Errorf("message %d:\n%s\n%s", i, m.Raw, after.Messages[i].Raw)
		}
	}
}

// checkBody holds what is true of every request: with its own messages it is the same bytes, and the hashes of its
// messages do not depend on how they are written.
// parsed is what all tests share, so that a message that is read in one way is also looked for in another.
var parsed = wire.NewCache(nil)

// checkCached reports a request that is read in another way when its messages were read before.
func checkCached(t *testing.T, api wire.API, body []byte) {
	t.Helper()
	for _, volatile := range [][]wire.Volatile{nil, {{Begin: "a"}, {Begin: "<r>", End: "</r>"}}, {{Begin: "a", End: "<r>"}, {Begin: "</r>"}}} {
		want, fault := wire.Parse(api, body, &wire.Options{Volatile: volatile})
		for range 2 {
			got, err := wire.Parse(api, body, &wire.Options{Volatile: volatile, Cache: parsed})
			if fmt.Sprint(err) != fmt.Sprint(fault) || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s %s: with a cache %+v (%v), without %+v (%v)", api, body, got, err, want, fault)
			}
		}
	}
}

func checkBody(t *testing.T, api wire.API, body []byte) {
	checkCached(t, api, body)
	t.Helper()
	r, err := wire.Parse(api, body, nil)
	if err != nil {
		if json.Valid(body) && bytes.Contains(body, []byte("messages")) && len(body) > 1000 {
			t.Errorf("%v", err)
		}
		return
	}
	if !json.Valid(body) {
		t.Fatalf("malformed, but read: %q", body)
	}
	view := make([][]byte, len(r.Messages))
	for i, m := range r.Messages {
		view[i] = slices.Clone(m.Raw)
		if at := bytes.Index(body, m.Raw); at < 0 {
			t.Fatalf("message %d is no part of the body", i)
		}
	}
	if got := r.With(view); !bytes.Equal(got, body) {
		t.Fatalf("with its own messages: %s", got)
	}
	for i := range view {
		view[i] = relay(t, view[i])
	}
	for range 2 {
		changed, err := wire.Parse(api, r.With(view), nil)
		if err != nil {
			t.Fatalf("re-laid out: %v\n%s", err, r.With(view))
		}
		if len(changed.Messages) != len(r.Messages) || changed.Head != r.Head {
			t.Fatalf("re-laid out: %d messages of %d", len(changed.Messages), len(r.Messages))
		}
		for i, m := range changed.Messages {
			if m.Hash != r.Messages[i].Hash {
				t.Fatalf("message %d: another hash when written as\n%s\nwas\n%s", i, m.Raw, r.Messages[i].Raw)
			}
			if api == wire.Messages {
				view[i] = wire.Mark(wire.Messages, wire.Unmark(m.Raw), time.Hour)
			}
		}
	}
	if at := wire.OpenRound(r.Messages); at < 0 || at > len(r.Messages) {
		t.Fatalf("open round at %d of %d messages", at, len(r.Messages))
	}
	for i, m := range r.Messages {
		if m.Raw[0] == '"' { // the whole input
			continue
		}
		bare := parse(t, api, request(api, string(wire.Unmark(m.Raw)))).Messages[0]
		if bare.Markers > 0 && api != wire.Responses || bare.Hash != m.Hash {
			t.Fatalf("markers of message %d removed: %s", i, bare.Raw)
		}
		if s := wire.StripThinking(api, m.Raw); s != nil && api == wire.Messages && parse(t, api, request(api, string(s))).Messages[0].Thinking {
			t.Fatalf("thinking of message %d removed: %s", i, s)
		}
	}
	_ = (*wire.Cache)(nil).Check(api, r, view) // whatever it says
}

// relay returns raw as another program would write it.
func relay(t *testing.T, raw []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || !surrogatesWhole(raw) {
		return raw
	}
	out, err := json.MarshalIndent(v, " ", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// surrogatesWhole reports whether encoding/json would keep the texts of raw.
func surrogatesWhole(raw []byte) bool {
	return !bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) && bytes.Equal(raw, bytes.ToValidUTF8(raw, nil))
}

// TestHostile: time grows with the size of a body, whatever is in it.
func TestHostile(t *testing.T) {
	testkit.Slow(t)
	volatile := &wire.Options{Volatile: []wire.Volatile{{Begin: "<r>", End: "</r>"}, {Begin: "v:"}}}
	for name, body := range map[string]func(n int) string{
		"nested arrays": func(n int) string {
			return `{"messages":[{"content":` + strings.Repeat(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+",", n/10000)
		},
		"nested objects": func(n int) string {
			return `{"messages":[{"x":[` + strings.Repeat(strings.Repeat(`{"b":1,"a":`, 900)+"1"+strings.Repeat("}", 900)+",", n/10000)
		},
		"volatile texts": func(n int) string {
			return request(wire.Messages, `{"role":"user","content":"`+strings.Repeat("<r></r>v:", n/10)+`"}`)
		},
		"members": func(n int) string {
			var out strings.Builder
			for i := range n / 10 {
				fmt.Fprintf(&out, `"%d":1,`, n-i)
			}
			return request(wire.Messages, `{`+out.String()+`"role":"user"}`)
		},
		"results": func(n int) string {
			var out strings.Builder
			for i := range n / 50 {
				fmt.Fprintf(&out, `,{"type":"tool_result","tool_use_id":"%d"}`, i)
			}
			return request(wire.Messages, use("a"), `{"role":"user","content":[{"type":"text"}`+out.String()+`]}`)
		},
		"markers": func(n int) string {
			return request(wire.Messages, `{"role":"user","content":[`+strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, n/50)+`{}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Linear(t, 1<<20, func(n int) func() {
				raw := []byte(body(n))
				return func() {
					r, err := wire.Parse(wire.Messages, raw, volatile)
					if err != nil {
						return
					}
					var view [][]byte
					for _, m := range r.Messages {
						view = append(view, wire.Mark(wire.Messages, wire.Unmark(wire.StripThinking(wire.Messages, m.Raw)), 0))
					}
					_ = (*wire.Cache)(nil).Check(wire.Messages, r, view)
				}
			})
		})
	}
}

func FuzzParse(f *testing.F) {
	for i, s := range []string{
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"a","name":"b","input":{"b":1,"a":[]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}]}`,
		`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]},{"role":"tool","tool_call_id":"a","content":"\u00e9\ud83d\ude00"}]}`,
		`{"input":"x"}`, `{"input":[{"type":"reasoning","summary":[]},{"type":"message","role":"user","content":[{"type":"input_text","text":""}]}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","cache_control":{}},{"type":"text","text":"x"}],"content":[{"type":"tool_result","tool_use_id":"a"}]}]}`,
		`{"messages":[{"a":1,"a":2,"\u0061":3}],"messages":[]}`, `{"messages":[{"content":[{"type":"text","text":"x","text":1}]}]}`,
	} {
		f.Add(uint8(i), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		api := []wire.API{wire.Messages, wire.Chat, wire.Responses}[int(which)%3]
		checkBody(t, api, body)
	})
}

// long returns a request of about size bytes: a loop of an agent.
func long(size int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	out.WriteString(`{"model":"claude-x","max_tokens":32000,"system":[{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"fix it"}`)
	for n := 0; out.Len() < size; n++ {
		var text strings.Builder
		for text.Len() < 6000 {
			fmt.Fprintf(&text, "\t%d: if err := f(%q); err != nil {\n", rnd.IntN(1000), strings.Repeat("ab ", rnd.IntN(20)))
		}
		quoted, _ := json.Marshal(text.String())
		fmt.Fprintf(&out, `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"path":"a.go","offset":%d}}]},{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":%s}]}`, n, n, n, quoted)
	}
	out.WriteString("]}")
	return out.Bytes()
}

// BenchmarkParseAgain is a request of which all messages but the last two were in the one before.
func BenchmarkParseAgain(b *testing.B) {
	for _, size := range []int{800_000, 4_000_000} {
		body := long(size)
		cache := wire.NewCache(nil)
		b.Run(fmt.Sprintf("%dkB", size/1000), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Parse(wire.Messages, body, &wire.Options{Cache: cache}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	volatile := &wire.Options{Volatile: []wire.Volatile{{Begin: "x-anthropic-billing-header:"}, {Begin: "<system-reminder>", End: "</system-reminder>"}}}
	for _, size := range []int{80_000, 800_000, 4_000_000, 32_000_000} {
		body := long(size)
		b.Run(fmt.Sprintf("%dkB", size/1000), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Parse(wire.Messages, body, volatile); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

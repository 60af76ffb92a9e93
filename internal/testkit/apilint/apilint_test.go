package apilint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/testkit/apilint"
)

const (
	validAnthropic = `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Be brief."}],"messages":[
{"role":"user","content":"Look"},
{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"cat","input":{"f":"x"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]},{"type":"tool_result","tool_use_id":"a"},{"type":"text","text":"go on"}]},
{"role":"system","content":"The user opened a file."},
{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ls","input":{}}]}]}`

	validOpenAI = `{"model":"m","messages":[
{"role":"system","content":"Be brief."},
{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{\"f\":\"x\"}"}}]},
{"role":"tool","tool_call_id":"b","content":"x"},
{"role":"tool","tool_call_id":"a","content":""},
{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"oops"}}]}]}`

	validResponses = `{"model":"m","instructions":"Be brief.","input":[
{"role":"user","content":"Look"},
{"type":"message","role":"developer","content":[{"type":"input_text","text":"rule"}]},
{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},
{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"patch","input":"x"},
{"type":"function_call_output","call_id":"a","output":"x"},{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"y"}]},
{"type":"web_search_call","id":"ws"},
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[]}]},
{"type":"shell_call","call_id":"c","action":{}}]}`
)

func TestValidRequestsHaveNoFaults(t *testing.T) {
	if got := apilint.Anthropic([]byte(validAnthropic)); len(got) > 0 {
		t.Errorf("Anthropic: got %v, want none", got)
	}
	if got := apilint.OpenAI([]byte(validOpenAI)); len(got) > 0 {
		t.Errorf("OpenAI: got %v, want none", got)
	}
	if got := apilint.Responses([]byte(validResponses)); len(got) > 0 {
		t.Errorf("Responses: got %v, want none", got)
	}
	if got := apilint.Responses([]byte(`{"input":"Look"}`)); len(got) > 0 {
		t.Errorf("Responses: got %v, want none", got)
	}
}

// Each case breaks the valid request in one way.
func TestResponsesFaults(t *testing.T) {
	const think = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},`
	for _, test := range []struct{ name, old, new, want string }{
		{"not json", validResponses, `{`, "json: unexpected end of JSON input"},
		{"no input", validResponses, `{}`, "input: want a string or an array of items"},
		{"no object", validResponses, `[3]`, "messages[0]: input: want an object"},
		{"no type", `"type":"web_search_call",`, ``, "messages[7]: type: an item without a type"},
		{"role", `"role":"developer"`, `"role":"model"`, `messages[1]: role: role "model"`},
		{"block", `"type":"output_text"`, `"type":"input_text"`, `messages[8]: content: a message of assistant: a block "input_text"`},
		{"no text", `"text":"rule"`, `"x":"rule"`, `messages[1]: content: a message of developer: a block "input_text"`},
		{"no content", `"content":"Look"`, `"content":null`, `messages[0]: content: a message of user: want a string or blocks`},
		{"reasoning alone", think, think + `{"role":"user","content":"now"},`, `messages[3]: reasoning: reasoning without the item that it led to`},
		{"id twice", `"call_id":"c"`, `"call_id":"a"`, `messages[9]: tool-pair: call ID "a" is empty or not unique`},
		{"no output", `{"type":"function_call_output","call_id":"a","output":"x"},`, ``, `messages[3]: tool-pair: no tool output found for call "a"`},
		{"no call", `{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"},`, ``, `messages[4]: tool-pair: no tool call found for output of call "a"`},
		{"arguments", `"arguments":"{}"`, `"arguments":{}`, `messages[3]: call: function_call without a name and a string as "arguments"`},
		{"output", `"output":"x"`, `"output":[{"type":"output_text","text":"x"}]`, `messages[5]: content: an output: a block "output_text"`},
		{"trigger", `{"type":"web_search_call","id":"ws"}`, `{"type":"compaction_trigger"}`, `messages[7]: trigger: not the last item`},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, apilint.Responses, validResponses, test.old, test.new, test.want) })
	}
}

// Each case breaks the valid request in one way.
func TestAnthropicFaults(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"not json", validAnthropic, `{`, "json: unexpected EOF"},
		{"no messages", validAnthropic, `{}`, "messages: want an array"},
		{"empty", validAnthropic, `[]`, "messages: want at least one"},
		{"first role", `{"role":"user","content":"Look"},`, ``, `messages[0]: first-role: the first message is of "assistant"`},
		{"unknown role", `"role":"user","content":"Look"`, `"role":"system","content":"Look"`, `messages[0]: system-place: a message of the system after ""; messages[0]: first-role: the first message is of "system"`},
		{"system in a row", `{"role":"user","content":"Look"},`, `{"role":"user","content":"Look"},{"role":"system","content":"a"},{"role":"system","content":"b"},`, `messages[1]: system-place: a message of the system before "system"; messages[2]: system-place: a message of the system after "system"`},
		{"system before the results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"`, `{"role":"system","content":"a"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"`, `messages[2]: system-place: a message of the system after "assistant"; messages[2]: system-place: a message of the system before "user"`},
		{"two in a row", `{"role":"user","content":"Look"},`, `{"role":"user","content":"Look"},{"role":"user","content":"now"},`, `messages[1]: alternation: two messages of "user" in a row`},
		{"blank content", `"Look"`, `" \n"`, `messages[0]: empty: a message without content`},
		{"no blocks", `"Look"`, `[]`, `messages[0]: empty: a message without content`},
		{"null content", `"Look"`, `null`, `messages[0]: content: want a string or an array of blocks`},
		{"blank text", `"go on"`, `" "`, `messages[2]: empty: a text block without text`},
		{"system", `"Be brief."`, `""`, `system: want blocks of text`},
		{"unknown block", `"type":"text","text":"go on"`, `"type":"input_text","text":"go on"`, `messages[2]: block: a block of type "input_text" from "user"`},
		{"unknown field", `"text":"go on"`, `"text":"go on","origin":"human"`, `messages[2]: field: a block of type text has the field "origin"`},
		{"unknown message field", `"role":"user","content":"Look"`, `"role":"user","ts":1,"content":"Look"`, `messages[0]: field: a message has the field "ts"`},
		{"id syntax", `"id":"c"`, `"id":"c.1"`, `messages[4]: tool-id: id "c.1"`},
		{"id twice", `"id":"c"`, `"id":"a"`, `messages[4]: tool-id: id "a" is used twice`},
		{"tool name", `"id":"c","name":"ls"`, `"id":"c","name":"l s"`, `messages[4]: tool-name: tool "l s"`},
		{"input", `"input":{"f":"x"}`, `"input":"x"`, `messages[1]: input: the input of a tool_use block is no object`},
		{"lost result", `{"type":"tool_result","tool_use_id":"a"},`, ``, `messages[1]: tool-pair: call "a" has no result in the next message`},
		{"lost call", `{"type":"tool_use","id":"a","name":"ls","input":{}},`, ``, `messages[2]: tool-pair: the result of "a" has no call in the message before`},
		{"two results", `{"type":"tool_result","tool_use_id":"a"},`, `{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"},`, `messages[2]: tool-pair: call "a" has two results`},
		{
			"result behind text", `"content":[{"type":"tool_result","tool_use_id":"b"`, `"content":[{"type":"text","text":"first"},{"type":"tool_result","tool_use_id":"b"`,
			`messages[2]: result-first: the result of "b" follows other content; messages[2]: result-first: the result of "a" follows other content`,
		},
		{"failed and empty", `"tool_use_id":"a"`, `"tool_use_id":"a","is_error":true`, `messages[2]: empty: a failed tool_result without content`},
		{"blank text in result", `"text":"x"`, `"text":""`, `messages[2]: empty: a text block without text in a tool_result`},
		{"media type", `image/png`, `image/svg+xml`, `messages[2]: image: media type "image/svg+xml"`},
		{"base64", `iVBORw0KGgo=`, `!`, `messages[2]: image: the data is not base64`},
		{"unsigned", `"signature":"s"`, `"signature":""`, `messages[1]: field: a thinking block has no "signature"`},
		{"thinking from user", `{"type":"text","text":"go on"}`, `{"type":"thinking","thinking":"x","signature":"s"}`, `messages[2]: block: a block of type "thinking" from "user"`},
		{"thinking last", `{"type":"tool_use","id":"c","name":"ls","input":{}}]`, `{"type":"tool_use","id":"c","name":"ls","input":{}},{"type":"thinking","thinking":"x","signature":"s"}]`, `messages[4]: thinking: the last block of the assistant is thinking`},
		{"trailing space", `{"type":"tool_use","id":"c","name":"ls","input":{}}]`, `{"type":"text","text":"So "}]`, `messages[4]: trailing-space: the last message is the assistant's and ends in white space`},
		{"not utf-8", `go on`, "go\xffon", `utf8: the request is not valid UTF-8`},
		{"lone surrogate", `go on`, `\ud83d on`, `surrogate: half of a surrogate pair`},
		{"surrogates in the wrong order", `go on`, `\ude00\ud83d`, `surrogate: half of a surrogate pair; surrogate: half of a surrogate pair`},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, apilint.Anthropic, validAnthropic, test.old, test.new, test.want) })
	}
}

func TestOpenAIFaults(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"not an object", validOpenAI, `[3]`, "messages[0]: messages: want an object"},
		{"unknown role", `"role":"system"`, `"role":"model"`, `messages[0]: role: role "model"`},
		{"blank", `"Be brief."`, `""`, `messages[0]: empty: a message of "system" without content`},
		{"null", `"Be brief."`, `null`, `messages[0]: empty: a message of "system" without content`},
		{"blank part", `"text":"Look"`, `"text":""`, `messages[1]: empty: a text part without text`},
		{"image from the system", `"content":"Be brief."`, `"content":[{"type":"image_url","image_url":{"url":"https://x"}}]`, `messages[0]: block: a part of type "image_url" from "system"`},
		{"image", `data:image/png;base64,iVBORw0KGgo=`, `file:///x.png`, `messages[1]: image: the URL is not one of the web`},
		{"media type", `data:image/png`, `data:image/bmp`, `messages[1]: image: media type "image/bmp"`},
		{"Anthropic's block", `"type":"text","text":"Look"`, `"type":"tool_result","tool_use_id":"a"`, `messages[1]: block: a part of type "tool_result" from "user"`},
		{"unknown field", `"role":"assistant","content":null`, `"role":"assistant","reasoning_content":"x","content":null`, `messages[2]: field: a message of assistant has the field "reasoning_content"`},
		{"failed", `"content":"x"`, `"content":"x","is_error":true`, `messages[3]: field: a message of tool has the field "is_error"`},
		{"no calls", `"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"oops"}}]`, `"tool_calls":[]`, `messages[5]: tool-calls: want an array that is not empty`},
		{"long id", `"id":"c"`, `"id":"` + strings.Repeat("c", 41) + `"`, `messages[5]: tool-id: id "` + strings.Repeat("c", 41) + `"`},
		{"id twice", `"id":"c"`, `"id":"a"`, `messages[5]: tool-id: id "a" is used twice`},
		{"tool name", `"name":"cat"`, `"name":"c.at"`, `messages[2]: tool-name: tool "c.at"`},
		{"arguments", `"arguments":"oops"`, `"arguments":{}`, `messages[5]: input: the arguments of a call are no string`},
		{"lost result", `{"role":"tool","tool_call_id":"a","content":""},`, ``, `messages[2]: tool-pair: call "a" is not followed by its result`},
		{"lost call", `{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},`, ``, `messages[4]: tool-pair: the result of "a" has no call in the assistant's message before`},
		{"two results", `{"role":"tool","tool_call_id":"a","content":""},`, `{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"a","content":""},`, `messages[5]: tool-pair: call "a" has two results`},
		{
			"something between", `{"role":"tool","tool_call_id":"a","content":""},`, `{"role":"user","content":"wait"},{"role":"tool","tool_call_id":"a","content":""},`,
			`messages[2]: tool-pair: call "a" is not followed by its result; messages[5]: tool-pair: the result of "a" has no call in the assistant's message before`,
		},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, apilint.OpenAI, validOpenAI, test.old, test.new, test.want) })
	}
}

func check(t *testing.T, lint func([]byte) []apilint.Fault, valid, old, by, want string) {
	t.Helper()
	if !strings.Contains(valid, old) {
		t.Fatalf("the valid request does not contain %s", old)
	}
	var got []string
	for _, f := range lint([]byte(strings.Replace(valid, old, by, 1))) {
		got = append(got, f.String())
	}
	if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestAddedIgnoresWhatWasThere(t *testing.T) {
	before := apilint.Anthropic([]byte(`[{"role":"user","content":" "},{"role":"assistant","content":"a"},{"role":"user","content":""}]`))
	after := apilint.Anthropic([]byte(`[{"role":"user","content":""},{"role":"robot","content":"a"}]`))
	got := apilint.Added(before, after)
	want := []apilint.Fault{{Index: 1, Rule: "role", Detail: `role "robot"`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	if got := apilint.Added(nil, before); len(got) != 2 {
		t.Errorf("got %v, want both faults", got)
	}
}

package transcript_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/apilint"
	"github.com/condensehq/condense/transcript"
)

const png = "iVBORw0KGgo="

// lint fails the test if the vendor would refuse file.
func lint(t *testing.T, format, file string) {
	t.Helper()
	check := apilint.Anthropic
	if format == "openai" {
		check = apilint.OpenAI
	}
	for _, f := range check([]byte(file)) {
		t.Errorf("%s would refuse it: %v\n%s", format, f, file)
	}
}

func user(id string, parts ...core.Part) core.Message {
	return core.Message{ID: id, Role: core.RoleUser, Parts: parts}
}

func assistant(id string, parts ...core.Part) core.Message {
	return core.Message{ID: id, Role: core.RoleAssistant, Parts: parts}
}

func call(id string) core.ToolCall { return core.ToolCall{ID: id, Name: "run", Args: `{"n":1}`} }

func result(id string, content ...core.Part) core.ToolResult {
	return core.ToolResult{CallID: id, Content: content}
}

// One line of want is one message.
func TestConvert(t *testing.T) {
	for _, test := range []struct {
		name, to string
		messages []core.Message
		want     string
		warnings []string
	}{
		{
			"roles take turns", "anthropic",
			[]core.Message{user("1", core.Text("a")), user("2", core.Text("b")), assistant("3", core.Text("c")), assistant("4", core.Text("d"))},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
			{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]`,
			nil,
		},
		{
			"or not", "openai",
			[]core.Message{user("1", core.Text("a")), user("2", core.Text("b")), assistant("3", core.Text("c")), assistant("4", core.Text("d"))},
			`[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":"d"}]`,
			nil,
		},
		{
			"system messages", "anthropic",
			[]core.Message{{ID: "0", Role: core.RoleSystem, Parts: []core.Part{core.Text("s")}}, user("1", core.Text("a")), {ID: "2", Role: core.RoleSystem, Parts: []core.Part{core.Text("t")}}},
			`{"system":"s\n\nt","messages":[{"role":"user","content":"a"}]}`,
			[]string{"message 2: a system message inside the conversation was moved to the system prompt"},
		},
		{
			"the assistant begins", "anthropic",
			[]core.Message{assistant("1", core.Text("a \n"))},
			`[{"role":"user","content":"(The conversation begins here.)"},{"role":"assistant","content":"a"}]`,
			[]string{"a first user message was added: anthropic demands one", "message 1: white space at the end of the conversation was left out"},
		},
		{
			"nothing but a system prompt", "anthropic",
			[]core.Message{{ID: "0", Role: core.RoleSystem, Parts: []core.Part{core.Text("s")}}},
			`{"system":"s","messages":[{"role":"user","content":"(The conversation begins here.)"}]}`,
			[]string{"a first user message was added: anthropic demands one"},
		},
		{
			"nothing is said", "anthropic",
			[]core.Message{user("1", core.Text("a")), assistant("2", core.Text(" \n")), user("3", core.Text("")), assistant("4")},
			`[{"role":"user","content":"a"}]`,
			nil,
		},
		{
			"tool messages", "anthropic",
			[]core.Message{
				user("1", core.Text("a")), assistant("2", core.Text("b"), call("x"), call("y")),
				{ID: "3", Role: core.RoleTool, Parts: []core.Part{result("x", core.Text("1"))}},
				{ID: "4", Role: core.RoleTool, Parts: []core.Part{result("y")}},
				user("5", core.Text("c")),
			},
			`[{"role":"user","content":"a"},
			{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"tool_use","id":"x","name":"run","input":{"n":1}},{"type":"tool_use","id":"y","name":"run","input":{"n":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"1"},{"type":"tool_result","tool_use_id":"y"},{"type":"text","text":"c"}]}]`,
			nil,
		},
		{
			"results in one message", "openai",
			[]core.Message{
				user("1", core.Text("a")), assistant("2", core.Text("b"), call("x"), call("y")),
				user("3", result("x", core.Text("1")), result("y"), core.Text("c")),
			},
			`[{"role":"user","content":"a"},
			{"role":"assistant","content":"b","tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}},{"id":"y","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"x","content":"1"},{"role":"tool","tool_call_id":"y","content":""},{"role":"user","content":"c"}]`,
			nil,
		},
		{
			"calls in messages of their own, as a session records them", "openai",
			[]core.Message{assistant("1", call("x")), assistant("2", call("y")), user("3", result("x")), user("4", result("y"))},
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}},{"id":"y","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"x","content":""},{"role":"tool","tool_call_id":"y","content":""}]`,
			nil,
		},
		{
			"results that come late", "anthropic",
			[]core.Message{
				user("1", core.Text("a")), assistant("2", call("x")), user("3", core.Text("wait")),
				assistant("4", core.Text("ok")), user("5", result("x", core.Text("r"))),
			},
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"run","input":{"n":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"},{"type":"text","text":"wait"}]},{"role":"assistant","content":"ok"}]`,
			[]string{"message 5: a tool result was moved up to its call"},
		},
		{
			"a result behind another message", "openai",
			[]core.Message{assistant("2", call("x")), user("3", core.Text("wait")), user("5", result("x", core.Text("r")))},
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"x","content":"r"},{"role":"user","content":"wait"}]`,
			[]string{"message 5: a tool result was moved up to its call"},
		},
		{
			"a call that nobody answered", "anthropic",
			[]core.Message{user("1", core.Text("a")), assistant("2", call("x")), user("3", core.Text("b"))},
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"run","input":{"n":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"No result of this call was recorded.","is_error":true},{"type":"text","text":"b"}]}]`,
			[]string{"message 2: a tool call without a result was given one that says so"},
		},
		{
			"a call that is pending", "openai",
			[]core.Message{user("1", core.Text("a")), assistant("2", call("x"))},
			`[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]}]`,
			nil,
		},
		{
			"one of two is pending", "openai",
			[]core.Message{assistant("2", call("x"), call("y")), user("3", result("y"))},
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}},{"id":"y","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"y","content":""},{"role":"tool","tool_call_id":"x","content":"No result of this call was recorded."}]`,
			[]string{"message 2: a tool call without a result was given one that says so"},
		},
		{
			"a result without a call", "anthropic",
			[]core.Message{user("1", result("x", core.Text("r"), core.Image{MediaType: "image/png", Data: png}))},
			`[{"role":"user","content":[{"type":"text","text":"[result of a tool call that is not shown here]"},{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}]`,
			[]string{"message 1: a tool result without a call became text"},
		},
		{
			"a call that is not the assistant's", "openai",
			[]core.Message{user("1", call("x")), user("2", result("x", core.Text("r")))},
			`[{"role":"user","content":"[call of tool run: {\"n\":1}]"},
			{"role":"user","content":[{"type":"text","text":"[result of a tool call that is not shown here]"},{"type":"text","text":"r"}]}]`,
			[]string{"message 1: a tool call in a message that is not the assistant's became text", "message 2: a tool result without a call became text"},
		},
		{
			"ids", "anthropic",
			[]core.Message{
				user("0", core.Text("a")),
				assistant("1", call("fc:1|é")), user("2", result("fc:1|é")),
				assistant("3", call("fc_1__")), user("4", result("fc_1__")),
				assistant("5", call("")), user("6", result("")),
				assistant("7", call("")), user("8", result("")),
			},
			`[{"role":"user","content":"a"},
			{"role":"assistant","content":[{"type":"tool_use","id":"fc_1__","name":"run","input":{"n":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"fc_1__"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"fc_1___2","name":"run","input":{"n":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"fc_1___2"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"call_3","name":"run","input":{"n":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_3"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"call_4","name":"run","input":{"n":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_4"}]}]`,
			[]string{
				"message 1: the id of a tool call was changed to one that is valid and unique",
				"message 3: the id of a tool call was changed to one that is valid and unique",
				"message 5: the id of a tool call was changed to one that is valid and unique",
				"message 7: the id of a tool call was changed to one that is valid and unique",
			},
		},
		{
			"long ids", "openai",
			[]core.Message{
				assistant("1", call(strings.Repeat("x", 50)+"1"), call(strings.Repeat("x", 50)+"2")),
				user("2", result(strings.Repeat("x", 50)+"2", core.Text("two")), result(strings.Repeat("x", 50)+"1", core.Text("one"))),
			},
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"` + strings.Repeat("x", 40) + `","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}},{"id":"` + strings.Repeat("x", 38) + `_2","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"` + strings.Repeat("x", 38) + `_2","content":"two"},{"role":"tool","tool_call_id":"` + strings.Repeat("x", 40) + `","content":"one"}]`,
			[]string{
				"message 1: the id of a tool call was changed to one that is valid and unique",
				"message 1: the id of a tool call was changed to one that is valid and unique",
			},
		},
		{
			"names and arguments", "anthropic",
			[]core.Message{user("0", core.Text("a")), assistant("1",
				core.ToolCall{ID: "a", Name: "fs.read/x", Args: "not json"}, core.ToolCall{ID: "b", Name: "", Args: "[1]"},
				core.ToolCall{ID: "c", Name: "n", Args: ""}, core.ToolCall{ID: "d", Name: "n", Args: "{\"a\":\"\\ud83d\xff\\ud83d\\ude00\"}"})},
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"fs_read_x","input":{"arguments":"not json"}},{"type":"tool_use","id":"b","name":"unknown","input":{"arguments":"[1]"}},{"type":"tool_use","id":"c","name":"n","input":{}},{"type":"tool_use","id":"d","name":"n","input":{"a":"\ufffd` + "\ufffd" + `\ud83d\ude00"}}]}]`,
			[]string{
				`message 1: the name of tool "fs.read/x" was changed to "fs_read_x", which is valid`, "message 1: arguments that are no object were wrapped in one",
				`message 1: the name of tool "" was changed to "unknown", which is valid`, "message 1: arguments that are no object were wrapped in one",
			},
		},
		{
			"arguments as they are", "openai",
			[]core.Message{assistant("1", core.ToolCall{ID: "a", Name: "n", Args: "not json"}, core.ToolCall{ID: "b", Name: "n"})},
			`[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"not json"}},{"id":"b","type":"function","function":{"name":"n","arguments":"{}"}}]}]`,
			nil,
		},
		{
			"reasoning", "anthropic",
			[]core.Message{
				user("0", core.Text("a")),
				assistant("1", core.Reasoning{Text: "unsigned"}, core.Reasoning{Text: "t", Signature: "s"}, core.Reasoning{Encrypted: "e"}, core.Text("b")),
				user("2", core.Text("c")), assistant("3", core.Reasoning{Text: "t", Signature: "s"}), user("4", core.Text("d")),
				assistant("5", call("x"), core.Reasoning{Text: "u", Signature: "s"}),
			},
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"e"},{"type":"text","text":"b"}]},
			{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"run","input":{"n":1}}]}]`,
			[]string{
				"message 1: reasoning was left out: anthropic accepts only what it has signed itself",
				"message 3: reasoning was left out: nothing that the assistant said follows it",
				"message 5: reasoning was left out: nothing that the assistant said follows it",
			},
		},
		{
			"reasoning and failure", "openai",
			[]core.Message{
				assistant("1", core.Reasoning{Text: "t", Signature: "s"}, call("x"), core.Text("b")),
				user("2", core.ToolResult{CallID: "x", IsError: true, Content: []core.Part{core.Text("boom")}}),
			},
			`[{"role":"assistant","content":"b","tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},{"role":"tool","tool_call_id":"x","content":"boom"}]`,
			[]string{
				"message 1: reasoning was left out: openai accepts only what it has signed itself",
				"message 2: the mark of a failed tool call was left out: openai has none",
				"message 1: text after a tool call was moved before it: openai has no order of the two",
			},
		},
		{
			"a failure that says nothing", "anthropic",
			[]core.Message{user("0", core.Text("a")), assistant("1", call("x")), user("2", core.ToolResult{CallID: "x", IsError: true, Content: []core.Part{core.Text(" ")}})},
			`[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"run","input":{"n":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"(no output)","is_error":true}]}]`,
			nil,
		},
		{
			"images", "openai",
			[]core.Message{
				user("0", core.Image{URL: "https://i"}, core.Image{Data: png}, core.Image{URL: "file:///x"}, core.Image{MediaType: "image/bmp", Data: png}, core.Image{MediaType: "image/png", Data: "no!"}),
				assistant("1", call("x"), call("y"), core.Image{URL: "https://i"}),
				user("2", result("x", core.Text("r"), core.Image{MediaType: "image/png", Data: png}), result("y", core.Image{}), core.Text("see")),
			},
			`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://i"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}},{"type":"text","text":"[content of kind \"image\" is not shown here]"},{"type":"text","text":"[content of kind \"image\" is not shown here]"},{"type":"text","text":"[content of kind \"image\" is not shown here]"}]},
			{"role":"assistant","content":"[content of kind \"image\" is not shown here]","tool_calls":[{"id":"x","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}},{"id":"y","type":"function","function":{"name":"run","arguments":"{\"n\":1}"}}]},
			{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":"r"},{"type":"text","text":"(The image follows in the next user message.)"}]},{"role":"tool","tool_call_id":"y","content":"[content of kind \"image\" is not shown here]"},
			{"role":"user","content":[{"type":"text","text":"From the result of tool call x:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}]},
			{"role":"user","content":"see"}]`,
			[]string{
				`message 0: content of kind "image" was replaced by a note: openai has no place for it`,
				`message 0: content of kind "image" was replaced by a note: openai has no place for it`,
				`message 0: content of kind "image" was replaced by a note: openai has no place for it`,
				`message 1: content of kind "image" was replaced by a note: openai has no place for it`,
				`message 2: content of kind "image" in a tool result was replaced by a note: openai has no place for it`,
				"message 1: text after a tool call was moved before it: openai has no order of the two",
				"message 1: images in a tool result were moved to a user message after it: openai takes only text there",
			},
		},
		{
			"blocks of unknown kind", "anthropic",
			[]core.Message{
				user("0", core.Opaque{Kind: "document", JSON: `{"type":"document","source":{}}`}, core.Opaque{Kind: "input_audio", JSON: `{"type":"input_audio"}`}, core.Opaque{Kind: "document", JSON: `{"type":"text"}`}),
				assistant("1", call("x")),
				user("2", result("x", core.Opaque{Kind: "tool_reference", JSON: `{"type":"tool_reference","tool_name":"t"}`}, core.Opaque{Kind: "odd", JSON: `{`})),
			},
			`[{"role":"user","content":[{"type":"document","source":{}},{"type":"text","text":"[content of kind \"input_audio\" is not shown here]"},{"type":"text","text":"[content of kind \"document\" is not shown here]"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"run","input":{"n":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"tool_reference","tool_name":"t"},{"type":"text","text":"[content of kind \"odd\" is not shown here]"}]}]}]`,
			[]string{
				`message 0: content of kind "input_audio" was replaced by a note: anthropic has no place for it`,
				`message 0: content of kind "document" was replaced by a note: anthropic has no place for it`,
				`message 2: content of kind "odd" in a tool result was replaced by a note: anthropic has no place for it`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, warnings := write(t, document(t, test.messages...), test.to)
			want := strings.ReplaceAll(strings.ReplaceAll(test.want, "\n\t\t\t", ""), "\n", "") + "\n"
			if diff := cmp.Diff(strings.ReplaceAll(want, "},{\"role", "},\n{\"role"), strings.ReplaceAll(got, "},{\"role", "},\n{\"role")); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.warnings, warningTexts(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			lint(t, test.to, got)
		})
	}
}

// What a tool keeps in addition to the conversation is lost, and reported.
func TestConvertNamesTheFieldsItLeavesOut(t *testing.T) {
	d := read(t, `{"model":"m","max_tokens":5,"tools":[{"name":"n"}],"system":"s","metadata":{},"messages":[
		{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}]},{"role":"assistant","content":"b","ts":1}]}`, "")
	got, warnings := write(t, d, "openai")
	want := `[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}]` + "\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{
		`fields of messages without a place in the new format were left out: "cache_control" (first in message m1), "ts" (first in message m2)`,
		`fields of the file without a place in the new format were left out: "max_tokens", "metadata", "tools"`,
	}, warningTexts(warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Reasoning that one vendor signed is useless to another.
func TestConvertDropsReasoningOfAnotherVendor(t *testing.T) {
	journal, _ := write(t, read(t, `[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"n","arguments":"{}"}}]}]`, "openai"), "condense")
	d := read(t, journal, "")
	if err := d.Journal.Append(assistant("own", core.Reasoning{Encrypted: "of OpenAI"}, core.Text("b"))); err != nil {
		t.Fatal(err)
	}
	got, warnings := write(t, d, "anthropic")
	if strings.Contains(got, "of OpenAI") || len(warnings) == 0 || warnings[0].Message != "own" {
		t.Errorf("got %s, warnings %v", got, warnings)
	}
}

// A file with line breaks between tokens, as Gemini CLI writes its sessions, becomes lines that
// are whole in the formats of lines.
func TestArgumentsWithLineBreaksStayOnTheirLine(t *testing.T) {
	t.Parallel()
	d := document(t,
		core.Message{ID: "1", Role: core.RoleUser, Parts: []core.Part{core.Text("list")}},
		core.Message{ID: "2", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "c", Name: "ls", Args: "{\r\n  \"a\": 1\n}"}}},
		core.Message{ID: "3", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "c", Content: []core.Part{core.Text("x\ny")}}}},
	)
	for _, f := range transcript.Formats() {
		if f.ReadOnly {
			continue
		}
		out, _ := write(t, d, f.Name)
		again := read(t, out, f.Name)
		if got := count(again.Journal.View(), func(p core.Part) bool { c, ok := p.(core.ToolCall); return ok && strings.Contains(c.Args, `"a":`) }); got != 1 {
			t.Errorf("%s: %d calls with their arguments, want 1\n%s", f.Name, got, out)
		}
	}
}

// A vendor refuses a call with two answers, or none: a result of several texts, of images only or of nothing is one.
func TestEachCallGetsOneAnswer(t *testing.T) {
	answers := map[string]string{ // as each format begins one
		"anthropic": `"tool_result"`, "claudecode": `"tool_result"`, "openai": `"role":"tool"`, "responses": `"function_call_output"`,
		"codex": `"function_call_output"`, "gemini": `"functionResponse"`, "gemini-api": `"functionResponse"`, "bedrock-converse": `"toolResult"`,
		"pi": `"role":"toolResult"`, "copilot": `"tool.execution_complete"`, "roo": `"tool_use_id"`,
		"opencode": `"type":"tool"`, "trace": `"tool_result"`, "condense": `"type":"tool_result"`,
	}
	image := core.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}
	for _, f := range transcript.Formats() {
		if f.ReadOnly {
			continue
		}
		begins, known := answers[f.Name]
		if !known {
			t.Errorf("%s: how does it begin an answer?", f.Name)
			continue
		}
		for _, content := range [][]core.Part{
			{core.Text("a")}, {core.Text("a"), core.Text("b")}, {core.Text("a"), image, core.Text("b")}, {image}, {core.Text("")}, nil,
		} {
			out, _ := write(t, document(t, user("1", core.Text("look")),
				assistant("2", core.ToolCall{ID: "c1", Name: "look", Args: `{}`}),
				core.Message{ID: "3", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "c1", Content: content}}},
				assistant("4", core.Text("seen"))), f.Name)
			if n := strings.Count(strings.ReplaceAll(out, `": "`, `":"`), begins); n != 1 {
				t.Errorf("%s: %d answers for one call with %v:\n%s", f.Name, n, content, out)
			}
		}
	}
}

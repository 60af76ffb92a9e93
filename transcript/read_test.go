package transcript_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/transcript"
)

// without drops what is not said: sources.
func without(messages []core.Message) []core.Message {
	out := make([]core.Message, len(messages))
	for i, m := range messages {
		m.Source = nil
		out[i] = m
	}
	return out
}

func TestReadAnthropic(t *testing.T) {
	d := read(t, `{"model":"claude","system":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"tools":[ 1 ],"messages":[
		{"role":"user","content":"a\u00e9\n\ud83d\ude00\ud83d!"},
		{"role":"assistant","content":[
			{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"enc"},
			{"type":"text","text":""},
			{"type":"tool_use","id":"t1","name":"read","input":{"p": "x"}},{"type":"tool_use","id":"t2","name":"ls"},
			{"type":"server_tool_use","id":"s"}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"t1","content":"out","is_error":true},
			{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"y"},{"type":"image","source":{"type":"url","url":"https://i"}},{"type":"tool_use","id":"no","name":"no"}]},
			{"type":"tool_result","tool_use_id":"t3","content":""},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},
		{"role":"assistant","content":""},{"role":"user","content":null}]}`, "")
	want := []core.Message{
		{ID: "m1", Role: core.RoleUser, Parts: []core.Part{core.Text("aé\n😀\ufffd!")}},
		{ID: "m2", Role: core.RoleAssistant, Parts: []core.Part{
			core.Reasoning{Text: "hm", Signature: "sig"},
			core.Reasoning{Encrypted: "enc"},
			core.Text(""),
			core.ToolCall{ID: "t1", Name: "read", Args: `{"p": "x"}`},
			core.ToolCall{ID: "t2", Name: "ls"},
			core.Opaque{Kind: "server_tool_use", JSON: `{"type":"server_tool_use","id":"s"}`},
		}},
		{ID: "m3", Role: core.RoleUser, Parts: []core.Part{
			core.ToolResult{CallID: "t1", Content: []core.Part{core.Text("out")}, IsError: true},
			core.ToolResult{CallID: "t2", Content: []core.Part{
				core.Text("y"),
				core.Image{URL: "https://i"},
				core.Opaque{Kind: "tool_use", JSON: `{"type":"tool_use","id":"no","name":"no"}`},
			}},
			core.ToolResult{CallID: "t3"},
			core.Image{MediaType: "image/png", Data: "QUJD"},
		}},
		{ID: "m4", Role: core.RoleAssistant},
		{ID: "m5", Role: core.RoleUser},
	}
	if diff := cmp.Diff(want, without(d.Journal.View())); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if d.System != "one\n\ntwo" || d.Model != "claude" || string(d.Tools) != "[ 1 ]" {
		t.Errorf("got system %q, model %q, tools %s", d.System, d.Model, d.Tools)
	}
}

func TestReadOpenAI(t *testing.T) {
	d := read(t, `{"model":"gpt","tools":[2],"messages":[
		{"role":"developer","content":"rules"},
		{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"image_url","image_url":"https://i"},{"type":"file","file":{}}]},
		{"role":"assistant","content":"on it","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"custom","custom":{"name":"g","input":"raw"}}]},
		{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"r"}]},
		{"role":"tool","tool_call_id":"c2","content":""},
		{"role":"assistant","content":null,"refusal":"I won't","audio":{"id":"au"}},
		{"role":"assistant","content":"","function_call":{"name":"old","arguments":"{}"}},
		{"role":"function","name":"old","content":"fine"},
		{"role":"assistant","content":[{"type":"refusal","refusal":"no"}],"reasoning":"hm"}]}`, "")
	want := []core.Message{
		{ID: "m1", Role: core.RoleSystem, Parts: []core.Part{core.Text("rules")}},
		{ID: "m2", Role: core.RoleUser, Parts: []core.Part{
			core.Text("see"),
			core.Image{MediaType: "image/png", Data: "QUJD"},
			core.Image{URL: "https://i"},
			core.Opaque{Kind: "file", JSON: `{"type":"file","file":{}}`},
		}},
		{ID: "m3", Role: core.RoleAssistant, Parts: []core.Part{
			core.Reasoning{Text: "hm"},
			core.Text("on it"),
			core.ToolCall{ID: "c1", Name: "f", Args: `{"a":1}`},
			core.ToolCall{ID: "c2", Name: "g", Args: "raw"},
		}},
		{ID: "m4", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "c1", Content: []core.Part{core.Text("r")}}}},
		{ID: "m5", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "c2"}}},
		{ID: "m6", Role: core.RoleAssistant, Parts: []core.Part{core.Text("I won't"), core.Opaque{Kind: "audio", JSON: `{"id":"au"}`}}},
		{ID: "m7", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "function:old", Name: "old", Args: "{}"}}},
		{ID: "m8", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "function:old", Content: []core.Part{core.Text("fine")}}}},
		{ID: "m9", Role: core.RoleAssistant, Parts: []core.Part{core.Reasoning{Text: "hm"}, core.Text("no")}},
	}
	if diff := cmp.Diff(want, without(d.Journal.View())); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if d.System != "" || d.Model != "gpt" || string(d.Tools) != "[2]" {
		t.Errorf("got system %q, model %q, tools %s", d.System, d.Model, d.Tools)
	}
}

func TestMessagesHaveStableUniqueIDs(t *testing.T) {
	file := func(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }
	messages := []string{
		`{"role":"user","content":"a"}`,
		`{"role":"assistant","content":"b","id":"msg_1"}`,
		`{"role":"user","content":"c","id":"msg_1"}`,
		`{"role":"assistant","content":"d","id":"m5"}`,
		`{"role":"user","content":"e"}`,
		`{"role":"assistant","content":"f","id":7}`,
	}
	want := []string{"m1", "msg_1", "msg_1#2", "m5", "m5#2", "m6"}
	for n := range messages {
		var got []string
		for _, m := range read(t, file(messages[:n+1]...), "").Journal.Messages() {
			got = append(got, m.ID)
		}
		if diff := cmp.Diff(want[:n+1], got); diff != "" {
			t.Errorf("IDs of the first %d (-want +got):\n%s", n+1, diff)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, "anthropic"},
		{`{"messages":[]}`, "anthropic"},
		{`[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[]}]`, "openai"},
		{`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]`, "openai"},
		{`[{"role":"user","content":[{"type":"image","source":{}}]},{"role":"tool","tool_call_id":"x","content":""}]`, "anthropic"},
		{`{"messages":[{"role":"system","content":"s"}]}`, "openai"},
		{`{"source":"x","messages":[{"role":"user","origin":"human","content":[]}]}`, "trace"},
		{`{"condense":{"version":1,"id":"00000000-0000-4000-8000-000000000000"}}`, "condense"},
		{"\xef\xbb\xbf [ ]", "anthropic"},
	} {
		if got, err := transcript.Detect([]byte(test.data)); got != test.want || err != nil {
			t.Errorf("%s: got %s (%v), want %s", test.data, got, err, test.want)
		}
	}
}

func TestFormatsAreDocumentedAndKnown(t *testing.T) {
	for _, f := range transcript.Formats() {
		if f.Doc == "" || strings.Contains(f.Doc, "\n") {
			t.Errorf("%s: doc %q; want one line", f.Name, f.Doc)
		}
		d := document(t, core.Message{ID: "a", Role: core.RoleUser, Parts: []core.Part{core.Text("x")}})
		if _, err := d.Write(io.Discard, f.Name); (err != nil) != f.ReadOnly {
			t.Errorf("%s: write: %v", f.Name, err)
		}
	}
}

// The whole text of an error is its contract: people see nothing else.
func TestBrokenFiles(t *testing.T) {
	all := make([]string, 0, 8)
	for _, f := range transcript.Formats() {
		all = append(all, f.Name)
	}
	oneOf := "want one of " + strings.Join(all, ", ")
	for _, test := range []struct{ name, format, data, want string }{
		{"nothing", "", "", "s.json: unknown format: found an empty file; " + oneOf},
		{"blanks", "", " \n", "s.json: unknown format: found an empty file; " + oneOf},
		{"prose", "", "# Chat with the\nmodel", `s.json: unknown format: found text that begins "# Chat with the"; ` + oneOf},
		{"cut off before its format shows", "", "{\"model\":\"gpt-4.1\",\n\"temperature\":0,\"messages\":[{\"role\":\"us", "s.json: line 2: found the end of the file in the middle of a JSON value, at byte 59; want a complete file; was it cut off?"},
		{"cut off inside a message", "", "[{\"role\":\"user\",\"content\":\"a\"},{\"ro", "s.json: line 1: found the end of the file in the middle of a JSON value, at byte 35; want a complete file; was it cut off?"},
		{"a message without content", "anthropic", "[{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"user\",\"parts\":[]}]", `s.json: line 2: message 2: found a message without "content"; want a message in the shape of the vendor's API`},
		{"a message without content, OpenAI", "openai", "[{\"role\":\"user\",\"text\":\"a\"}]", `s.json: line 1: message 1: found a message without "content"; want a message in the shape of the vendor's API`},
		{"binary", "", "PK\x03\x04\xff" + strings.Repeat("x", 50), "s.json: unknown format: found text that begins \"PK\\x03\\x04�" + strings.Repeat("x", 35) + "…\"; " + oneOf},
		{"UTF-16", "", "\xff\xfe[\x00]\x00", "s.json: unknown format: found UTF-16 text (convert the file to UTF-8); " + oneOf},
		{"other object", "", `{"a":1,"b":{"messages":[]}}`, "s.json: unknown format: found an object with the fields a, b; " + oneOf},
		{"other array", "", `[1,2]`, "s.json: unknown format: found an array of 1; " + oneOf},
		{"array of others", "", `[{"x":1}]`, "s.json: unknown format: found an array of objects with the fields x; " + oneOf},
		{"no such format", "docx", `[]`, `s.json: unknown format "docx"; ` + oneOf},
		{"not gzip", "", "\x1f\x8bno", "s.json: gzip: unexpected EOF"},

		{"nothing, told", "anthropic", "", "s.json: line 1: found nothing; want one JSON value"},
		{"cut off", "anthropic", "[\n{\"role\":\"user\",\n\"content\":\"a", "s.json: line 3: found the end of the file in the middle of a JSON value, at byte 30; want a complete file; was it cut off?"},
		{"not JSON", "anthropic", "[\n{'role'}]", `s.json: line 2: found invalid character '\'' looking for beginning of object key string; want one JSON value`},
		{"two values", "anthropic", "[]\n[]", `s.json: line 2: found invalid character '[' after top-level value; want one JSON value`},
		{"control character", "anthropic", "[{\"role\":\"user\",\"content\":\"a\nb\"}]", `s.json: line 1: found invalid character '\n' in string literal; want one JSON value`},
		{"a number", "anthropic", "\n 7", "s.json: line 2: found 7; want an array of messages, or an object with messages"},
		{"no messages", "anthropic", `{"system":"s"}`, `s.json: line 1: found an object without "messages"; want an array as "messages"`},
		{"messages of another type", "openai", "{\n\"messages\":\n{}}", `s.json: line 3: found an object as "messages"; want an array as "messages"`},
		{"not a message", "anthropic", "[{\"role\":\"user\",\"content\":\"a\"},\n3]", "s.json: line 2: message 2: found 3; want an object with role and content"},
		{"no role", "anthropic", "[\n{\"content\":\"a\"}]", `s.json: line 2: message 1: found no "role"; want a "role" of user or assistant`},
		{"wrong role", "anthropic", `[{"role":"tool","content":"a"}]`, `s.json: line 1: message 1: found the "role" "tool"; want user or assistant`},
		{"wrong role, OpenAI", "openai", `[{"role":"model","content":"a"}]`, `s.json: line 1: message 1: found the "role" "model"; want system, developer, user, assistant, tool or function`},
		{"content", "anthropic", "[{\"role\":\"user\",\n\"content\":5}]", `s.json: line 2: message 1: found 5 as "content"; want a string or an array of blocks`},
		{"content, OpenAI", "openai", `[{"role":"user","content":true}]`, `s.json: line 1: message 1: found true as "content"; want a string, an array of parts, or null`},
		{"block", "anthropic", "[{\"role\":\"user\",\"content\":[\n\"a\"]}]", `s.json: line 2: message 1: found "a" as a block of content; want an object`},
		{"block without type", "anthropic", `[{"role":"user","content":[{}]}]`, `s.json: line 1: message 1: found a block without "type"; want a string that is not empty`},
		{"block with a wrong type", "anthropic", `[{"role":"user","content":[{"type":1}]}]`, `s.json: line 1: message 1: found a block with 1 as "type"; want a string that is not empty`},
		{"text", "anthropic", `[{"role":"user","content":[{"type":"text","text":null}]}]`, `s.json: line 1: message 1: found a text block with null as "text"; want a string`},
		{"call without id", "anthropic", `[{"role":"assistant","content":[{"type":"tool_use","name":"n"}]}]`, `s.json: line 1: message 1: found a tool_use block without "id"; want a string`},
		{"call without name", "anthropic", `[{"role":"assistant","content":[{"type":"tool_use","id":"n","name":{}}]}]`, `s.json: line 1: message 1: found a tool_use block with an object as "name"; want a string`},
		{"result without id", "anthropic", `[{"role":"user","content":[{"type":"tool_result","content":"x"}]}]`, `s.json: line 1: message 1: found a tool_result block without "tool_use_id"; want a string`},
		{"result content", "anthropic", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":{}}]}]`, `s.json: line 1: message 1: found a tool_result block with an object as "content"; want a string or an array of blocks`},
		{"block in result", "anthropic", "[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"x\",\"content\":[\n[]]}]}]", `s.json: line 2: message 1: found an array as a block of content; want an object`},
		{"system", "anthropic", "{\"messages\":[],\n\"system\":[3]}", `s.json: line 2: found 3 as a block of content in "system"; want an object`},
		{"tool message", "openai", `[{"role":"tool","content":"x"}]`, `s.json: line 1: message 1: found a tool message without "tool_call_id"; want the ID of the call that it answers`},
		{"call", "openai", "[{\"role\":\"assistant\",\"tool_calls\":[\n1]}]", `s.json: line 2: message 1: found 1 as a tool call; want an object`},
		{"call without function", "openai", `[{"role":"assistant","tool_calls":[{"id":"x"}]}]`, `s.json: line 1: message 1: found a tool call without "function"; want an object with name and arguments`},
		{"image", "openai", `[{"role":"user","content":[{"type":"image_url"}]}]`, `s.json: line 1: message 1: found an image_url block without "image_url"; want an object with "url"`},
		{"part", "openai", `[{"role":"user","content":[3]}]`, `s.json: line 1: message 1: found 3 as a part of content; want an object`},
		{"long value", "anthropic", `[` + strings.Repeat("9", 60) + `]`, `s.json: line 1: message 1: found ` + strings.Repeat("9", 40) + `…; want an object with role and content`},
		{"deep", "anthropic", `[` + strings.Repeat("[", 10001), `s.json: line 1: found values nested more than 10000 deep; want fewer`},
		{"journal", "condense", `{"condense":{"version":9,"id":"x"}}`, "s.json: line 1: the journal is of version 9 of the format; this program knows versions 1 to 2"},
		{"journal of a stranger", "condense", `{"condense":{"version":1,"id":"00000000-0000-4000-8000-000000000000","meta":{"format":"docx","envelope":{}}}}`, `s.json: line 1: meta: unknown format "docx"; ` + oneOf},
		{"journal with a wrong meta", "condense", `{"condense":{"version":1,"id":"00000000-0000-4000-8000-000000000000","meta":{"format":7}}}`, `s.json: line 1: meta: json: cannot unmarshal number into Go struct field header.format of type string`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := transcript.Read(strings.NewReader(test.data), &transcript.ReadOptions{Format: test.format, Name: "s.json"})
			if err == nil {
				t.Fatal("got no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJournalCutOffIsRead(t *testing.T) {
	d := read(t, `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, "")
	journal, _ := write(t, d, "condense")
	cut := read(t, journal[:len(journal)-20], "")
	if n := len(cut.Journal.Messages()); n != 1 {
		t.Errorf("got %d messages, want the first", n)
	}
	if len(cut.Warnings) != 1 || !strings.HasPrefix(cut.Warnings[0].Text, "line 3 was not completely written") {
		t.Errorf("got warnings %v", cut.Warnings)
	}
}

// A conversation that a host made, not a file, is a journal without a file.
func TestJournalFromNothing(t *testing.T) {
	d := document(t, core.Message{ID: "x", Role: core.RoleUser, Parts: []core.Part{core.Text("a")}})
	d.System, d.Model, d.Tools = "s", "m", json.RawMessage(`[1, 2]`)
	journal, _ := write(t, d, "condense")
	j := read(t, journal, "")
	if j.Origin != "" || j.System != "s" || j.Model != "m" || string(j.Tools) != "[1, 2]" {
		t.Errorf("got origin %q, system %q, model %q, tools %s", j.Origin, j.System, j.Model, j.Tools)
	}
	got, _ := write(t, j, "anthropic")
	if want := `{"system":"s","messages":[{"role":"user","content":"a"}]}` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A file with equal IDs everywhere takes no longer than one with different ones.
func TestReadEqualIDs(t *testing.T) {
	testkit.Linear(t, 10_000, func(n int) func() {
		file := equalIDs(n)
		return func() {
			out, _ := write(t, read(t, file, ""), "anthropic")
			if want := fmt.Sprintf(`"id":"y_%d"`, n); !strings.Contains(out, want) {
				t.Errorf("there is no call with %s", want)
			}
		}
	})
}

func equalIDs(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(`,{"role":"assistant","id":"x","content":null,"tool_calls":[{"id":"y","function":{"name":"n","arguments":""}}]},{"role":"tool","tool_call_id":"y","content":""}`)
	}
	return "[" + b.String()[1:] + "]"
}

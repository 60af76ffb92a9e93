package transcript_test

import (
	"bytes"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// The formats of agents that are read and not written.
var readOnly = map[string]string{
	"aider": "session.md", "claudecode-array": "session.json", "vscode": "session.json", "codex-exec": "stream.jsonl", "goose": "session.jsonl",
	"swe-agent": "session.traj", "chatgpt": "conversation.json",
	"qwen": "session.jsonl",
}

// readOnlySamples yields all test files of these formats.
func readOnlySamples(tb testing.TB) iter.Seq2[string, string] {
	tb.Helper()
	return func(yield func(string, string) bool) {
		for format := range readOnly {
			for _, data := range files(tb, format) {
				if !yield(format, data) {
					return
				}
			}
		}
	}
}

// Sessions of OpenCode, Gemini CLI, pi, Copilot CLI and others are read as these agents send them: who says what,
// calls with their results, failures, what a compaction hides.
func TestSessionsSayWhatTheAgentSends(t *testing.T) {
	t.Parallel()
	image := core.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}
	one := func(role core.Role, parts ...core.Part) core.Message { return core.Message{Role: role, Parts: parts} }
	own := func(text string) core.Message { return one(core.RoleUser, core.Text("<notice>\n"+text+"\n</notice>")) }
	for format, want := range map[string]struct {
		all, view []core.Message
		model     string
		warnings  int
	}{
		"opencode": {
			all: []core.Message{
				one(core.RoleUser, core.Text("The total of an order is wrong. See @order.go")),
				{Role: core.RoleUser, Program: true, Parts: []core.Part{core.Text("<content>\n1: func total()\n</content>"), image}},
				one(
					core.RoleAssistant, core.Reasoning{Text: "**Rounding**"}, core.Text("Let me look."),
					core.ToolCall{ID: "call_1", Name: "bash", Args: `{"command": "go test ./..."}`},
					core.ToolCall{ID: "call_2", Name: "read", Args: `{"filePath": "nowhere.go"}`},
					core.ToolCall{ID: "call_3", Name: "read", Args: `{"filePath": "order.go"}`},
				),
				one(
					core.RoleTool,
					core.ToolResult{CallID: "call_1", Content: []core.Part{core.Text("ok  shop")}},
					core.ToolResult{CallID: "call_2", Content: []core.Part{core.Text("File not found")}, IsError: true},
					core.ToolResult{CallID: "call_3", Content: []core.Part{core.Text("[Old tool result content cleared]")}},
				),
				one(core.RoleAssistant, core.Text("It is the rounding.")),
				one(core.RoleUser, core.Text("What did we do so far?")),
				one(core.RoleAssistant, core.Text("## Goal\n\nFix the total.")),
				one(core.RoleUser, core.Text("Go on.")),
				one(core.RoleAssistant, core.ToolCall{ID: "call_4", Name: "edit", Args: `{"filePath": "order.go"}`}),
			},
			view: []core.Message{
				one(core.RoleUser, core.Text("What did we do so far?")),
				one(core.RoleAssistant, core.Text("## Goal\n\nFix the total.")),
				one(core.RoleUser, core.Text("Go on.")),
				one(core.RoleAssistant, core.ToolCall{ID: "call_4", Name: "edit", Args: `{"filePath": "order.go"}`}),
			},
			model: "claude-sonnet-4.6",
		},
		"gemini": {
			all: []core.Message{
				one(core.RoleUser, core.Text("The total of an order is wrong."), image),
				one(
					core.RoleAssistant, core.Reasoning{Text: "Rounding\nIt may be that."}, core.Text("Let me look."),
					core.ToolCall{ID: "run_1", Name: "run_shell_command", Args: `{"command": "go test ./..."}`},
					core.ToolCall{ID: "read_1", Name: "read_file", Args: `{"file_path": "nowhere.go"}`},
					core.ToolCall{ID: "run_2", Name: "run_shell_command", Args: `{"command": "sleep 9"}`},
					core.ToolCall{ID: "list_1", Name: "list", Args: `{}`},
				),
				one(
					core.RoleTool,
					core.ToolResult{CallID: "run_1", Content: []core.Part{core.Text("ok  shop")}},
					core.ToolResult{CallID: "read_1", Content: []core.Part{core.Text("File not found")}, IsError: true},
					core.ToolResult{CallID: "run_2", Content: []core.Part{core.Text("[Operation Cancelled] Reason: Operation cancelled")}, IsError: true},
					core.ToolResult{CallID: "list_1", Content: []core.Part{core.Text(`{"files": ["order.go"]}`)}},
				),
				one(core.RoleUser, core.Text("Go on.")),
				one(core.RoleAssistant, core.Text("It is the rounding.")),
			},
			model: "gemini-2.5-pro",
		},
		"pi": {
			all: []core.Message{
				one(core.RoleUser, core.Text("The total of an order is wrong."), image),
				one(
					core.RoleAssistant, core.Reasoning{Text: "Rounding?", Signature: "sig"}, core.Text("Let me look."),
					core.ToolCall{ID: "toolu_1", Name: "bash", Args: `{"command":"go test ./..."}`},
					core.ToolCall{ID: "toolu_2", Name: "read", Args: `{"path":"nowhere.go"}`},
				),
				one(core.RoleTool, core.ToolResult{CallID: "toolu_1", Content: []core.Part{core.Text("ok  shop")}}),
				one(core.RoleTool, core.ToolResult{CallID: "toolu_2", Content: []core.Part{core.Text("ENOENT")}, IsError: true}),
				one(core.RoleAssistant, core.Reasoning{Text: "Yes."}, core.Text("It is the rounding.")),
				one(core.RoleUser, core.Text("Ran `git diff`\n```\n-1\n+1\n```\n\nCommand exited with code 1")),
				one(core.RoleUser, core.Text("The conversation history before this point was compacted into the following summary:\n\n<summary>\nThe total is rounded.\n</summary>")),
				one(core.RoleUser, core.Text("Write a test.")),
				one(core.RoleUser, core.Text("Mind the style.")),
				one(core.RoleAssistant, core.Text("Here is the test.")),
			},
			view: []core.Message{
				one(core.RoleUser, core.Text("The conversation history before this point was compacted into the following summary:\n\n<summary>\nThe total is rounded.\n</summary>")),
				one(core.RoleUser, core.Text("Write a test.")),
				one(core.RoleUser, core.Text("Mind the style.")),
				one(core.RoleAssistant, core.Text("Here is the test.")),
			},
			model: "claude-sonnet-4-5", warnings: 1,
		},
		"aider": {
			all: []core.Message{
				own("Aider v0.86.1\nMain model: claude-sonnet-4-5"),
				one(core.RoleUser, core.Text("The total of an order is wrong.\nSee order.go.")),
				one(core.RoleAssistant, core.Text("Let me look.\n\n# Rounding\n\n```sh\n# run the tests\n> not a message of aider\ngo test ./...\n```")),
				own("Tokens: 2.3k sent, 100 received.\nApplied edit to order.go\nAdd file to the chat? (Y)es/(N)o [Yes]: y"),
				one(core.RoleUser, core.Text("/ask Why?")),
				one(core.RoleUser, core.Text("Go on.")),
				one(core.RoleAssistant, core.Text("It is the rounding.")),
				own("Model: local/coder with architect edit format\npkg/order.go\nAdd file to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]: all"),
				one(core.RoleUser, core.Text("/architect Round once.\n    total := round(sum)")),
				one(core.RoleAssistant, core.Reasoning{Text: "Which line?"}, core.Text("> As the spec says: round at the end.\n\n## Plan\n\nRound in `Total`, once.")),
				own("Tokens: 3k sent, 40 received."),
				own("> As the spec says: round at the end.\n\n## Plan\n\nRound in `Total`, once."),
				one(core.RoleAssistant, core.Text("order.go\n```go\nfunc Total() {")),
				own("^C KeyboardInterrupt\n# 1 SEARCH/REPLACE block failed to match!\n\n<<<<<<< SEARCH\n>>>>>>> REPLACE\n\nIt must match exactly.\n" +
					"Attempt to fix lint errors? (Y)es/(N)o [Yes]: y"),
				one(core.RoleAssistant, core.Reasoning{Text: "Only thought"}),
				own("Tokens: 3k sent, 2 received."),
				one(core.RoleUser, core.Text("Round in `Total`, once.")),
			},
		},
		"copilot": {
			all: []core.Message{
				one(core.RoleUser, core.Text("<current_datetime>2026-06-18</current_datetime>\n\nThe total of an order is wrong."), image),
				one(
					core.RoleAssistant, core.Reasoning{Text: "Rounding?"}, core.Text("Let me look."),
					core.ToolCall{ID: "call_1", Name: "bash", Args: `{"command":"go test ./..."}`},
					core.ToolCall{ID: "call_2", Name: "view", Args: `{"path":"nowhere.go"}`},
				),
				one(core.RoleTool, core.ToolResult{CallID: "call_1", Content: []core.Part{core.Text("ok  shop")}}),
				one(core.RoleTool, core.ToolResult{CallID: "call_2", Content: []core.Part{core.Text("Path does not exist")}, IsError: true}),
				one(core.RoleAssistant, core.Text("It is the rounding.")),
				one(core.RoleUser, core.Text("<overview>\nThe total is rounded.\n</overview>")),
				one(core.RoleUser, core.Text("Write a test.")),
				one(core.RoleAssistant, core.ToolCall{ID: "call_3", Name: "apply_patch", Args: `"*** Begin Patch"`}),
			},
			view: []core.Message{
				one(core.RoleUser, core.Text("<overview>\nThe total is rounded.\n</overview>")),
				one(core.RoleUser, core.Text("Write a test.")),
				one(core.RoleAssistant, core.ToolCall{ID: "call_3", Name: "apply_patch", Args: `"*** Begin Patch"`}),
			},
			model: "claude-sonnet-4.5", warnings: 1,
		},
	} {
		name := readOnly[format]
		switch format { // those that are written too
		case "copilot", "pi":
			name = "session.jsonl"
		case "gemini", "opencode":
			name = "session.json"
		}
		d := read(t, files(t, format)[name], "")
		if d.Format != format || d.Model != want.model || len(d.Warnings) != want.warnings {
			t.Errorf("%s: read as %s of %s, warnings %v", format, d.Format, d.Model, d.Warnings)
		}
		var all []core.Message
		for _, e := range d.Journal.Timeline() {
			all = append(all, e.Message)
		}
		if diff := cmp.Diff(want.all, words(all)); diff != "" {
			t.Errorf("%s: all (-want +got):\n%s", format, diff)
		}
		if want.view == nil {
			want.view = want.all
		}
		if diff := cmp.Diff(want.view, words(d.Journal.View())); diff != "" {
			t.Errorf("%s: view (-want +got):\n%s", format, diff)
		}
		if !d.Journal.View()[0].Time.After(d.Journal.Messages()[0].Time.AddDate(-1, 0, 0)) || d.Journal.Messages()[0].Time.IsZero() {
			t.Errorf("%s: the times are lost", format)
		}
	}
}

// A log of Gemini CLI is read as it would go on: the last of the lines of a message counts, what
// was rewound is gone, and a history that was set is a condensation, which can be undone.
func TestGeminiLog(t *testing.T) {
	t.Parallel()
	d := read(t, files(t, "gemini")["log.jsonl"], "")
	says := func() string { return strings.TrimSpace(outline(d)) }
	want := `m-1 user: "The total of an order is"
m-2 assistant: thought "Rounding?"  "Let me look." call run_1 run_shell_command("{\"command\":\"go test ./...\"}")
m-2.2 tool: result run_1: "FAIL shop: a very long o"
m-4 assistant: "It is the rounding."
m-5 user: "Go on."
m-6 assistant: call edit_1 replace("{\"file_path\":\"order.go\"}")
m-6.2 tool: result edit_1: "no match" failed
warning: 1 message rewound: kept in the file, but not part of the conversation`
	set := `s-1 user summary: "<state_snapshot>The tota"
s-2 assistant summary: "Got it. Thanks for the a"
` + strings.Replace(want[strings.Index(want, "m-2 "):], "FAIL shop: a very long o", "FAIL [masked]", 1)
	set = strings.Replace(set, "warning:", "history-11 by gemini : 0 tokens, hides [m-1], inserts s-1 s-2\nwarning:", 1)
	if diff := cmp.Diff(set, says()); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if err := d.Journal.Undo("history-11"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, says()); diff != "" {
		t.Errorf("without what was set (-want +got):\n%s", diff)
	}
	if d.Model != "gemini-3-pro" {
		t.Errorf("model %q", d.Model)
	}
}

// They are written back byte for byte, from a journal too; what is condensed is written in
// every other format, and refused in their own with what to do.
func TestSessionsThatAreOnlyReadAreWrittenElsewhere(t *testing.T) {
	t.Parallel()
	for format, data := range readOnlySamples(t) {
		for _, data := range []string{data, strings.ReplaceAll(data, "\n", "\r\n"), "\xef\xbb\xbf" + data} {
			d := read(t, data, "")
			if got, warnings := write(t, d, ""); got != data || len(warnings) > 0 {
				t.Errorf("%s: unchanged: warnings %v, got %s", format, warnings, got)
			}
			journal, _ := write(t, d, "condense")
			if got, _ := write(t, read(t, journal, ""), format); got != data {
				t.Errorf("%s: from the journal: %s", format, got)
			}
			condense(t, d, groupEdit(d))
			for _, f := range transcript.Formats() {
				var out bytes.Buffer
				_, err := d.Write(&out, f.Name)
				if f.ReadOnly {
					if err == nil || out.Len() > 0 || !strings.Contains(err.Error(), "choose another format for the output") {
						t.Errorf("%s as %s: wrote %d bytes, %v", format, f.Name, out.Len(), err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s as %s: %v", format, f.Name, err)
				} else if all := faults(f.Name, out.String()); len(all) > 0 && (f.Name == "anthropic" || f.Name == "openai") {
					t.Errorf("%s as %s: %v\n%s", format, f.Name, all, out.String())
				}
			}
			undo(t, d)
			if got, _ := write(t, d, ""); got != data {
				t.Errorf("%s: after undo: %s", format, got)
			}
		}
	}
}

// A conversation of any shape keeps who said what, the pairs of calls and results, and
// failures, on its way from these formats through all others.
func TestSessionsThatAreOnlyReadKeepPairsAndFailures(t *testing.T) {
	t.Parallel()
	for format, data := range readOnlySamples(t) {
		d := read(t, data, "")
		for _, c := range d.Journal.Condensations() { // everything
			if err := d.Journal.Undo(c.ID); err != nil {
				t.Fatal(err)
			}
		}
		want := contentOf("", d.Journal.View())
		for _, f := range transcript.Formats() {
			if f.ReadOnly {
				continue
			}
			out, _ := write(t, d, f.Name)
			back := read(t, out, f.Name)
			got := contentOf(back.System, back.Journal.View())
			if lost := missing(want.words, got.words); lost != nil {
				t.Errorf("%s as %s: words lost: %q", format, f.Name, lost)
			}
			if lost := missing(want.pairs, got.pairs); lost != nil {
				t.Errorf("%s as %s: results lost their calls: %q", format, f.Name, lost)
			}
			failed := func(messages []core.Message) int {
				return count(messages, func(p core.Part) bool { r, ok := p.(core.ToolResult); return ok && r.IsError })
			}
			if !unmarked[f.Name] && failed(back.Journal.View()) < failed(d.Journal.View()) {
				t.Errorf("%s as %s: failures lost", format, f.Name)
			}
		}
	}
}

func TestBrokenSessionsThatAreOnlyRead(t *testing.T) {
	t.Parallel()
	const session = `{"type":"session","id":"s","cwd":"/"}` + "\n"
	for _, test := range []struct{ format, data, want string }{
		{"opencode", `{"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"},"parts":[{"text":"x"}]}]}`, `f: line 1: message 1: found a part block without "type"; want a string`},
		{"opencode", `{"info":{"id":"ses_1"},"messages":[{"info":{"role":"model"},"parts":[]}]}`, `f: line 1: message 1: found the "role" "model"; want user or assistant`},
		{"opencode", `{"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"}}]}`, `f: line 1: message 1: found a message without "parts"; want an array as "parts"`},
		{"opencode", `{"info":{"id":"ses_1"}}`, `f: line 1: found an object without "messages"; want an array as "messages"`},
		{"gemini", "{\"messages\":[\n{\"type\":\"user\",\"content\":[3]}]}", `f: line 2: message 1: found 3 as a part of content; want an object`},
		{"gemini", `{"messages":[{"content":"x"}]}`, `f: line 1: message 1: found a message block without "type"; want a string`},
		{"gemini", `{"messages":[{"type":"gemini","content":"","toolCalls":[{"name":"n"}]}]}`, `f: line 1: message 1: found a tool call block without "id"; want a string, and one as name`},
		{"gemini", "{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n{\"id\":\"m\",\"type\":\"user\",\"content\":[3]}", `f: line 2: message 1: found 3 as a part of content; want an object`},
		{"copilot", `{"type":"session.start","data":{"sessionId":"s"}}` + "\n" + `{"type":"assistant.message","data":{"content":"","toolRequests":[{"name":"n"}]}}`, `f: line 2: message 1: found a tool request block without "toolCallId"; want a string, and one as name`},
		{"copilot", `{"type":"session.start","data":{"sessionId":"s"}}` + "\n" + `{"data":{}}`, `f: line 2: message 1: found an event block without "type"; want a string`},
		{"pi", session + `{"type":"message","id":"a","parentId":null,"message":{"role":"robot"}}`, `f: line 2: message 1: found the "role" "robot"; want user, assistant or toolResult`},
		{"pi", session + `{"type":"message","id":"a","parentId":null,"message":{"role":"user"}}`, `f: line 2: message 1: found a message without "content"; want a message in the shape of the vendor's API`},
		{"pi", session + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[{"type":"text"}]}}`, `f: line 2: message 1: found a text block without "text"; want a string`},
	} {
		_, err := transcript.Read(strings.NewReader(test.data), &transcript.ReadOptions{Format: test.format, Name: "f"})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s\ngot  %v\nwant %s", test.data, err, test.want)
		}
	}
}

// A session in which nothing was said is never silently empty: editors' servers of Gemini CLI leave some that hold its own context only.
func TestSessionsWithoutMessagesSaySo(t *testing.T) {
	t.Parallel()
	const head = `{"sessionId":"a2a-server","projectHash":"4728","startTime":"2026-06-19T09:34:57.464Z","kind":"main"}` + "\n"
	for _, data := range []string{
		head,
		head + `{"$set":{"messages":[{"id":"d","timestamp":"2026-06-19T09:34:57.465Z","type":"user","content":[{"text":"<session_context>\nx\n</session_context>"}]}]}}` + "\n",
	} {
		if d := read(t, data, ""); len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0].Text, "a session without messages: an object with the fields sessionId") {
			t.Errorf("warnings %v", d.Warnings)
		}
	}
}

// An export with several conversations is refused with their titles and what to do, and so is one whose form is wrong.
func TestBrokenExports(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`[{"title":"A","mapping":{}},{"title":"B","mapping":{}}]`:                      `f: line 1: found 2 conversations: 0 "A", 1 "B", …; want one, as jq '.[0]' conversations.json writes it`,
		"{\"requests\":[],\n\"sessionId\":\"s\"":                                       `f: line 2: found the end of the file in the middle of a JSON value, at byte 31; want a complete file; was it cut off?`,
		`{"history":[{"role":"system","content":"s"},{"role":"ghost","content":"x"}]}`: `f: line 1: message 1: found the "role" "ghost"; want system, user, assistant or tool`,
		"{\"type\":\"thread.started\"}\nstopped\n{\"type\":\"turn.started\"}":          "f: line 2: found invalid character 's' looking for beginning of value; want one JSON object on every line",
	} {
		_, err := transcript.Read(strings.NewReader(data), &transcript.ReadOptions{Name: "f"})
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", data, err, want)
		}
	}
}

// No file makes a panic, and what can be read is written back byte for byte.
func FuzzSessions(f *testing.F) {
	for format, data := range readOnlySamples(f) {
		f.Add(format, []byte(data))
	}
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		if readOnly[format] == "" {
			return
		}
		d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: format})
		if err != nil {
			return
		}
		if got, _ := write(t, d, ""); got != string(data) && !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			t.Fatalf("unchanged\ngot  %q\nwant %q", got, data)
		}
		journal, _ := write(t, d, "condense")
		if got, _ := write(t, read(t, journal, ""), format); got != string(data) && !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			t.Fatalf("from the journal\ngot  %q\nwant %q", got, data)
		}
		if err := d.Journal.Condense(history.Condensation{ID: "c9", Edit: someEdit(d)}); err != nil {
			return // an ID of the file's own
		}
		for _, to := range []string{"anthropic", "openai"} {
			out, _ := write(t, d, to)
			if all := faults(to, out); len(all) > 0 && d.Journal.Len() > 0 {
				t.Fatalf("%s would refuse it: %v\n%s", to, all, out)
			}
		}
	})
}

// A compaction with nothing before it hides nothing; its record has no place of its own, and a
// journal must not write it twice.
func TestCompactionAtTheStartIsWrittenOnce(t *testing.T) {
	t.Parallel()
	const data = `{"type":"session","version":3,"id":"s","cwd":"/"}
{"type":"compaction","id":"c1","parentId":null,"summary":"Before.","firstKeptEntryId":"x"}
`
	journal, _ := write(t, read(t, data, ""), "condense")
	if got, _ := write(t, read(t, journal, ""), "pi"); got != data {
		t.Errorf("got %s", got)
	}
}

// TestLostLeaf: a conversation whose last message is named, but is not in the file, is the branch that ends last.
func TestLostLeaf(t *testing.T) {
	t.Parallel()
	for format, data := range map[string]string{
		"chatgpt": `{"title":"t","current_node":"gone","mapping":{
			"a":{"message":{"id":"a","author":{"role":"user"},"content":{"content_type":"text","parts":["hello"]}}},
			"b":{"parent":"a","message":{"id":"b","author":{"role":"assistant"},"recipient":"all","content":{"content_type":"text","parts":["yes"]}}}}}`,
	} {
		if d := read(t, data, ""); d.Format != format || len(d.Journal.View()) != 2 {
			t.Errorf("%s: %s", format, outline(d))
		}
	}
}

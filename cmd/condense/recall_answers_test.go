package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/transcript"
)

// TestRecallAnswers: whatever a model tries, it gets the content or the next thing to try, on the command line as from the tool, which
// an MCP
// server and the gateway answer with the same code.
func TestRecallAnswers(t *testing.T) {
	alone(t)
	say := func(id string, role core.Role, parts ...core.Part) core.Message {
		return core.Message{ID: id, Role: role, Parts: parts}
	}
	read := func(id, path string) core.Part {
		return core.ToolCall{ID: id, Name: "Read", Args: `{"file_path":"` + path + `"}`}
	}
	result := func(id, text string) core.Part {
		return core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}
	}
	j := history.New()
	must(t, j.Append(
		say("u1", core.RoleUser, core.Text("Why does the pump stop?")),
		say("a2", core.RoleAssistant, read("c1", "/r/src/server.go"), core.ToolCall{ID: "c2", Name: "Bash", Args: `{"command":"go test ./..."}`}),
		say("u3", core.RoleUser, result("c1", "package src\nfunc startPump(n int) {\n\treturn\n}\n"), result("c2", "--- FAIL: TestPump\nexit status 1\n")),
		say("a4", core.RoleAssistant, read("c3", "/r/src/valve.go"), read("c4", "/r/test/valve.go")),
		say("u5", core.RoleUser, result("c3", "package src\nvar Valve = 7\n"), result("c4", "package test\nvar Valve = 8\n")),
		say("a6", core.RoleAssistant, core.Text("The valve is shut.")),
		say("u7", core.RoleUser, core.Text("Thanks.")),
	))
	must(t, j.Condense(history.Condensation{ID: "C", Edit: core.Edit{Hide: []string{"u1", "a2", "u3", "a4", "u5"}}}))
	var b bytes.Buffer
	_, err := (&transcript.Document{Journal: j}).Write(&b, "condense")
	must(t, err)
	must(t, os.WriteFile("session.jsonl", b.Bytes(), 0o600))
	state := &mcpserver.State{Conversation: recall.New(j), Records: true}
	const pump, fails, valve = "func startPump(n int) {", "--- FAIL: TestPump", "var Valve = 7"
	for _, tt := range []struct{ what, tool, command string }{ // an empty command: as tool
		{"m3.1", pump, ""},
		{"3.1", pump, ""},
		{"M3.1", pump, ""},
		{"m003.1", pump, ""},
		{"[m3.1]", pump, ""},
		{"#3.1", pump, ""},
		{"message 3", fails, ""},
		{"m2-3", fails, ""},
		{"m3.2, m5", valve, ""},
		{"m3.2, m5", fails, ""},
		{"m3.1 Read src/server.go (20); m3.2 Bash go test → exit status 1 (9)", fails, ""},
		{"m3.2 Bash go test ./... → exit status 1 (9)", fails, ""},
		{"[… 3 lines m3.1]", pump, ""},
		{"server.go", pump, ""},
		{"src/server.go", pump, ""},
		{"SRC/Server.go", pump, ""},
		{"src/valve.go, server.go", "no line matches, in lower and upper case; try one word of it", "a number is such as m41"},
		{"valve.go", "name one of: /r/src/valve.go, /r/test/valve.go", ""},
		{"startPump", pump, "searched with grep"},
		{"startpump", pump, "searched with grep"},
		{"func start.*int", pump, "this conversation has messages m1 to m7"},
		{"startPump(n", pump, "searched with grep"},
		{"m99", "no message m99: this conversation has messages m1 to m7", ""},
		{"m3.9", "no result m3.9: message m3 has 2 results", ""},
		{"m7-m3", "this conversation has messages m1 to m7", ""},
		{"serve.go", "this conversation has messages m1 to m7", "this conversation has messages m1 to m7"},
		{"0123456789", "grep alone finds lines", "lists what is hidden"},
		{"nothing like that", "this conversation has messages m1 to m7", "this conversation has messages m1 to m7"},
	} {
		raw, err := json.Marshal(map[string]string{"what": tt.what})
		must(t, err)
		got, err := state.Recall(t.Context(), raw)
		if err != nil {
			got = append(got, err.Error())
		}
		if all := strings.Join(got, "\n"); !strings.Contains(all, tt.tool) {
			t.Errorf("the tool with %s: %s", raw, all)
		}
		if got := in(t, "recall", "session.jsonl", tt.what); !strings.Contains(got, cmp.Or(tt.command, tt.tool)) {
			t.Errorf("the command with %q: %s", tt.what, got)
		}
	}
	for args, want := range map[string]string{
		`{"file":"server.og"}`:                 `did you mean "server.go"?`,
		`{"file":"server.go, src/valve.go"}`:   "; did you mean",
		`{"file":"server.go","lines":"2"}`:     "lines 2-2 of 4",
		`{"file":"server.go","lines":"40-80"}`: "the text has 4 lines",
		`{"what":"m3.1","grep":"STARTPUMP"}`:   pump,
		`{"what":"m3.1","grep":"boiler"}`:      "no line matches, in lower and upper case",
		`{"grep":"startpump"}`:                 pump,
		`{"grep":"boiler"}`:                    "this conversation has messages m1 to m7",
		`{"grep":"("}`:                         "the syntax is RE2",
		`{"what":"server.go","grep":"func"}`:   pump,
		`{"what":"m3","tokens":4}`:             "next: offset ",
		`{"what":"startPump","tokens":1}`:      "next: offset ",
		`{"what":"m3.1","head":1}`:             "lines 1-1 of 4",
		`{}`:                                   "a number such as m41.2, a handle, or a file",
		`{"what":"m3.1","file":"server.go"}`:   "not both",
		`{"file":"server.go","at":"m1"}`:       "no call read or changed a file server.go",
	} {
		got, err := state.Recall(t.Context(), []byte(args))
		if err != nil {
			got = append(got, err.Error())
		}
		if all := strings.Join(got, "\n"); !strings.Contains(all, want) {
			t.Errorf("%s: %s", args, all)
		}
	}
}

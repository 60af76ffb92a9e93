package dialog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
)

// FuzzRead: passages put together are the text, and so are segments.
func FuzzRead(f *testing.F) {
	f.Add("<read_file>\n<path>a</path>\n</read_file>\nx", "[read_file for 'a'] Result:\n<file><path>a</path>\n<content lines=\"1-2\">x</content></file><environment_details>\n</environment_details>")
	f.Add("", "Caveat: x<feedback>no</feedback><system-reminder>\n</system-reminder>")
	f.Fuzz(func(t *testing.T, assistant, user string) {
		result := func(id, text string) core.Part {
			return core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}
		}
		messages := []core.Message{
			{Role: core.RoleAssistant, Parts: []core.Part{core.Text(assistant), core.ToolCall{ID: "r", Name: "Read", Args: user}, core.ToolCall{ID: "b", Name: "Bash"}}},
			{Role: core.RoleTool, Parts: []core.Part{result("r", user), result("b", user), result("none", user), result("r", assistant)}},
			{Role: core.RoleUser, Parts: []core.Part{core.Text(user), core.Text(assistant)}},
		}
		d := Read(messages)
		for i, m := range messages {
			for j, p := range m.Parts {
				want := ""
				switch p := p.(type) {
				case core.Text:
					want = string(p)
				case core.ToolCall:
					want = p.Args
				case core.ToolResult:
					want = string(p.Content[0].(core.Text))
				case core.Image, core.Opaque, core.Reasoning:
				}
				part := &d.Messages[i][j]
				got := ""
				for _, pass := range part.Passages {
					got += pass.Text
				}
				if got != want {
					t.Errorf("message %d, part %d: passages %q, want %q", i, j, got, want)
				}
				segments := part.Segments()
				if r, ok := p.(core.ToolResult); ok {
					segments = part.Answer(0, r.Content[0].(core.Text))
				}
				if segments == nil {
					continue
				}
				got = ""
				for _, s := range segments {
					got += s.Text
				}
				if got != want {
					t.Errorf("message %d, part %d: segments %q, want %q", i, j, got, want)
				}
			}
		}
	})
}

// outline writes what was read: a line for each passage, with its kind, tool and file.
func outline(d *Dialog) string {
	var b strings.Builder
	for i, m := range d.Messages {
		for _, part := range m {
			for _, p := range part.Passages {
				fmt.Fprintf(&b, "%d %s", i, p.Kind)
				if p.Use != nil {
					fmt.Fprintf(&b, " %s(%s)", p.Use.Name, p.Use.Info.Target)
				}
				if p.File.Path != "" {
					fmt.Fprintf(&b, " %s:%d-%d", p.File.Path, p.File.Range.First, p.File.Range.Last)
				}
				fmt.Fprintf(&b, " %q\n", p.Text)
			}
		}
	}
	return b.String()
}

func say(role core.Role, parts ...core.Part) core.Message {
	return core.Message{Role: role, Parts: parts}
}

func toolSays(id, text string) core.Message {
	return say(core.RoleTool, core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}})
}

func TestReadNative(t *testing.T) {
	d := Read([]core.Message{
		say(core.RoleSystem, core.Text("You are an agent.")),
		say(core.RoleUser, core.Text("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nNo tabs.\n</INSTRUCTIONS>"), core.Text("Repair it.\n<system-reminder>\nx\n</system-reminder>")),
		say(core.RoleAssistant, core.Reasoning{Text: "Look."}, core.Text("I look."), core.ToolCall{ID: "1", Name: "Read", Args: `{"file_path":"a.go","offset":10,"limit":5}`}, core.ToolCall{ID: "2", Name: "Bash", Args: `{"command":"ls"}`}),
		toolSays("2", "a.go"),
		toolSays("1", "package a"),
		say(core.RoleAssistant, core.ToolCall{ID: "3", Name: "Edit", Args: `{"file_path":"a.go"}`}),
		toolSays("3", "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nnot that file"),
		toolSays("lost", "of no call"),
	})
	want := `0 system "You are an agent."
1 project_rules "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nNo tabs.\n</INSTRUCTIONS>"
1 user "Repair it.\n"
1 injected "<system-reminder>\nx\n</system-reminder>"
2 reasoning "Look."
2 assistant "I look."
2 tool_call Read(a.go) "{\"file_path\":\"a.go\",\"offset\":10,\"limit\":5}"
2 tool_call Bash(ls) "{\"command\":\"ls\"}"
3 tool_result Bash(ls) "a.go"
4 tool_result Read(a.go) a.go:10-14 "package a"
5 tool_call Edit(a.go) "{\"file_path\":\"a.go\"}"
6 tool_result Edit(a.go) "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, "
6 user Edit(a.go) "the user said:\nnot that file"
7 tool_result tool() "of no call"
`
	if diff := cmp.Diff(want, outline(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if u := d.Uses[0]; !u.Called || u.Message != 4 || u.IsError() {
		t.Errorf("the first use is %+v", u)
	}
	if u := d.Uses[3]; u.Called || u.Message != 7 {
		t.Errorf("the use of a result without a call is %+v", u)
	}
}

func TestReadTextProtocol(t *testing.T) {
	d := Read([]core.Message{
		say(core.RoleAssistant, core.Text("I read two.\n<read_file>\n<path>a.ts</path>\n</read_file>\n<execute_command>\n<command>npm test</command>\n</execute_command>")),
		say(core.RoleUser, core.Text("[execute_command for 'npm test'] Result:"), core.Text("<error>\nfailed\n</error>"),
			core.Text("[read_file for 'a.ts'] Result:"), core.Text("<file><path>a.ts</path>\n<content lines=\"3-4\">\nx\n</content>\n</file>"),
			core.Text("<environment_details>\nnow\n</environment_details>")),
	})
	want := `0 assistant "I read two.\n"
0 tool_call read_file(a.ts) "<read_file>\n<path>a.ts</path>\n</read_file>"
0 assistant "\n"
0 tool_call execute_command(npm test) "<execute_command>\n<command>npm test</command>\n</execute_command>"
1 header "[execute_command for 'npm test'] Result:"
1 tool_result execute_command(npm test) "<error>\nfailed\n</error>"
1 header "[read_file for 'a.ts'] Result:"
1 tool_result read_file(a.ts) a.ts:3-4 "<file><path>a.ts</path>\n<content lines=\"3-4\">\nx\n</content>\n</file>"
1 environment "<environment_details>\nnow\n</environment_details>"
`
	if diff := cmp.Diff(want, outline(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !d.Uses[1].IsError() || d.Uses[0].IsError() {
		t.Errorf("errors: %v, %v, want the second only", d.Uses[0].IsError(), d.Uses[1].IsError())
	}
}

// TestReaderRemembers: of a conversation that was read before, only messages with new content are
// taken apart, and results are linked to the calls that are still there.
func TestReaderRemembers(t *testing.T) {
	messages := []core.Message{
		say(core.RoleUser, core.Text("Go.")),
		say(core.RoleAssistant, core.ToolCall{ID: "1", Name: "Read", Args: `{"file_path":"a.go"}`}),
		toolSays("1", "package a"),
		say(core.RoleUser, core.Text("Aider v0.1"), core.Text("more")),
		say(core.RoleUser, core.Text("/run ls")),
	}
	var r Reader
	first := outline(r.Read(messages))
	if again := outline(r.Read(messages)); again != first || r.Parsed() != len(messages) {
		t.Errorf("parsed %d messages of %d\n%s", r.Parsed(), len(messages), cmp.Diff(first, again))
	}
	changed := append([]core.Message(nil), messages...)
	changed[2] = toolSays("1", "short")
	if got, want := outline(r.Read(changed)), outline(Read(changed)); got != want || r.Parsed() != len(messages)+1 {
		t.Errorf("one message changed: parsed %d in all (-want +got):\n%s", r.Parsed(), cmp.Diff(want, got))
	}
	tail := messages[2:]
	if got, want := outline(r.Read(tail)), outline(Read(tail)); got != want || r.Parsed() != len(messages)+1 {
		t.Errorf("a part: parsed %d in all (-want +got):\n%s", r.Parsed(), cmp.Diff(want, got))
	}
	// What aider printed before says who wrote the last one.
	tail = messages[4:]
	if got, want := outline(r.Read(tail)), outline(Read(tail)); got != want {
		t.Errorf("without aider (-want +got):\n%s", cmp.Diff(want, got))
	}
}

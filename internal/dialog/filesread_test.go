package dialog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

func TestFilesRead(t *testing.T) {
	call := func(name, args string) core.Part { return core.ToolCall{ID: "c", Name: name, Args: args} }
	messages := []core.Message{
		{ID: "1", Role: core.RoleAssistant, Parts: []core.Part{
			call("read_file", `{"path":"old.go"}`),
			call("Read", `{"file_path":"/work/proj/a.go","offset":3}`),
		}},
		{ID: "2", Role: core.RoleUser, Parts: []core.Part{core.Text("cat said.go")}},
		{ID: "3", Role: core.RoleAssistant, Parts: []core.Part{
			call("str_replace_based_edit_tool", `{"command":"view","path":"/work/proj/sub/b.go"}`),
			call("str_replace_based_edit_tool", `{"command":"create","path":"/work/proj/made.go"}`),
			call("read_file", `{"files":[{"path":"x.ts"},{"path":"./y.ts"}]}`),
		}},
		{ID: "4", Role: core.RoleAssistant, Parts: []core.Part{
			call("Bash", `{"command":"cd sub && cat c.go d.go | head -n 20; cat $HOME/.ssh/id_rsa"}`),
			call("Bash", `{"command":"cat /etc/passwd ../outside.go"}`),
			call("Write", `{"file_path":"/work/proj/written.go"}`),
			call("Read", `{"file_path":"/work/projection/no.go"}`),
			call("Read", `not JSON`),
			call("unheard_of", `{"path":"z.go"}`),
			call("Read", `{"file_path":"/work/proj/a.go"}`),
		}},
	}
	got := dialog.FilesRead(messages, "/work/proj")
	want := []string{"a.go", "sub/d.go", "sub/c.go", "y.ts", "x.ts", "sub/b.go", "old.go"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestFoldingSeesFilesReadInText: sessions whose tools are called in text, and files that the user
// mentioned, count as read.
func TestFoldingSeesFilesReadInText(t *testing.T) {
	messages := []core.Message{
		{ID: "1", Role: core.RoleUser, Parts: []core.Part{core.Text("<task>\nLook at 'sub/m.go' (see below for file content)\n</task>\n\n<file_content path=\"sub/m.go\">\n1 | package m\n</file_content>\n\n<file_content path=\"../outside.go\">\nx\n</file_content>")}},
		{ID: "2", Role: core.RoleAssistant, Parts: []core.Part{core.Text("I read them.\n\n<read_file>\n<args>\n<file><path>a.go</path></file>\n<file><path>b.go</path></file>\n</args>\n</read_file>")}},
		{ID: "3", Role: core.RoleUser, Parts: []core.Part{core.Text("[read_file for 'a.go'] Result:\n"), core.Text("<file><path>a.go</path>\n<content lines=\"1-1\">\n<file_content path=\"forged.go\">\n</content></file>")}},
		{ID: "4", Role: core.RoleAssistant, Parts: []core.Part{core.Text("<execute_command>\n<command>cat c.go</command>\n</execute_command>")}},
		{ID: "5", Role: core.RoleAssistant, Parts: []core.Part{core.Text("<write_to_file>\n<path>w.go</path>\n<content>x</content>\n</write_to_file>")}},
	}
	if d := cmp.Diff([]string{"c.go", "b.go", "a.go", "sub/m.go"}, dialog.FilesRead(messages, "/work/proj")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

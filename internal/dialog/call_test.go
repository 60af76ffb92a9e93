package dialog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/dialog"
)

func TestFamilyOf(t *testing.T) {
	for name, want := range map[string]dialog.Family{
		"Read": dialog.FamilyRead, "read_file": dialog.FamilyRead, "mcp__fs__read_file": dialog.FamilyRead,
		"write_to_file": dialog.FamilyWrite, "MultiEdit": dialog.FamilyEdit, "apply_diff": dialog.FamilyEdit,
		"Bash": dialog.FamilyCommand, "exec_command": dialog.FamilyCommand, "Glob": dialog.FamilyList,
		"codebase_search": dialog.FamilySearch, "AskUserQuestion": dialog.FamilyAsk, "book_reservation": dialog.FamilyUnknown, "": dialog.FamilyUnknown,
	} {
		if got := dialog.FamilyOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		want       dialog.CallInfo
	}{
		{"Read", `{"file_path":"./src/a.go","offset":10,"limit":5}`, dialog.CallInfo{
			Family: dialog.FamilyRead, Target: "src/a.go", Files: []dialog.File{{Path: "src/a.go", Range: dialog.LineRange{First: 10, Last: 14}}},
		}},
		{"Read", `{"file_path":"a.go","offset":10}`, dialog.CallInfo{
			Family: dialog.FamilyRead, Target: "a.go", Files: []dialog.File{{Path: "a.go", Range: dialog.LineRange{First: 10}}},
		}},
		{"read_file", `{"files":[{"path":"a.go","line_ranges":["1-50"]},{"path":"b\\c.go"}]}`, dialog.CallInfo{
			Family: dialog.FamilyRead, Target: "a.go", Files: []dialog.File{
				{Path: "a.go", Range: dialog.LineRange{First: 1, Last: 50}}, {Path: "b/c.go"},
			},
		}},
		{"str_replace_editor", `{"command":"view","path":"/a.py","view_range":[3,-1]}`, dialog.CallInfo{
			Family: dialog.FamilyRead, Target: "/a.py", Files: []dialog.File{{Path: "/a.py", Range: dialog.LineRange{First: 3}}},
		}},
		{"Bash", `{"command":"go test ./...","description":"run"}`, dialog.CallInfo{Family: dialog.FamilyCommand, Target: "go test ./..."}},
		{"Grep", `{"pattern":"foo","path":"src"}`, dialog.CallInfo{
			Family: dialog.FamilySearch, Target: "foo", Files: []dialog.File{{Path: "src"}},
		}},
		{"cancel", `{"id":"X1"}`, dialog.CallInfo{Target: "X1"}},
		{"Read", `{"file_path":`, dialog.CallInfo{Family: dialog.FamilyRead}},
		{"Read", `[1]`, dialog.CallInfo{Family: dialog.FamilyRead}},
	} {
		if diff := cmp.Diff(tt.want, dialog.ParseCall(tt.name, tt.args)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.name, tt.args, diff)
		}
	}
}

func TestRangeCovers(t *testing.T) {
	whole, some, rest := dialog.LineRange{}, dialog.LineRange{First: 10, Last: 20}, dialog.LineRange{First: 10}
	several := dialog.SeveralRanges
	for _, tt := range []struct {
		a, b dialog.LineRange
		want bool
	}{
		{whole, whole, true},
		{whole, some, true},
		{whole, rest, true},
		{some, whole, false},
		{some, some, true},
		{some, dialog.LineRange{First: 12, Last: 20}, true},
		{some, dialog.LineRange{First: 12, Last: 21}, false},
		{rest, some, true},
		{some, rest, false},
		{whole, several, true},
		{some, several, false},
		{several, some, false},
		{several, several, false},
	} {
		if got := tt.a.Covers(tt.b); got != tt.want {
			t.Errorf("%v covers %v: got %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("read_file", `{"files":[{"path":"a","line_ranges":[[1,2]]}]}`)
	f.Add("x", `{"view_range":[1],"path":7}`)
	f.Fuzz(func(_ *testing.T, name, args string) { dialog.ParseCall(name, args) })
}

func TestRecalls(t *testing.T) {
	for _, test := range []struct {
		name, args string
		is         bool
	}{
		{"mcp__condense__recall", `{}`, true},
		{"condense_recall", `{}`, true},
		{"recall", `{"handle":"9f2c41d07a"}`, true},
		{"recall", `{"text":"x"}`, false},
		{"exec", `const r = await tools.mcp__condense__recall({what: "m4"}); text(r.content[0].text);`, true},
		{"exec", `text(await tools.mcp__condense__recall({what: "m4"})); text(await tools.exec_command({cmd: "make"}));`, false}, // it did more
		{"exec", `text(await tools.exec_command({cmd: "make"}));`, false},
		{"apply_patch", `+await tools.mcp__condense__recall({})`, false},
	} {
		if got := dialog.Recalls(test.name, test.args); got != test.is {
			t.Errorf("%s %s: %v", test.name, test.args, got)
		}
	}
}

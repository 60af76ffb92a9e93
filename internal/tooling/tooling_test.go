package tooling_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/tooling"
)

func TestFamilyOf(t *testing.T) {
	for name, want := range map[string]tooling.Family{
		"Read": tooling.Read, "read_file": tooling.Read, "mcp__fs__read_file": tooling.Read,
		"write_to_file": tooling.Write, "MultiEdit": tooling.Edit, "apply_diff": tooling.Edit,
		"Bash": tooling.Command, "exec_command": tooling.Command, "Glob": tooling.List,
		"codebase_search": tooling.Search, "AskUserQuestion": tooling.Ask, "book_reservation": tooling.Unknown, "": tooling.Unknown,
	} {
		if got := tooling.FamilyOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		want       tooling.Use
	}{
		{"Read", `{"file_path":"./src/a.go","offset":10,"limit":5}`, tooling.Use{
			Family: tooling.Read, Target: "src/a.go", Files: []tooling.File{{Path: "src/a.go", Range: tooling.Range{First: 10, Last: 14}}},
		}},
		{"Read", `{"file_path":"a.go","offset":10}`, tooling.Use{
			Family: tooling.Read, Target: "a.go", Files: []tooling.File{{Path: "a.go", Range: tooling.Range{First: 10}}},
		}},
		{"read_file", `{"files":[{"path":"a.go","line_ranges":["1-50"]},{"path":"b\\c.go"}]}`, tooling.Use{
			Family: tooling.Read, Target: "a.go", Files: []tooling.File{
				{Path: "a.go", Range: tooling.Range{First: 1, Last: 50}}, {Path: "b/c.go"},
			},
		}},
		{"str_replace_editor", `{"command":"view","path":"/a.py","view_range":[3,-1]}`, tooling.Use{
			Family: tooling.Read, Target: "/a.py", Files: []tooling.File{{Path: "/a.py", Range: tooling.Range{First: 3}}},
		}},
		{"Bash", `{"command":"go test ./...","description":"run"}`, tooling.Use{Family: tooling.Command, Target: "go test ./..."}},
		{"Grep", `{"pattern":"foo","path":"src"}`, tooling.Use{
			Family: tooling.Search, Target: "foo", Files: []tooling.File{{Path: "src"}},
		}},
		{"cancel", `{"id":"X1"}`, tooling.Use{Target: "X1"}},
		{"Read", `{"file_path":`, tooling.Use{Family: tooling.Read}},
		{"Read", `[1]`, tooling.Use{Family: tooling.Read}},
	} {
		if diff := cmp.Diff(tt.want, tooling.Parse(tt.name, tt.args)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.name, tt.args, diff)
		}
	}
}

func TestRangeCovers(t *testing.T) {
	whole, some, rest := tooling.Range{}, tooling.Range{First: 10, Last: 20}, tooling.Range{First: 10}
	several := tooling.Several
	for _, tt := range []struct {
		a, b tooling.Range
		want bool
	}{
		{whole, whole, true},
		{whole, some, true},
		{whole, rest, true},
		{some, whole, false},
		{some, some, true},
		{some, tooling.Range{First: 12, Last: 20}, true},
		{some, tooling.Range{First: 12, Last: 21}, false},
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
	f.Fuzz(func(_ *testing.T, name, args string) { tooling.Parse(name, args) })
}

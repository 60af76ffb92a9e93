package toolcall_test

import (
	"slices"
	"testing"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// TestParametersOfAgents: each agent's way to name a file and the old and new text of an edit is known, in any spelling.
func TestParametersOfAgents(t *testing.T) {
	for _, c := range []struct{ agent, args, path, old, now string }{
		{"Claude Code", `{"file_path":"a.go","old_string":"x","new_string":"y"}`, "a.go", "x", "y"},
		{"Claude Code, notebook", `{"notebook_path":"a.ipynb","new_source":"y","cell_id":"2"}`, "a.ipynb", "", "y"},
		{"OpenCode", `{"filePath":"a.go","oldString":"x","newString":"y"}`, "a.go", "x", "y"},
		{"pi", `{"path":"a.go","oldText":"x","newText":"y"}`, "a.go", "x", "y"},
		{"SWE-agent", `{"command":"str_replace","path":"a.go","old_str":"x","new_str":"y"}`, "a.go", "x", "y"},
		{"Antigravity", `{"TargetFile":"a.go","TargetContent":"x","ReplacementContent":"y","Overwrite":true}`, "a.go", "x", "y"},
		{"Windsurf", `{"AbsolutePath":"a.go","StartLine":1}`, "a.go", "", ""},
		{"Cursor", `{"target_file":"a.go","code_edit":"y"}`, "a.go", "", "y"},
	} {
		args := []byte(c.args)
		if got := toolcall.First(args, toolcall.Path); got != c.path {
			t.Errorf("%s: path %q", c.agent, got)
		}
		if got := toolcall.First(args, toolcall.Old); got != c.old {
			t.Errorf("%s: old text %q", c.agent, got)
		}
		if got := toolcall.First(args, toolcall.New); got != c.now {
			t.Errorf("%s: new text %q", c.agent, got)
		}
	}
}

func TestFirstPrefers(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"b","file_path":"a"}`:          "a",
		`{"path":"","uri":"c"}`:                 "c",
		`{"path":1,"filename":"d"}`:             "d",
		`{"file_path":"old","file_path":"new"}`: "new",
		`[]`:                                    "", ``: "", `{`: "",
	} {
		if got := toolcall.First([]byte(args), toolcall.Path); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	var all []string
	for v := range toolcall.Values([]byte(`{"cmd":"a","x":"b","patch":"c"}`), toolcall.Command|toolcall.Patch) {
		all = append(all, rawjson.Text(v))
	}
	if !slices.Equal(all, []string{"a", "c"}) {
		t.Errorf("%q", all)
	}
}

func TestPatches(t *testing.T) {
	hunks := toolcall.ApplyPatch("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n@@ func f\n x\n-y\n+z\n@@\n-q\n" +
		"*** Add File: c.go\n+one\n+two\n*** Delete File: d.go\n*** End Patch\nEOF")
	want := []toolcall.Hunk{
		{Path: "a.go", To: "b.go", Old: "x\ny", New: "x\nz"},
		{Path: "a.go", To: "b.go", Old: "q"},
		{Path: "c.go", New: "one\ntwo", Added: true},
		{Path: "d.go", Deleted: true},
	}
	if !slices.Equal(hunks, want) {
		t.Errorf("%+v", hunks)
	}
	if got := toolcall.ApplyPatch("no patch"); got != nil {
		t.Errorf("%+v", got)
	}
	pairs := toolcall.SearchReplace("<<<<<<< SEARCH\n:start_line:3\n-------\nold\n=======\nnew\n>>>>>>> REPLACE\n<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE\n<<<<<<< SEARCH\ncut off")
	if len(pairs) != 3 || pairs[0] != [2]string{"old", "new"} || pairs[1] != [2]string{"a", ""} {
		t.Errorf("%q", pairs)
	}
}

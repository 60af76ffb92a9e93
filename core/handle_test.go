package core_test

import (
	"testing"

	"github.com/condensehq/condense/core"
)

func TestHandle(t *testing.T) {
	result := func(id string, content ...core.Part) core.Part { return core.ToolResult{CallID: id, Content: content} }
	same := [][2]core.Part{
		{core.Text("a"), core.Text("a")},
		{result("1", core.Text("a")), result("2", core.Text("a"))},
		{core.ToolCall{ID: "1", Name: "n", Args: "{}"}, core.ToolCall{ID: "2", Name: "n", Args: "{}"}},
	}
	for _, s := range same {
		if a, b := core.Handle(s[0]), core.Handle(s[1]); a != b || len(a) != 10 {
			t.Errorf("handles of %v and %v: got %s and %s, want ten equal digits", s[0], s[1], a, b)
		}
	}
	seen := map[string]core.Part{}
	for _, p := range []core.Part{
		core.Text(""), core.Text("a"), core.Text("ab"),
		result("1"), result("1", core.Text("a")), result("1", core.Text("ab")), result("1", core.Text("a"), core.Text("b")),
		core.ToolCall{Name: "a", Args: "b"},
		core.ToolCall{Name: "ab"},
		core.ToolCall{Args: "ab"},
		core.Image{Data: "ab"},
		core.Image{URL: "ab"},
		core.Reasoning{Text: "ab"},
		core.Reasoning{Signature: "ab"},
		core.Opaque{Kind: "ab"},
		core.Opaque{JSON: "ab"},
	} {
		h := core.Handle(p)
		if other, ok := seen[h]; ok {
			t.Errorf("%#v and %#v have the same handle", p, other)
		}
		seen[h] = p
	}
}

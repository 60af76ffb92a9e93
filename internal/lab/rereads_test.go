package lab_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/tokens"
)

// TestRereads: a later call counts if it brings back, of the same file or search, what the view has hidden, and once.
func TestRereads(t *testing.T) {
	body := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "%4d→line %d of the file\n", i, i*i)
		}
		return b.String()
	}
	n := 0
	tool := func(name, args, result string) []core.Message {
		n++
		id := strconv.Itoa(n)
		return []core.Message{
			{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: name, Args: args}}},
			{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(result)}}}},
		}
	}
	said := func(s string) []core.Message {
		return []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text(s)}}}
	}
	join := func(all ...[]core.Message) (out []core.Message) {
		for _, m := range all {
			out = append(out, m...)
		}
		return out
	}
	a := tool("Read", `{"file_path":"./a.go"}`, body(1, 100))
	found := tool("Grep", `{"pattern":"square"}`, "a.go:1: square\nb.go:7: square root\n")
	run := tool("Bash", `{"command":"go test ./..."}`, "ok all of it 1.0s\nok more of it 2.0s\n")
	prefix := join(said("Look at a.go."), a, found, run)
	part := func(from, to int) []core.Message {
		return tool("Read", fmt.Sprintf(`{"file_path":"a.go","offset":%d,"limit":%d}`, from, to-from+1), body(from, to))
	}
	for name, tt := range map[string]struct {
		view   []core.Message
		future []core.Message
		calls  int
	}{
		"nothing is hidden":            {prefix, part(1, 50), 0},
		"lines of a hidden file":       {said("Look at a.go."), part(20, 60), 1},
		"once":                         {said("Look at a.go."), join(part(20, 60), part(30, 50)), 1},
		"two parts":                    {said("Look at a.go."), join(part(1, 20), part(50, 70)), 2},
		"lines that the view has":      {join(said(body(10, 40))), part(15, 30), 0},
		"another file":                 {said("Look at a.go."), tool("Read", `{"file_path":"b.go"}`, body(1, 50)), 0},
		"other lines of the same file": {said("Look at a.go."), part(200, 300), 0},
		"mostly new lines":             {said("Look at a.go."), part(91, 200), 0},
		"the same search":              {said("Look at a.go."), tool("Grep", `{"pattern":"square"}`, "a.go:1: square\nb.go:7: square root\nc.go:9: square\n"), 1},
		"tests are run again":          {said("Look at a.go."), tool("Bash", `{"command":"go test ./..."}`, "ok all of it 1.0s\nok more of it 2.0s\n"), 0},
	} {
		encoding, err := tokens.Open(tokens.O200kBase)
		if err != nil {
			t.Fatal(err)
		}
		c := tokens.NewCounter(encoding)
		calls, size := lab.Rereads(join(prefix, tt.future), len(prefix), tt.view, c)
		if calls != tt.calls || (size > 0) != (calls > 0) {
			t.Errorf("%s: %d calls with %d tokens, want %d calls", name, calls, size, tt.calls)
		}
	}
	if calls, size := lab.Rereads(nil, 0, nil, nil); calls != 0 || size != 0 {
		t.Errorf("of nothing: %d %d", calls, size)
	}
}

package smart_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// TestResults: of a very long result half of the tokens go, but not the lines with what the goal names; nothing else is
// changed, a handle leads to the whole, and a second run changes nothing.
func TestResults(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 900 {
		fmt.Fprintf(&log, "step %d: worker w%d compiled module alpha_%d in %d ms\n", i, i%7, i, 3*i)
		if i == 451 {
			log.WriteString("module zebra_loader was skipped by its owner\n")
		}
	}
	c := counter(t)
	messages := []core.Message{
		{ID: "1", Role: core.RoleUser, Parts: []core.Part{core.Text("Why is zebra_loader not in the build?")}},
		{ID: "2", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "a", Name: "Bash", Args: `{"command":"make all"}`}, core.ToolCall{ID: "b", Name: "Bash", Args: `{"command":"ls"}`}}},
		{ID: "3", Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: "a", Content: []core.Part{core.Text(log.String())}}, core.ToolResult{CallID: "b", Content: []core.Part{core.Text("Makefile\nmain.go")}}}},
		{ID: "4", Role: core.RoleAssistant, Parts: []core.Part{core.Text(".")}},
	}
	p := open(t, `{"passes": [{"pass": "results", "over": 4000}]}`)
	req := request(messages, c, 1)
	res := condense(t, p, req)
	if len(res.Messages) != 4 {
		t.Fatalf("%d messages", len(res.Messages))
	}
	for i, m := range res.Messages {
		if i != 2 && !m.Equal(messages[i]) {
			t.Errorf("message %s changed", m.ID)
		}
	}
	parts := res.Messages[2].Parts
	if !reflect.DeepEqual(parts[1], messages[2].Parts[1]) {
		t.Error("a short result changed")
	}
	was, now := messages[2].Parts[0], parts[0]
	if share := float64(c.Count(now)) / float64(c.Count(was)); share > 0.52 || share < 0.4 {
		t.Errorf("%.2f of the tokens are left", share)
	}
	text := textOf(res.Messages[2])
	if !strings.Contains(text, "module zebra_loader was skipped by its owner") {
		t.Error("what the user asked about is gone")
	}
	if !strings.Contains(text, "h:"+core.Handle(was)) {
		t.Error("no handle leads to the whole")
	}
	next := again(req, res)
	if at := differs(next.Messages, condense(t, p, next).Messages); at != "" {
		t.Errorf("a second run changed %.300s", at)
	}
	for _, wrong := range []string{`{"over": 0}`, `{"share": 1}`, `{"share": 0}`, `{"most": -1}`} {
		wrong = `{"passes": [{"pass": "results", ` + strings.TrimPrefix(wrong, "{") + `]}`
		if _, err := smart.Strategy().Open(t.Context(), json.RawMessage(wrong), registry.Env{}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

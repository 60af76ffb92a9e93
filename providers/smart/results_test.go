package smart_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
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

// Whatever the texts hold, results changes nothing but long results, never makes one larger, leaves each call with its result, and has
// nothing to do a second time.
func TestResultsKeepsTheRest(t *testing.T) {
	t.Parallel()
	const over = 60
	p := open(t, `{"passes": [{"pass": "results", "over": 60, "share": 0.5}]}`)
	line := rapid.OneOf(rapid.StringN(0, 30, 80), rapid.SampledFrom([]string{
		"", "[…", "[… h:0123abcd]", "¶ user", "¶ tool Bash h:0123abcd", "error: no module x", "--- FAIL: TestDates", "]", "<system-reminder>", "[… 12 lines of Bash hidden, recall h:0123abcd]",
	}))
	rapid.Check(t, func(t *rapid.T) {
		messages := []core.Message{coretest.User(core.Text(line.Draw(t, "goal")))}
		for i := range rapid.IntRange(1, 4).Draw(t, "calls") {
			var text strings.Builder
			for _, l := range rapid.SliceOfN(line, 0, 8).Draw(t, "lines") {
				text.WriteString(strings.Repeat(l+"\n", rapid.SampledFrom([]int{1, 1, 3, 40}).Draw(t, "times")))
			}
			messages = append(messages, tool(strconv.Itoa(i), "Bash", `{"command":"make"}`, text.String())...)
		}
		messages = append(messages, coretest.Assistant(core.Text(".")))
		req := coretest.Request(coretest.Conversation(messages...), 1)
		req.NoRecall = rapid.Bool().Draw(t, "no recall")
		res := condense(t, p, req)
		if len(res.Messages) != len(req.Messages) {
			t.Fatalf("%d messages of %d", len(res.Messages), len(req.Messages))
		}
		for i, m := range res.Messages {
			was := req.Messages[i]
			if core.MessageTokens(req.Counter, m) > core.MessageTokens(req.Counter, was) {
				t.Errorf("message %d is larger:\n%v\n%v", i, was, m)
			}
			if long := req.Counter.Count(was.Parts[0]) > over; !long && !m.Equal(was) {
				t.Errorf("message %d changed, and is short:\n%v\n%v", i, was, m)
			}
			if r, ok := was.Parts[0].(core.ToolResult); ok {
				if now, ok := m.Parts[0].(core.ToolResult); !ok || now.CallID != r.CallID || now.IsError != r.IsError {
					t.Errorf("result %d is of another call: %v", i, m)
				}
			} else if !m.Equal(was) {
				t.Errorf("message %d is no result and changed:\n%v\n%v", i, was, m)
			}
		}
		next := again(req, res)
		for i, m := range condense(t, p, next).Messages {
			if !m.Equal(next.Messages[i]) {
				t.Errorf("a second run changed message %d:\n%v\n%v", i, next.Messages[i], m)
			}
		}
	})
}

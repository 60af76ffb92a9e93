package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// The target of a turn replaces that of the configuration, and is kept within what a rule allows.
func TestTargetOfATurn(t *testing.T) {
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, tt := range []struct{ target, want int }{{0, 40_000}, {30_000, 30_000}, {1, 5_000}, {1_000_000, 72_000}} {
		c := condense.NewConversation()
		d, err := h.Check(c, condense.Turn{Window: 100_000, MaxOutput: 8_000, Target: tt.target})
		if err != nil {
			t.Fatal(err)
		}
		if d.Budget.Target != tt.want {
			t.Errorf("target %d: got %d, want %d", tt.target, d.Budget.Target, tt.want)
		}
	}
	if h.Config() == nil || len(h.Config().Profiles()) != len(config.Default().Profiles()) {
		t.Error("the host has another configuration than the default")
	}
}

// What the agent recalled was a mistake to leave out: it is not hidden by the next condensation, where the result of another tool is,
// and later ones may.
func TestRecalledIsNotHiddenAgain(t *testing.T) {
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, "okapi %d walks past zebra %d\n", i, i*i)
	}
	for _, tool := range []string{"mcp__condense__recall", "shell"} {
		h := start(t, nil)
		c := condense.NewConversation()
		turn := condense.Turn{Window: 20_000, MaxOutput: 2_000, Trigger: core.TriggerManual}
		n := 0
		add := func(messages ...core.Message) {
			for _, m := range messages {
				if err := c.Append(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		work := func() {
			for range 60 {
				n++
				id := fmt.Sprint("w", n)
				var made strings.Builder
				for k := range 40 {
					fmt.Fprintf(&made, "part%d of lion%d is made\n", n*1000+k, n*7000+k)
				}
				add(coretest.Assistant(core.ToolCall{ID: id, Name: "shell", Args: fmt.Sprintf(`{"command":"make part%d"}`, n)}),
					coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(made.String())}}))
			}
		}
		kept := func() bool {
			for _, m := range c.View() {
				for _, p := range m.Parts {
					if r, ok := p.(core.ToolResult); ok && r.CallID == "r" {
						got, _ := r.Content[0].(core.Text)
						return string(got) == lines.String()
					}
				}
			}
			return false
		}
		add(coretest.User(core.Text("Make all parts.")))
		work()
		if report, err := h.Manage(t.Context(), c, turn); err != nil || !report.Acted {
			t.Fatalf("%s: %v, %v", tool, report, err)
		}
		add(coretest.Assistant(core.ToolCall{ID: "r", Name: tool, Args: `{"handle":"0123456789"}`}),
			coretest.User(core.ToolResult{CallID: "r", Content: []core.Part{core.Text(lines.String())}}))
		work()
		for round, want := range []bool{tool != "shell", false, false} {
			report, err := h.Manage(t.Context(), c, turn)
			if err != nil || !report.Acted {
				t.Fatalf("%s: %v, %v", tool, report, err)
			}
			if got := kept(); round == 0 && got != want || round > 0 && got {
				t.Errorf("%s: after condensation %d the result is there: %v", tool, round+2, got)
			}
			work()
		}
	}
}

// Messages without IDs, as a program makes them, are accepted.
func TestAppendGivesIDs(t *testing.T) {
	t.Parallel()
	c := condense.NewConversation()
	say := func(id, text string) core.Message {
		return core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
	}
	mine := []core.Message{say("", "one"), say("own", "two"), say("", "three")}
	if err := c.Append(mine...); err != nil {
		t.Fatal(err)
	}
	if mine[0].ID != "" || mine[2].ID != "" {
		t.Error("the messages of the caller were changed")
	}
	view := c.View()
	if len(view) != 3 || view[1].ID != "own" || view[0].ID == view[2].ID {
		t.Fatalf("got %v", view)
	}
	for _, i := range []int{0, 2} {
		if id, err := uuid.Parse(view[i].ID); err != nil || id.Version() != 7 {
			t.Errorf("message %d has the ID %q; want a UUID of version 7", i, view[i].ID)
		}
	}
	if err := c.Rewind(view[0].ID); err != nil {
		t.Errorf("the ID names no message: %v", err)
	}
	// All or none, also where only one is wrong.
	if err := c.Append(say("", "four"), say("own", "again")); err == nil || len(c.View()) != 1 {
		t.Errorf("got %v and %d messages", err, len(c.View()))
	}
	// The journal itself gives none, and says what to do.
	err := c.Journal().Append(say("a", "x"), say("", "y"))
	if err == nil || !strings.Contains(err.Error(), "message 2 of the 2 to append has no ID") {
		t.Errorf("got %v", err)
	}
}

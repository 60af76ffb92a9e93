package smart_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestReplacedTextOfEachAgentGoesFirst: of an edit the text that it replaced goes before the text that it wrote, however the agent's
// tool calls the two.
func TestReplacedTextOfEachAgentGoesFirst(t *testing.T) {
	lines := func(kind string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "\t%sHook%d := registry.Load(%q, options.Strict)\n", kind, i, words(i, 20, 3))
		}
		return b.String()
	}
	for agent, names := range map[string][3]string{
		"OpenCode": {"filePath", "oldString", "newString"}, "Claude Code": {"file_path", "old_string", "new_string"},
		"pi": {"path", "oldText", "newText"}, "Antigravity": {"TargetFile", "TargetContent", "ReplacementContent"},
	} {
		args, err := json.Marshal(map[string]string{names[0]: "src/hooks.go", names[1]: lines("former", 40), names[2]: lines("present", 40)})
		if err != nil {
			t.Fatal(err)
		}
		messages := join(say("Load the hooks in strict mode."), tool("e", "edit", string(args), "ok"))
		for i := range 12 {
			id := fmt.Sprint("r", i)
			messages = append(messages, tool(id, "read", fmt.Sprintf(`{%q:"src/f%d.go"}`, names[0], i), code(i, 1500))...)
		}
		messages = coretest.Conversation(join(messages, []core.Message{coretest.Assistant(core.Text("The hooks load in strict mode now."))}, say("Go on."))...)
		c := counter(t)
		r := request(messages, c, 1)
		r.Budget.Target = total(r.Messages) / 5
		left := textOf(condense(t, open(t, `{}`), r).Messages...)
		former, present := strings.Count(left, "formerHook"), strings.Count(left, "presentHook")
		if former*4 > present {
			t.Errorf("%s: %d lines of the replaced text are left, %d of the new one", agent, former, present)
		}
	}
}

package value_test

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value"
)

// TestWordsInAnAssistantsSummaryAreTheUsers: a summary that speaks as the assistant repeats the user's words: they are not reported as
// lost. Nor are the words of a user who rejected a call, and they are counted.
func TestWordsInAnAssistantsSummaryAreTheUsers(t *testing.T) {
	t.Parallel()
	const rule, why = "Never delete table twelve.", "ask me first"
	before := coretest.Conversation(
		coretest.User(core.Text(rule)), coretest.Assistant(core.ToolCall{ID: "1", Name: "Bash", Args: `{"command":"drop"}`}),
		coretest.User(core.ToolResult{CallID: "1", IsError: true, Content: []core.Part{core.Text("The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n" + why)}}),
	)
	for _, kind := range []core.Kind{core.KindSummary, core.KindOriginal} { // a file may not record the kind
		block := dialog.Repeat("What the user typed:", []string{dialog.Entry(rule), dialog.Entry(why)}, "")
		after := coretest.Assistant(core.Text(core.Frame("native")+"\nIn short."), core.Text(block))
		after.Kind = kind
		counter := coretest.Counter{}
		if was, left := value.Said(new(dialog.Reader), before, coretest.Conversation(after), counter); was != left || was < counter.Count(core.Text(rule+why)) {
			t.Errorf("kind %v: %d of %d tokens", kind, left, was)
		}
	}
}

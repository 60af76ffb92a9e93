package value

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
)

// quoting is a session of n rounds in which the agent reads a file and searches others, and
// writes later what the file said; what it found it never does.
func quoting(n int) []core.Message {
	names := func(what string, i int) string {
		var b strings.Builder
		for k := range 12 {
			fmt.Fprintf(&b, "%sThing%d_%d handles the case\n", what, i, k)
		}
		return b.String()
	}
	out := []core.Message{coretest.User(core.Text("Find out what handles which case."))}
	for i := range n {
		read, search := fmt.Sprint("r", i), fmt.Sprint("s", i)
		out = append(out,
			coretest.Assistant(core.ToolCall{ID: read, Name: "read_file", Args: fmt.Sprintf(`{"path":"a%d.go"}`, i)}),
			coretest.User(coretest.Result(read, names("shown", i))),
			coretest.Assistant(core.ToolCall{ID: search, Name: "search_files", Args: fmt.Sprintf(`{"regex":"b%d"}`, i)}),
			coretest.User(coretest.Result(search, names("found", i))))
		if i > 1 {
			out = append(out, coretest.Assistant(core.Text("So it is\n"+names("shown", i-2))), coretest.User(core.Text("And the next?")))
		}
	}
	messages := coretest.Conversation(out...)
	core.Measure(coretest.Counter{}, messages)
	return messages
}

// TestHabits: what this agent uses again is worth more than the model thinks, what it never
// does less.
func TestHabits(t *testing.T) {
	m, err := DefaultModel()
	if err != nil {
		t.Fatal(err)
	}
	messages := quoting(12)
	h := m.habits(messages)
	if h == nil {
		t.Fatal("no habits")
	}
	group := func(f dialog.Family) int { return int(dialog.KindToolResult)*familyCount + int(families[f]) }
	read, search := h[ofNames][group(dialog.FamilyRead)], h[ofNames][group(dialog.FamilySearch)]
	if read < 1.2*search {
		t.Errorf("names in files that were read count %.2f, in what was found %.2f", read, search)
	}
	c := Read(messages)
	e, plain := m.Estimate(c), m.Estimate(c)
	e.follow(h, c)
	at := func(e *Estimate, name string) float32 { return e.Names[c.termAt.find(hashOf(name))] }
	if was, is := at(plain, "shownThing11_3")/at(plain, "foundThing11_3"), at(e, "shownThing11_3")/at(e, "foundThing11_3"); is < 1.2*was {
		t.Errorf("a name that was read is worth %.2f times one that was found, %.2f without habits", is, was)
	}
	e.follow(nil, c)
	if m.habits(messages[:6]) != nil || m.habits(nil) != nil {
		t.Error("habits of a conversation that hardly began")
	}
}

// TestHabitSides: only the end of a long conversation is looked at, and it is cut where the
// agent takes its turn.
func TestHabitSides(t *testing.T) {
	messages := quoting(12)
	for i := range messages {
		messages[i].Tokens = habitTokens / 40
	}
	before, after := habitSides(messages)
	if len(before)+len(after) != 40 || after[0].Role != core.RoleAssistant {
		t.Errorf("%d messages before, %d after, which begin with %s", len(before), len(after), after[0].Role)
	}
}

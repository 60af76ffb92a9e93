package value_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestFilesUnderWork: an extract begins with the newest text of a file under work, with its path and lines, once; a line
// that an edit replaced is not shown as current, and further condensations keep it so.
func TestFilesUnderWork(t *testing.T) {
	var file strings.Builder
	for i := range 24 {
		fmt.Fprintf(&file, "%4d→\tzebra%d := okapi%d(walrus%d)\n", i+100, i, i, i)
	}
	work := []core.Message{
		coretest.Assistant(core.ToolCall{ID: "r", Name: "Read", Args: `{"file_path":"/r/src/zoo.go","offset":100}`}),
		coretest.User(coretest.Result("r", file.String())),
		coretest.Assistant(core.ToolCall{ID: "e", Name: "Edit", Args: `{"file_path":"/r/src/zoo.go","old_string":"\tzebra7 := okapi7(walrus7)","new_string":"\tzebra7 := heron(walrus7)\n\tfeed(zebra7)"}`}),
		coretest.User(coretest.Result("e", "done")),
		coretest.Assistant(core.Text("In zoo.go I go on with zebra7 and feed.")),
	}
	s := session(40)
	messages := uniqueCalls(append(append(append(s[:len(s)/2:len(s)/2], work...), s[len(s)/2:]...), coretest.User(core.Text("Now go on in zoo.go."))))
	room := tokensOf(messages) / 4
	for round := range 3 {
		res := shorten(t, messages, room)
		got := text(res.Messages)
		at := strings.Index(got, "¶ result file /r/src/zoo.go:100-124\n")
		if at < 0 {
			t.Fatalf("round %d: the file is not there:\n%.3000s", round, got)
		}
		if !strings.Contains(got[at:], "\tzebra6 := okapi6(walrus6)\n\tzebra7 := heron(walrus7)\n\tfeed(zebra7)\n\tzebra8 := okapi8(walrus8)\n") {
			t.Errorf("round %d: the edit is not in its place:\n%.1500s", round, got[at:])
		}
		if n := strings.Count(got, "zebra12 := okapi12(walrus12)"); n != 1 {
			t.Errorf("round %d: a line is there %d times", round, n)
		}
		messages = uniqueCalls(append(res.Messages, session(20)[1:]...))
	}
}

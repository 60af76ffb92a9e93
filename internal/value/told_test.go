package value_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
)

// among puts messages into the middle of a conversation that reads many files, and returns the view of an eighth of it.
func among(t *testing.T, messages ...core.Message) string {
	t.Helper()
	all := reading(40)
	all = numbered(measured(slices.Concat(all[:3:3], messages, all[3:])))
	return viewText(shortenWith(t, all, tokensOf(all)/8, value.Options{}))
}

// TestClosings: the text that ends a turn is not cut at the cause and the mending.
func TestClosings(t *testing.T) {
	var steps strings.Builder
	for i := range 30 {
		fmt.Fprintf(&steps, "Stap %d ging goed en is klaar.\n", i)
	}
	got := among(t, coretest.Assistant(core.Text(steps.String()+"De oorzaak: DB_HOSTNAME ontbreekt.\nVoeg DB_HOSTNAME = 127.0.0.1 toe aan config.cfg.php.\n")), coretest.User(core.Text("Dank je.")))
	if !strings.Contains(got, "DB_HOSTNAME = 127.0.0.1 toe aan config.cfg.php") {
		t.Errorf("the end of the turn is missing:\n%.1500s", got)
	}
}

// TestOptions: a question by a tool stays with what there was to choose from.
func TestOptions(t *testing.T) {
	got := among(t, did("q", "AskUserQuestion", `{"questions":[{"question":"Which slug?","options":[{"label":"Effect"},{"label":"On submit, once"}]}]}`, "User has answered your questions: Effect", false)...)
	if !strings.Contains(got, "On submit, once") {
		t.Errorf("the option that was not taken is missing:\n%.1500s", got)
	}
}

// TestErrorElement: the table says why an edit failed though Claude Code puts the reason into an element.
func TestErrorElement(t *testing.T) {
	table := contents.FindString(among(t, did("w", "Write", `{"file_path":"/r/zoo.py","content":"pass"}`, "<tool_use_error>File has not been read yet.</tool_use_error>", true)...))
	if !strings.Contains(table, "File has not been read yet.") {
		t.Errorf("no reason:\n%s", table)
	}
}

// TestAnswersInTexts: the table names the files of calls that Cline answers in texts.
func TestAnswersInTexts(t *testing.T) {
	table := contents.FindString(among(t, coretest.Assistant(core.ToolCall{ID: "w", Name: "write_to_file", Args: `{"path":"zoo/feed.py","content":"pass"}`}),
		coretest.User(core.Text("[write_to_file for 'zoo/feed.py'] Result:\nThe content was successfully saved.\n"+strings.Repeat("rows are here\n", 100)))))
	if !strings.Contains(table, "write_to_file zoo/feed.py") {
		t.Errorf("no file:\n%s", table)
	}
}

// TestPatchNamesFiles: the table names all files of a patch that is all of a call's input.
func TestPatchNamesFiles(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: zoo/feed.py\n@@\n-a = 1\n+a = 2\n*** Add File: zoo/cage.py\n" + strings.Repeat("+rows = walk(rows)\n", 60) + "*** End Patch"
	table := contents.FindString(among(t, did("p", "apply_patch", patch, "Success.", false)...))
	if !strings.Contains(table, "apply_patch zoo/feed.py, cage.py") {
		t.Errorf("no files:\n%s", table)
	}
}

// TestPlanIsWhole: a plan that the user gave stays whole if it takes a third of the room, however old it is.
func TestPlanIsWhole(t *testing.T) {
	all := reading(60)
	room := tokensOf(numbered(measured(all))) / 8
	plan := "Implement the following plan:\n\n"
	var steps []string
	for i := 0; len(plan)/4 < room/3-20; i++ {
		steps = append(steps, fmt.Sprintf("%d. Column c%d of the parcels moves to the ledger of table t%d, with the width w%d.", i+1, i, i*7, i*13))
		plan += steps[i] + "\n"
	}
	all = slices.Concat(all[:1:1], []core.Message{coretest.User(core.Text(plan))}, all[1:], []core.Message{coretest.User(core.Text("Go on with the next step."))})
	got := viewText(shortenWith(t, numbered(measured(all)), room, value.Options{}))
	for _, step := range steps {
		if !strings.Contains(got, step) {
			t.Errorf("gone: %s", step)
		}
	}
}

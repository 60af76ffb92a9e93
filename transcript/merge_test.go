package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// In the formats of the APIs a marker becomes a part of the first message. It was read back
// as what the user said, and each round of truncation added one more.
func TestMarkersOfHiddenMessagesDoNotPileUp(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"anthropic", "openai"} {
		file := `[{"role":"user","content":[{"type":"text","text":"the task","cache_control":{"type":"ephemeral"}}]}]`
		total := 0
		for round := range 4 {
			d := read(t, file, format)
			var said []core.Message
			for i := range 3 {
				id := fmt.Sprintf("r%d.%d", round, i)
				said = append(said, core.Message{ID: id, Role: core.RoleAssistant, Parts: []core.Part{core.Text(id)}}, core.Message{ID: id + "u", Role: core.RoleUser, Parts: []core.Part{core.Text("words " + id)}})
			}
			if err := d.Journal.Append(said...); err != nil {
				t.Fatal(err)
			}
			view := d.Journal.View()
			hide := view[1 : len(view)-2]
			total += len(hide)
			e := core.Edit{Insert: []core.Insert{{After: hide[len(hide)-1].ID, Message: core.Message{
				ID: "marker", Role: core.RoleUser, Kind: core.KindMarker,
				Parts: []core.Part{core.Text(fmt.Sprintf("[… %d earlier messages, with 2 tool calls, left out here to fit the context window]", len(hide)))},
			}}}}
			for i := range hide {
				e.Hide = append(e.Hide, hide[i].ID)
			}
			if err := d.Journal.Condense(history.Condensation{ID: "c", Edit: e}); err != nil {
				t.Fatal(err)
			}
			file, _ = write(t, d, "")
			want := fmt.Sprintf("[… %d earlier messages, with %d tool calls, left out here to fit the context window]", total, 2*(round+1))
			if n := strings.Count(file, "left out here"); n != 1 || !strings.Contains(file, want) {
				t.Errorf("%s, round %d: %d markers, want one that says %s\n%s", format, round+1, n, want, file)
			}
			if !strings.Contains(file, `{"type":"text","text":"the task","cache_control":{"type":"ephemeral"}}`) {
				t.Errorf("%s, round %d: the first message changed\n%s", format, round+1, file)
			}
		}
	}
}

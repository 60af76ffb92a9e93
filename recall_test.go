package condense_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// TestHandlesOutlive: what stood in a recorded session is found by its handle after it was
// condensed twice, after the first of these was undone, and in the task folder of Roo-Code
// that it was exported to.
func TestHandlesOutlive(t *testing.T) {
	h, _, err := openAsker(t, "profiles: {p: {window: 20000, chain: [asker]}}\n", ours("in short"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aider--sec0013.json.gz", "roo-tasks--bc93a6f7-cd2e-4686-a832-46e3cd14d338.json.gz", "swe-agent--i_got_id_demo.json.gz", "tau-airline--task2-trial1.json.gz"} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("testdata/traces", name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // it was only read
			d, err := transcript.Read(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			handles := map[string]core.Part{}
			for _, m := range d.Journal.Messages() {
				maps.Insert(handles, history.Handles(m.Parts))
			}
			c := condense.ResumeConversation(d.Journal)
			all := func(when string, j *history.Journal) {
				t.Helper()
				for h, p := range handles {
					found := j.Recall(h)
					if len(found) == 0 {
						t.Fatalf("%s: %s is not found: %.100v", when, h, p)
					}
				}
			}
			for range 2 {
				if _, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual}); err != nil {
					t.Fatal(err)
				}
				more := core.Message{ID: "more" + c.View()[0].ID, Role: core.RoleAssistant, Parts: []core.Part{core.Text(strings.Repeat("And so on. ", 100))}}
				if err := c.Append(more); err != nil {
					t.Fatal(err)
				}
			}
			condensations := c.Journal().Condensations()
			if len(condensations) != 2 {
				t.Fatalf("%d condensations", len(condensations))
			}
			all("condensed twice", d.Journal)
			var roo bytes.Buffer
			if _, err := d.Write(&roo, "roo"); err != nil {
				t.Fatal(err)
			}
			exported, err := transcript.Read(&roo, &transcript.ReadOptions{Format: "roo"})
			if err != nil {
				t.Fatal(err)
			}
			all("exported", exported.Journal)
			if err := c.Undo(condensations[0].ID); err != nil {
				t.Fatal(err)
			}
			all("undone", d.Journal)
		})
	}
}

package smart

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/transcript"
)

// TestWhoSaidWhat holds what is taken for the user's own words in a session recorded with
// aider to what was noted when it was recorded: 17,034 of 18,204 bytes are a program's.
func TestWhoSaidWhat(t *testing.T) {
	f, err := os.Open("../../testdata/traces/aider--sec0013.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	d, err := transcript.Read(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	messages := d.Journal.Messages()
	core.Measure(coretest.Counter{}, messages)
	w := newWork(coretest.Request(messages, 1), 0, new(dialog.Reader))
	typed, checked := map[string]bool{}, 0
	for i := range messages {
		var source struct {
			Content []struct{ Origin, Text string }
		}
		if err := json.Unmarshal(messages[i].Source, &source); err != nil {
			t.Fatal(err)
		}
		for _, c := range source.Content {
			typed[c.Text] = c.Origin == "human"
		}
	}
	for i := range w.segments {
		p := &w.segments[i]
		if p.kind != dialog.KindUser && p.kind != dialog.KindInjected {
			continue
		}
		checked++
		if got := p.kind == dialog.KindUser; got != typed[p.text] {
			t.Errorf("taken for typed: %v, want %v: %.100q", got, typed[p.text], p.text)
		}
	}
	if checked < 30 {
		t.Errorf("only %d texts of the user's", checked)
	}
}

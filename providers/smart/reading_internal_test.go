package smart

import (
	"context"
	"os"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/transcript"
)

// TestReadsOnce: the session of README is condensed by the default preset, and every message of
// it is taken apart once, whatever passes, estimates and rounds there are. A message that a pass
// rewrote or inserted is a new one, and is read once, too.
func TestReadsOnce(t *testing.T) {
	testkit.Slow(t)
	f, err := os.Open("../../testdata/traces/pi-mono--before-compaction.json.gz")
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
	p, err := New(Config{Preset: defaultPreset})
	if err != nil {
		t.Fatal(err)
	}
	req := coretest.Request(messages, 1)
	var reader dialog.Reader
	w := newWork(req, req.Tokens()/5, &reader)
	w.first = messages
	steps, err := p.run(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]core.Message{}
	for _, m := range messages {
		was[m.ID] = m
	}
	written := 0
	for _, m := range w.result() {
		if before, ok := was[m.ID]; !ok || !before.Equal(m) {
			written++
		}
	}
	before := 0 // segments that passes before value changed
	for _, s := range steps {
		if s.Name == "value" {
			break
		}
		before += s.Changed
	}
	if written == 0 || before == 0 {
		t.Fatalf("%d messages were written, %d pieces changed before: nothing is tested", written, before)
	}
	if most := len(messages) + written + before; reader.Parsed() < len(messages) || reader.Parsed() > most {
		t.Errorf("took apart %d messages, want %d to %d: those of the session, %d new ones and %d changed", reader.Parsed(), len(messages), most, written, before)
	}
	t.Logf("took apart %d of %d messages and %d new ones", reader.Parsed(), len(messages), written)
}

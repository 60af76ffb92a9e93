package comparecmd

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/lab"
)

// A terminal wraps a line that is too long, and then only a part of it is overwritten.
func TestProgressFitsTheTerminal(t *testing.T) {
	const columns = 30
	t.Setenv("COLUMNS", "30")
	var said strings.Builder
	p := &progress{w: &said, doing: "playing whole sessions: ", terminal: true}
	for done := range 12 {
		p.show(lab.Progress{Done: done, Total: 12, Rows: 1000 * done, Cached: done})
	}
	p.end()
	for line := range strings.SplitSeq(said.String(), "\r") {
		if len(line) >= columns {
			t.Errorf("%d characters: %q", len(line), line)
		}
	}
	if !strings.Contains(said.String(), "playing whole sessions: ") {
		t.Errorf("%q", said.String())
	}
}

package value

import (
	"context"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

// savedForm matches the line of a result with the file in which the agent saved the whole of it, as Claude Code,
// OpenCode and pi write it: "Full output saved to: /path".
var savedForm = plain.Pattern(`(?i)\bfull (?:output|result)\b[^/~\\\n]{0,40}(?:~?/|[a-z]:\\)\S`)

// Bounds of the lines with files of saved results. Without its path, a saved result is lost for an agent that cannot
// recall.
const (
	savedShare = 0.02 // of the room
	savedLeast = 80   // tokens that they may always have
	savedLong  = 400  // bytes of such a line
)

// keepSaved keeps the lines that name files with the whole of a result, newest first.
func keepSaved(_ context.Context, w *choice) error {
	limit := w.spent() + max(savedShare*float64(w.r.o.Room), savedLeast)
	for l := len(w.r.c.Lines) - 1; l >= 0; l-- {
		line := &w.r.c.Lines[l]
		if p := &w.r.c.Passages[line.Passage]; p.answers() && len(line.Text) <= savedLong && dialog.HoldsFold(line.Text, "full ") && savedForm().MatchString(line.Text) {
			w.takeLine(l, limit)
		}
	}
	return nil
}

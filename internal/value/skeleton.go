package value

import (
	"context"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value/ledger"
)

// Of the files that the agent wrote, an extract has a skeleton: the lines that define something or give a name a value, in the calls that
// wrote them. A reader who uses a file needs all of its names and signatures more than one of its passages.
const (
	skeletonShare = 0.03 // of the room
	skeletonEach  = 0.015
	skeletonLong  = 160 // bytes of a line
)

// settingForm matches a line that gives a name a value that says something.
var settingForm = plain.Pattern(`^[ \t]*(?:(?:export|public|private|static|const|let|var|val|final|readonly)\s+)*["']?[A-Za-z_$-][\w.$-]*["']?\s*(?::\s*\w+\s*)?[:=]\s*` +
	`(?:"[^"]+"|'[^']+'|-?\d[\w.]+|#[0-9a-fA-F]{3,8})\s*[,;]?\s*(?:(?:#|//).*)?$`)

// skeleton returns the lines of the newest text of f that the agent wrote and that define something or give it a value.
func skeleton(f *ledger.File) map[string]bool {
	out := map[string]bool{}
	for _, r := range f.Runs {
		var text strings.Builder
		for i := range r.Lines {
			text.WriteString(r.Lines[i].Text + "\n")
		}
		for _, d := range outline.Definitions(outline.Language(f.Path), text.String()) {
			if at := d.Start - 1; at < len(r.Lines) && r.Lines[at].Edited >= 0 {
				out[strings.TrimSpace(r.Lines[at].Text)] = true
			}
		}
		for i := range r.Lines {
			if line := &r.Lines[i]; line.Edited >= 0 && len(line.Text) <= skeletonLong && settingForm().MatchString(line.Text) {
				out[strings.TrimSpace(line.Text)] = true
			}
		}
	}
	return out
}

// keepSkeletons keeps the skeletons of the files that were changed last, as far as there is room.
func (w claims) keepSkeletons(context.Context) error {
	files := slices.DeleteFunc(slices.Clone(w.replayed.Files), func(f *ledger.File) bool { return f.Edited < 0 })
	slices.SortStableFunc(files, func(a, b *ledger.File) int { return b.Edited - a.Edited })
	limit := w.spent() + skeletonShare*float64(w.o.Room)
	for _, f := range files {
		if w.spent() >= limit {
			break
		}
		lines, most := skeleton(f), min(limit, w.spent()+skeletonEach*float64(w.o.Room))
		base := f.Path[strings.LastIndexByte(f.Path, '/')+1:]
		for p, pass := range slices.Backward(w.c.Passages) {
			if len(lines) == 0 {
				break
			}
			if pass.Kind != dialog.KindToolCall || pass.partial || w.passages[p].mode != modeExtract || pass.Message > f.Edited || !strings.HasSuffix(pass.Target, base) {
				continue
			}
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				if text, _ := content(w.c.Lines[l].Text); lines[text] {
					delete(lines, text)
					w.takeLine(l, most)
				}
			}
		}
	}
	return nil
}

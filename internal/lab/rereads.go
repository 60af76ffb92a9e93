package lab

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// rereadShare is the share of a result, in percent, from which its call counts as a re-read; rereadLine is the least
// length of a line that counts, in bytes.
const (
	rereadShare = 25
	rereadLine  = 4
)

// Rereads counts the calls from message at on that brought back hidden content: content of messages before at that is
// missing from view. Such a call reads a file, searches or lists again, and at least a quarter of its result was in
// earlier results for the same resource, is not in the view, and was not brought back by an earlier call. Tokens are
// those of the calls' results.
func Rereads(messages []core.Message, at int, view []core.Message, c core.Counter) (calls, tokens int) {
	d := dialog.Read(messages)
	hidden := map[string]map[string]bool{} // lines by resource
	seen := map[string]bool{}
	for _, parts := range dialog.Read(view).Messages {
		for i := range parts {
			for _, p := range parts[i].Passages {
				lines(p.Text, func(line string) { seen[line] = true })
			}
		}
	}
	for m, parts := range d.Messages {
		for i := range parts {
			for _, p := range parts[i].Passages {
				key := resource(&p)
				if key == "" {
					continue
				}
				if m < at {
					if hidden[key] == nil {
						hidden[key] = map[string]bool{}
					}
					lines(p.Text, func(line string) { hidden[key][line] = !seen[line] })
					continue
				}
				all, back := 0, 0
				lines(p.Text, func(line string) {
					all += len(line)
					if hidden[key][line] {
						back += len(line)
						hidden[key][line] = false
					}
				})
				if back > 0 && 100*back >= rereadShare*all {
					calls++
					tokens += c.Count(core.Text(p.Text))
				}
			}
		}
	}
	return calls, tokens
}

// resource names the file or the search of a call that changes nothing; empty for others.
func resource(p *dialog.Passage) string {
	if p.Kind != dialog.KindToolResult || p.Use == nil || p.Use.IsError {
		return ""
	}
	switch u := p.Use; u.Info.Family {
	case dialog.FamilyRead:
		if p.File.Path != "" {
			return "read " + p.File.Path
		}
		if u.Info.Target != "" {
			return "read " + u.Info.Target
		}
	case dialog.FamilySearch, dialog.FamilyList, dialog.FamilyWeb:
		if u.Info.Target != "" {
			return u.Name + " " + u.Info.Target
		}
	case dialog.FamilyUnknown, dialog.FamilyCommand, dialog.FamilyWrite, dialog.FamilyEdit, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDelegate, dialog.FamilyDone:
	}
	return ""
}

// lines calls f with the lines of a text that have content.
func lines(text string, f func(line string)) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); len(line) >= rereadLine {
			f(line)
		}
	}
}

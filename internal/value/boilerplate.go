package value

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
)

// Agents and tools repeat themselves: the header of every shell result, reminders, "description: run the tests". If
// lines of one shape occur in many messages, the newest copy is enough. The bounds are from a prototype that was
// checked on sessions of projects it had not seen; see docs/decisions/0040-condensed-view.md.
const (
	repeatedIn   = 6   // messages
	repeatedLong = 200 // bytes: a longer line has content of its own
)

// findRepeated marks lines of a shape that many messages have, except the newest. The user's lines, project rules and
// lines of files are exempt: a function is not complete without its common lines.
func (c *Conversation) findRepeated() {
	type shape struct{ messages, last int32 }
	shapes := map[uint64]*shape{}
	of := make([]*shape, len(c.Lines))
	for p := range c.Passages {
		pass := &c.Passages[p]
		if pass.Kind == dialog.KindUser || pass.rules != "" || pass.partial || pass.family == families[dialog.FamilyRead] {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			line := &c.Lines[l]
			if line.field != 0 && line.field != fieldCommand || line.joins || len(line.Text) > repeatedLong || line.shape == shapeData || pass.failed(line.Text) {
				continue
			}
			h := shapeWithoutNumbers(line.Text)
			s := shapes[h]
			if s == nil {
				s = &shape{last: -1}
				shapes[h] = s
			}
			if m := int32(pass.Message); s.last != m {
				s.messages, s.last = s.messages+1, m
			}
			of[l] = s
		}
	}
	for l, s := range of {
		if s != nil && s.messages >= repeatedIn {
			c.Lines[l].repeated = s.last != int32(c.Passages[c.Lines[l].Passage].Message)
		}
	}
}

// shapeWithoutNumbers returns a hash of a line in which every word that has a digit is the same.
func shapeWithoutNumbers(s string) uint64 {
	h := uint64(hashSeed)
	for w := range strings.FieldsSeq(s) {
		if hasDigit(w) {
			h ^= 1
		} else {
			h ^= hashOf(w)
		}
		h *= hashPrime
	}
	return h
}

// findReplaced marks the old text of successful edits: no file has it any more, and the new text is more useful.
func (c *Conversation) findReplaced() {
	failed := map[string]bool{}
	for p := range c.Passages {
		if pass := &c.Passages[p]; pass.Kind == dialog.KindError {
			failed[pass.call] = true
		}
	}
	for p := range c.Passages {
		pass := &c.Passages[p]
		lines := c.Lines[pass.Lines.Start:pass.Lines.End]
		if pass.answers() && pass.family == families[dialog.FamilyCommand] {
			for i := range lines[:min(len(wrapperForms), len(lines))] {
				lines[i].replaced = isWrapper(lines[i].Text)
			}
		}
		if pass.Kind != dialog.KindToolCall || pass.partial || failed[pass.call] {
			continue
		}
		put := false
		for i := range lines {
			put = put || lines[i].field == fieldNew && !strings.HasPrefix(lines[i].Text, "-")
		}
		for i := range lines {
			line := &lines[i]
			line.replaced = isSwitch(line, pass.family) || put && (line.field == fieldOld || line.field == fieldNew && isPatch(lines) && strings.HasPrefix(line.Text, "-"))
		}
	}
}

// findSuperseded marks lines of files in results and in calls that write, which an edit or a newer read replaced later: a reader
// would take them for the present.
func (r *reading) findSuperseded() {
	gone := r.replayed.Superseded()
	if len(gone) == 0 {
		return
	}
	for p := range r.c.Passages {
		pass := &r.c.Passages[p]
		if pass.Kind != dialog.KindToolResult && (pass.Kind != dialog.KindToolCall || pass.family != families[dialog.FamilyWrite] && pass.family != families[dialog.FamilyEdit]) {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			line := &r.c.Lines[l]
			_, _, text := toolcall.Gutter(line.Text)
			at, was := gone[strings.TrimSpace(text)]
			if _, value, labelled := strings.Cut(text, ": "); !was && labelled && pass.Kind == dialog.KindToolCall {
				at, was = gone[strings.TrimSpace(value)]
			}
			line.void = line.void || was && at > pass.Message
		}
	}
}

// isSwitch reports whether a line is an option of a call that says nothing about the work: true, false, or a number
// in a command.
func isSwitch(line *Line, family uint8) bool {
	key, value, ok := strings.Cut(line.Text, ": ")
	if !ok || line.field != fieldOther || strings.ContainsAny(key, " \t") {
		return false
	}
	return value == "true" || value == "false" || value == "null" || family == families[dialog.FamilyCommand] && strings.Trim(value, "0123456789") == ""
}

// wrapperForms begin the lines that Codex puts before the output of a command.
var wrapperForms = []string{"Chunk ID: ", "Wall time: ", "Process exited with code 0", "Original token count: ", "Output:"}

// isWrapper reports whether a line at the head of a command's result says nothing about the command's effect.
func isWrapper(line string) bool {
	return slices.ContainsFunc(wrapperForms, func(form string) bool { return strings.HasPrefix(line, form) })
}

// isPatch reports whether the lines of a call have a patch in the form of apply_patch.
func isPatch(lines []Line) bool {
	const look = 4 // lines
	return slices.ContainsFunc(lines[:min(look, len(lines))], func(l Line) bool {
		return strings.Contains(l.Text, "*** Begin Patch") || strings.HasPrefix(l.Text, "*** Update File: ")
	})
}

// stale reports whether a newer line makes l redundant.
func (l *Line) stale() bool { return l.repeated || l.replaced }

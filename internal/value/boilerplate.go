package value

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/internal/value/parallel"
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
				lines[i].replaced = slices.ContainsFunc(wrapperForms, func(f string) bool { return strings.HasPrefix(lines[i].Text, f) })
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

// isPatch reports whether the lines of a call have a patch in the form of apply_patch.
func isPatch(lines []Line) bool {
	const look = 4 // lines
	return slices.ContainsFunc(lines[:min(look, len(lines))], func(l Line) bool {
		return strings.Contains(l.Text, "*** Begin Patch") || strings.HasPrefix(l.Text, "*** Update File: ")
	})
}

// stale reports whether a newer line makes l redundant.
func (l *Line) stale() bool { return l.repeated || l.replaced }

// A log repeats lines of one shape with another name in each: "Generated oban_web app", "PASS checkpoint-queue".
// Every such name is rare, yet few are written again. The values were not learned.
const (
	templateLines = 8    // of one shape, at least
	templateRare  = 3    // a word in fewer lines of the passage differs from line to line
	templateWord  = 6    // bytes: a longer one with digits is a name, not a number
	templateLong  = 120  // bytes: a longer line says more
	templateMany  = 4096 // words that justify new maps
)

// findTemplates finds the lines of results that repeat a shape.
func (c *Conversation) findTemplates() {
	const least = 64 // passages that are worth a goroutine
	parallel.Ranges(len(c.Passages), least, c.findTemplatesIn)
}

// findTemplatesIn finds the templates of the passages between from and to.
func (c *Conversation) findTemplatesIn(from, to int) {
	often, count := map[string]int{}, map[uint64]int{}
	var shapes []uint64
	for p := from; p < to; p++ {
		pass := &c.Passages[p]
		lines := c.Lines[pass.Lines.Start:pass.Lines.End]
		if len(lines) < templateLines || !pass.answers() {
			continue
		}
		if len(often) > templateMany { // clearing takes as long as the largest so far
			often, count = map[string]int{}, map[uint64]int{}
		}
		clear(often)
		clear(count)
		shapes = shapes[:0]
		for l := range lines {
			for w := range strings.FieldsSeq(lines[l].Text) {
				often[w]++
			}
		}
		for l := range lines {
			shape := uint64(0)
			if text := lines[l].Text; !lines[l].flat && len(text) < templateLong && !hasNumber(text) {
				shape = shapeIn(text, often)
			}
			shapes = append(shapes, shape)
			count[shape]++
		}
		for l := range lines {
			lines[l].template = shapes[l] != 0 && count[shapes[l]] >= templateLines
		}
	}
}

// shapeIn returns a hash of a line without its numbers and rare words; 0 if nothing is left, if the difference is a
// place or a value, or if the line reports a failure.
func shapeIn(line string, often map[string]int) uint64 {
	shape, stays, differs := uint64(hashSeed), false, false
	for w := range strings.FieldsSeq(line) {
		digit := hasDigit(w)
		rare := often[w] < templateRare
		switch {
		case !rare && !digit:
			if shape == hashSeed && strings.HasSuffix(w, ":") {
				return 0 // the name of a value
			}
			stays = stays || len(w) > 1
			shape ^= hashOf(w)
		case strings.ContainsAny(w, "/\\:=\"'`(){};,"), rare && !digit && strings.Contains(w, "."), rare && digit && len(w) >= templateWord:
			return 0
		default:
			differs = true
		}
		shape *= hashPrime
	}
	if !stays || !differs || saysFailure(line) {
		return 0
	}
	return shape
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

func saysFailure(line string) bool {
	low := strings.ToLower(line)
	return slices.ContainsFunc([]string{"error", "fail", "warn", "panic"}, func(w string) bool { return strings.Contains(low, w) })
}

// discountTemplates removes the value of terms and phrases that only template lines have.
func (v *rating) discountTemplates() {
	if !slices.ContainsFunc(v.r.c.Lines, func(l Line) bool { return l.template }) {
		return
	}
	terms, phrases := make([]bool, v.r.c.Terms()), make([]bool, len(v.r.c.phrases)) // terms and phrases of other lines
	for l := range v.r.c.Lines {
		if v.r.c.Lines[l].template {
			continue
		}
		for _, n := range v.r.c.TermsOf(l) {
			terms[n] = true
		}
		for _, n := range v.r.c.phrasesOf(l) {
			phrases[max(n, ^n)] = true
		}
	}
	e := v.estimate
	for n, other := range terms {
		if !other {
			e.Names[n], e.Words[n] = 0, 0
		}
	}
	for n, other := range phrases {
		if !other {
			e.Phrases[n] = 0
		}
	}
}

package value

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

// Said returns how many tokens of the user's words, by counter, are in before, quotes by former condensations included,
// and how many of these are also in after, estimated from their length. The cost is linear, and small for messages that r has read.
func Said(r *dialog.Reader, before, after []core.Message, counter core.Counter) (was, left int) {
	still := map[string]int{}
	for _, line := range linesOfUser(r, after) {
		for w := range wordsIn(line) {
			still[w]++
		}
	}
	all, gone := 0, 0
	for _, line := range linesOfUser(r, before) {
		was += counter.Count(core.Text(line))
		for w := range wordsIn(line) {
			all += len(w)
			if still[w]--; still[w] < 0 {
				gone += len(w)
			}
		}
	}
	if gone == 0 {
		return was, was
	}
	return was, int(int64(was) * int64(all-gone) / int64(all))
}

// linesOfUser returns the lines of the user in messages.
func linesOfUser(known *dialog.Reader, messages []core.Message) (lines []string) {
	c := &Conversation{termAt: newTable(0)}
	r := reader{c: c, words: true}
	d := known.Read(messages)
	for i := range messages {
		r.message(i, &messages[i], d.Messages[i])
	}
	for i := range c.Lines {
		if l := &c.Lines[i]; c.Passages[l.Passage].Kind == dialog.KindUser {
			lines = append(lines, l.Text)
		}
	}
	return lines
}

// wordsIn yields the words of a line, and each sign of a script without spaces.
func wordsIn(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsSeq(strings.Trim(line, GapMark)) {
			for w != "" {
				r, n := utf8.DecodeRuneInString(w)
				if !unspaced(r) {
					if n = strings.IndexFunc(w, unspaced); n < 0 {
						n = len(w)
					}
				}
				if !yield(w[:n]) {
					return
				}
				w = w[n:]
			}
		}
	}
}

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

// listLeft writes, for an agent that cannot recall, the files that hidden calls read and that were not changed since, in at most room
// tokens. It returns the tokens of the list.
func (pre *preface) listLeft(hidden []bool, room int) float64 {
	names := slices.DeleteFunc(slices.Clone(pre.r.c.left), func(line string) bool { return unitRef().MatchString(line) })
	names = pre.r.unchanged(append(names, pre.r.leftFiles(hidden)...))
	for n := len(names); n > 0; n = n * 9 / 10 { // every second, third and so on if there are too many
		some := make([]string, n)
		for i := range some {
			some[i] = names[i*len(names)/n]
		}
		text := " " + leftPaths + "\n" + strings.Join(some, "\n")
		if size := pre.r.o.Counter.Count(core.Text(UsualMark + text + "\n")); size <= room {
			pre.left = text
			return float64(size)
		}
	}
	return 0
}

// leftFiles returns the files, with lines, that calls in hidden messages read.
func (r *reading) leftFiles(hidden []bool) []string {
	reads := map[string]dialog.File{} // by call
	var out []string
	for i := range r.messages {
		for j, p := range r.messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if info := dialog.ParseCall(p.Name, p.Args); info.Family == dialog.FamilyRead && len(info.Files) == 1 && info.Files[0].Range != dialog.SeveralRanges {
					reads[p.ID] = info.Files[0]
				}
			case core.ToolResult:
				f, ok := reads[p.CallID]
				r, _ := r.o.Original(&r.messages[i], j).(core.ToolResult)
				if !ok || !hidden[i] || p.IsError || len(r.Content) != 1 || strings.ContainsAny(f.Path, " \t\n") {
					continue
				}
				t, _ := r.Content[0].(core.Text)
				first := max(f.Range.First, 1)
				last := max(f.Range.Last, first+strings.Count(strings.TrimRight(string(t), "\n"), "\n"))
				name := core.Label(f.Path) + ":" + strconv.Itoa(first) + "-" + strconv.Itoa(last)
				if !slices.Contains(out, name) {
					out = append(out, name)
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return out
}

// unchanged returns the names of files with lines that were only read since, never named by another call.
func (r *reading) unchanged(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		path, _, _ := strings.Cut(name, ":")
		base := path[strings.LastIndexByte(path, '/')+1:]
		changed := false
		for i := range r.messages {
			for _, p := range r.messages[i].Parts {
				c, ok := p.(core.ToolCall)
				if !ok || !strings.Contains(c.Args, base) {
					continue
				}
				if info := dialog.ParseCall(c.Name, c.Args); info.Family != dialog.FamilyRead {
					changed = true // it may have been read again since: then it is omitted without need
				}
			}
		}
		return changed
	})
}

// After the index an extract lists open work, if it is hidden: the items of the newest plan that are not done, commands
// that failed and did not succeed since, and identifiers that calls made. The next condensation updates it.

const (
	// openName begins its header. It is part of the form of an extract; the text after it is for models.
	openName = "open:"
	openHand = openName + " plan, failures, changes so far"
	// Beginnings of its lines, which a later condensation reads. Doing marks an item that was begun.
	todoName    = "todo: "
	doingName   = "doing: "
	nextName    = "next: "
	errorName   = "error: "
	errorSign   = " → " // between the command and its error
	fixedName   = "fixed: "
	changedName = "changed: "

	openLeast   = 60 // tokens: with less, the lines are worth more
	openItems   = 8
	openErrors  = 3
	openFixed   = 3
	openChanged = 20
	openLong    = 160 // bytes of an entry
	// openLook is the number of the newest fixable commands that are looked at: earlier errors are no longer news.
	openLook = 20
)

// listOpen writes the block of open work, and returns its tokens. It may use its share of the room, and at most free.
// A failure is visible to the reader as long as its result is: it is listed if the result is hidden, or if unsure
// reports that lines of it may be dropped.
func (pre *preface) listOpen(hidden []bool, unsure func(*Passage) bool, free float64) float64 {
	pre.open, pre.opened = "", nil
	tokens := func(text string) int { return pre.r.o.Counter.Count(core.Text(text + "\n")) }
	head := tokens(UsualMark + " " + openHand)
	if free -= float64(head); pre.r.o.Shares.Open <= 0 || free <= 0 || !slices.Contains(hidden, true) {
		return 0
	}
	made, sum := pre.listCreated(hidden, free)
	room := int(min(pre.r.o.Shares.Open*float64(pre.r.o.Room)-float64(head), free-sum))
	if room < openLeast-head {
		room = 0
	}
	var items, errors, fixed []string
	from := map[string]int{} // the passage of each entry
	if said, p := pre.r.next(); said != "" && (p < 0 || hidden[pre.r.c.Passages[p].Message]) {
		items = append(items, nextName+said)
		from[nextName+said] = p
	}
	for _, t := range pre.r.plan() {
		if !t.done && len(items) < openItems && (t.passage < 0 || hidden[pre.r.c.Passages[t.passage].Message]) {
			items = append(items, t.entry())
			from[t.entry()] = t.passage
		}
	}
	failures, fixedLater := pre.r.failures()
	for _, f := range failures {
		if f.passage < 0 || hidden[pre.r.c.Passages[f.passage].Message] || unsure(&pre.r.c.Passages[f.passage]) {
			errors = append(errors, f.entry)
			from[f.entry] = f.passage
		}
	}
	for _, f := range fixedLater {
		fixed = append(fixed, f.entry)
		from[f.entry] = f.passage
	}
	changed := pre.changed()
	for _, e := range changed {
		from[e] = -1
	}
	// Alternate between items and errors, the first item and the newest error first.
	fits := map[string]bool{}
	used := 0
	for i := range max(len(items), len(errors), len(fixed), len(changed)) {
		for _, list := range [][]string{items, errors, changed, fixed} {
			if i < len(list) {
				if n := tokens(list[i]); n <= room {
					fits[list[i]] = true
					room, used = room-n, used+n
				}
			}
		}
	}
	slices.Reverse(errors) // the newest last
	slices.Reverse(fixed)
	slices.Reverse(changed)
	var b strings.Builder
	for _, e := range slices.Concat(items, errors, fixed, changed) {
		if !fits[e] {
			continue
		}
		fits[e] = false // two commands may have failed alike
		b.WriteString("\n" + e)
		if p := from[e]; p >= 0 {
			for l := pre.r.c.Passages[p].Lines.Start; l < pre.r.c.Passages[p].Lines.End; l++ {
				if strings.Contains(e, strings.TrimSpace(pre.r.c.Lines[l].Text)) {
					pre.opened = append(pre.opened, l)
				}
			}
		}
	}
	for _, e := range made {
		b.WriteString("\n" + e)
	}
	if b.Len() == 0 {
		return 0
	}
	pre.open = " " + openHand + b.String()
	return float64(used+head) + sum
}

// settleOpen removes from the value of lines the terms and phrases that the block already has.
func (w *choice) settleOpen() {
	for _, l := range slices.Concat(w.pre.opened, w.pre.filed) {
		line := &w.lines[l]
		for _, n := range w.v.termsOf(line) {
			w.terms[n].credit = max(w.terms[n].credit, float32(w.r.o.Shares.Line))
		}
		for _, n := range w.v.phrasesOf(line) {
			if n >= 0 {
				w.phrases[n] = 0
			}
		}
	}
}

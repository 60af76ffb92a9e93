package value

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

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

// Package ledger replays a conversation's reads, writes, edits and patches, and so knows the newest text of every
// region of every file that the conversation showed. It reads no file system.
//
// A file is a list of runs. A run is consecutive lines, with the number of its first line if its place in the file is
// known. A read puts lines at their numbers. An edit finds its old text, replaces it, and moves the numbers below. If
// the old text is not known, its new text becomes a run without a place.
package ledger

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Line is a line of a file as it was last seen.
type Line struct {
	Text   string
	Seen   int // the last message that showed or wrote it
	Times  int // the number of messages that did
	Edited int // the message whose edit wrote it; -1 if none
}

// A Run is consecutive lines.
type Run struct {
	First int // the number of its first line; 0 if unknown
	Lines []Line
}

// A File is the known text of a file.
type File struct {
	Path    string
	Runs    []Run          // runs with numbers first, by number
	Touched int            // the last message that read or changed it
	Edited  int            // the last message that changed it; -1 if none
	Unsure  int            // the last message that changed it in a way that is not known
	Edits   int            // the number of its changes
	former  map[string]int // lines that were replaced or removed, without the space around them, with the message that did it last
}

// Superseded returns the lines, without the space around them, that files had and none has any more, with the last message that
// replaced or removed each.
func (l *Ledger) Superseded() map[string]int {
	all := map[string]int{}
	for _, f := range l.Files {
		for t, m := range f.former {
			all[t] = max(all[t], m)
		}
	}
	if len(all) > 0 {
		for _, f := range l.Files {
			for _, r := range f.Runs {
				for i := range r.Lines {
					delete(all, strings.TrimSpace(r.Lines[i].Text))
				}
			}
		}
	}
	return all
}

// left notes lines that are no longer in their place.
func (f *File) left(lines []Line) {
	for i := range lines {
		if t := strings.TrimSpace(lines[i].Text); len(t) >= doubtLong {
			if f.former == nil {
				f.former = map[string]int{}
			}
			f.former[t] = f.Touched
		}
	}
}

// A Ledger is the known text of all files. The zero value is empty.
type Ledger struct {
	Files  []*File // in the order in which they were first touched
	byBase map[string][]*File
	folder string // in which the session works, if it is known
}

// File returns the file at a path, which may be relative: see [toolcall.SameFile]. It adds
// a file that is new.
func (l *Ledger) File(name string) *File {
	name = toolcall.CleanPath(name)
	if f := l.known(name); f != nil {
		if len(name) > len(f.Path) {
			f.Path = name
		}
		return f
	}
	f := &File{Path: name, Edited: -1}
	l.Files = append(l.Files, f)
	if l.byBase == nil {
		l.byBase = map[string][]*File{}
	}
	l.byBase[path.Base(name)] = append(l.byBase[path.Base(name)], f)
	return f
}

// Known returns the file at a path, which may be relative; nil if the conversation does not show it.
func (l *Ledger) Known(name string) *File { return l.known(toolcall.CleanPath(name)) }

// known returns the file at a clean path; nil if it is new.
func (l *Ledger) known(name string) (near *File) {
	for _, f := range l.byBase[path.Base(name)] {
		switch is, sure := toolcall.SameFile(l.folder, f.Path, name); {
		case sure:
			return f
		case is && near == nil:
			near = f
		}
	}
	return near
}

// fewestKnown is the share of the lines of a run without a place that a read must show to have shown that run.
const fewestKnown = 0.6

// Show puts the lines that message m showed at their numbers, from first on; 0 if the place is unknown.
func (f *File) Show(first int, texts []string, m int) {
	f.Touched = m
	if len(texts) == 0 {
		return
	}
	lines := plain.Each(texts, func(t string) Line { return Line{Text: t, Seen: m, Times: 1, Edited: -1} })
	f.overtake(texts)
	if first <= 0 {
		f.Runs = append(f.Runs, Run{Lines: lines})
		return
	}
	f.put(Run{First: first, Lines: lines})
}

// overtake removes the runs without a place that newer lines show, as they were or, after a change that is not known, as they are now.
func (f *File) overtake(texts []string) {
	shown := plain.Set(texts)
	f.Runs = slices.DeleteFunc(f.Runs, func(r Run) bool {
		if r.First > 0 {
			return false
		}
		n := 0
		var changed []Line
		for _, l := range r.Lines {
			if shown[l.Text] {
				n++
			} else if l.Seen < f.Unsure && slices.ContainsFunc(texts, func(t string) bool { return alike(t, l.Text) }) {
				changed = append(changed, l)
			}
		}
		known := float64(n+len(changed)) >= fewestKnown*float64(len(r.Lines))
		if known {
			f.left(changed)
		}
		return known
	})
}

// alike reports whether two lines differ in words only, and in half of them at most.
func alike(a, b string) bool {
	words, same := 0, 0
	for a, b = strings.TrimSpace(a), strings.TrimSpace(b); a != "" && b != ""; {
		i, j := wordLen(a), wordLen(b)
		switch {
		case i > 0 && j > 0:
			words++
			if a[:i] == b[:j] {
				same++
			}
		case a[0] != b[0]:
			return false
		default:
			i, j = 1, 1
		}
		a, b = a[i:], b[j:]
	}
	return a == b && 2*same >= words
}

// wordLen is the length of the name or number that s begins with.
func wordLen(s string) int {
	return len(s) - len(strings.TrimLeftFunc(s, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }))
}

// end removes what was known below line last, which a read of the whole file showed to be its last, and text without a place.
func (f *File) end(last int) {
	f.Runs = slices.DeleteFunc(f.Runs, func(r Run) bool {
		keep := 0
		if r.First > 0 {
			keep = min(max(0, last+1-r.First), len(r.Lines))
		}
		f.left(r.Lines[keep:])
		return keep == 0
	})
	if n := len(f.Runs); n > 0 {
		r := &f.Runs[n-1]
		r.Lines = r.Lines[:min(len(r.Lines), last+1-r.First)]
	}
}

// put places a run over the previous text. Lines that did not change keep their history.
func (f *File) put(r Run) {
	end := r.First + len(r.Lines)
	var before, after, loose []Run
	for _, old := range f.Runs {
		last := old.First + len(old.Lines)
		switch {
		case old.First == 0:
			loose = append(loose, old)
			continue
		case last <= r.First:
			before = append(before, old)
			continue
		case old.First >= end:
			after = append(after, old)
			continue
		}
		f.left(old.Lines[max(old.First, r.First)-old.First : min(last, end)-old.First])
		for n := max(old.First, r.First); n < min(last, end); n++ {
			if was, now := &old.Lines[n-old.First], &r.Lines[n-r.First]; was.Text == now.Text {
				now.Times += was.Times
				now.Edited = max(now.Edited, was.Edited)
			}
		}
		if old.First < r.First {
			before = append(before, Run{First: old.First, Lines: old.Lines[:r.First-old.First]})
		}
		if last > end {
			after = append(after, Run{First: end, Lines: old.Lines[end-old.First:]})
		}
	}
	f.Runs = before
	for _, next := range append([]Run{r}, after...) {
		if n := len(f.Runs); n > 0 && f.Runs[n-1].First+len(f.Runs[n-1].Lines) == next.First {
			f.Runs[n-1].Lines = slices.Concat(f.Runs[n-1].Lines, next.Lines)
			continue
		}
		f.Runs = append(f.Runs, next)
	}
	f.Runs = append(f.Runs, loose...)
}

// Write replaces the file by the text that message m wrote.
func (f *File) Write(text string, m int) {
	f.Touched, f.Edited = m, m
	was := map[string]Line{}
	for _, r := range f.Runs {
		f.left(r.Lines)
		for _, l := range r.Lines {
			was[l.Text] = l
		}
	}
	r := Run{First: 1}
	for _, t := range linesOf(text) {
		l, known := was[t]
		if !known {
			l = Line{Text: t, Edited: m}
		}
		l.Seen, l.Times = m, l.Times+1
		r.Lines = append(r.Lines, l)
	}
	f.Runs = []Run{r}
}

// Append adds the text that message m wrote at the end.
func (f *File) Append(text string, m int) {
	f.Touched, f.Edited = m, m
	f.Edits++
	f.Runs = append(f.Runs, written(text, m))
}

// written returns a run without a place that message m wrote.
func written(text string, m int) (r Run) {
	r.Lines = append(r.Lines, plain.Each(linesOf(text), func(t string) Line { return Line{Text: t, Seen: m, Times: 1, Edited: m} })...)
	return r
}

// Edit replaces old by text in message m, everywhere if all is set. It reports whether old is known.
func (f *File) Edit(old, text string, all bool, m int) bool {
	f.Touched, f.Edited = m, m
	f.Edits++
	applied := len(text) >= doubtLong && f.has(text) && !f.has(old) // a former extract, which is newer, has it
	if applied {
		f.overtake(linesOf(old))
	}
	found := false
	for i := 0; i < len(f.Runs); i++ {
		for from := 0; old != ""; {
			at := f.replace(i, from, old, text, m)
			if at < 0 {
				break
			}
			found, from = true, at
			if !all {
				break
			}
		}
		if found && !all {
			break
		}
	}
	if !found {
		for _, t := range linesOf(old) {
			f.left([]Line{{Text: t}})
		}
		if applied {
			return true
		}
		f.overtake(linesOf(old))
		f.doubt(old)
		f.Unsure = m
		if strings.TrimSpace(text) != "" {
			r, was := written(text, m), linesOf(old)
			for i := range r.Lines {
				if slices.Contains(was, r.Lines[i].Text) {
					r.Lines[i].Edited = -1
				}
			}
			f.Runs = append(f.Runs, r)
		}
	}
	return found
}

// An edit whose old text is only partly known changed something near the known lines of it.
const (
	doubtLong = 14 // bytes: a shorter line is in many places
	doubtNear = 15 // lines above and below
)

// doubt forgets the lines near known lines of old, which an edit of unknown place may have changed.
func (f *File) doubt(old string) {
	lines := map[string]bool{}
	for _, t := range linesOf(old) {
		if t = strings.TrimSpace(t); len(t) >= doubtLong {
			lines[t] = true
		}
	}
	if len(lines) == 0 {
		return
	}
	var runs []Run
	for _, r := range f.Runs {
		from, unsure := 0, 0 // lines from here on are kept unless they precede unsure
		for k := range r.Lines {
			if !lines[strings.TrimSpace(r.Lines[k].Text)] {
				continue
			}
			if end := k - doubtNear; end > max(from, unsure) {
				runs = append(runs, r.part(max(from, unsure), end))
			}
			unsure = k + doubtNear + 1
			from = unsure
		}
		if from < len(r.Lines) {
			runs = append(runs, r.part(from, len(r.Lines)))
		}
	}
	f.Runs = runs
}

// part returns the lines of r between from and to.
func (r *Run) part(from, to int) Run {
	p := Run{Lines: r.Lines[from:to]}
	if r.First > 0 {
		p.First = r.First + from
	}
	return p
}

// replace replaces the first occurrence of old in run i that begins at line from or below. It returns the line after
// it; -1 if there is none.
func (f *File) replace(i, from int, old, text string, m int) int {
	r := &f.Runs[i]
	wants := strings.Split(old, "\n")
	if k, head, tail := r.find(wants, from); k >= 0 {
		was := r.Lines[k : k+len(wants)]
		f.left(was)
		now := strings.Split(head+text+tail, "\n")
		if head+text+tail == "" && (len(wants) > 1 || old == was[0].Text) {
			now = nil
		}
		fresh, edited := make([]Line, len(now)), map[string]int{}
		for j := range was {
			edited[was[j].Text] = was[j].Edited
		}
		for j, t := range now {
			fresh[j] = Line{Text: t, Seen: m, Times: 1, Edited: m}
			if at, known := edited[t]; known {
				fresh[j].Edited = at
			}
		}
		same := func(a, b *Line) bool {
			if a.Text != b.Text {
				return false
			}
			b.Times, b.Edited = a.Times+1, a.Edited
			return true
		}
		start := 0
		for start < min(len(was), len(fresh)) && same(&was[start], &fresh[start]) {
			start++
		}
		for end := 1; end <= min(len(was), len(fresh))-start && same(&was[len(was)-end], &fresh[len(fresh)-end]); end++ { //nolint:revive // it counts
		}
		delta := len(fresh) - len(was)
		r.Lines = slices.Concat(r.Lines[:k], fresh, r.Lines[k+len(wants):])
		for j := range f.Runs {
			if j != i && r.First > 0 && f.Runs[j].First > r.First {
				f.Runs[j].First += delta
			}
		}
		return k + len(fresh)
	}
	return -1
}

// has reports whether the file has a text at a known place.
func (f *File) has(text string) bool {
	return slices.ContainsFunc(f.Runs, func(r Run) bool {
		k, _, _ := r.find(strings.Split(text, "\n"), 0)
		return r.First > 0 && k >= 0
	})
}

// find returns the first line, from one on, where lines match wants, and what matches returns; -1 if there is none.
func (r *Run) find(wants []string, from int) (k int, head, tail string) {
	for k := from; k+len(wants) <= len(r.Lines); k++ {
		if head, tail, ok := matches(r.Lines[k:k+len(wants)], wants); ok {
			return k, head, tail
		}
	}
	return -1, "", ""
}

// matches reports whether lines match wants, whose first element may be the end of a line and whose last may be the
// beginning of one. It returns the rest of these two lines.
func matches(lines []Line, wants []string) (head, tail string, ok bool) {
	first, last := lines[0].Text, lines[len(lines)-1].Text
	if len(wants) == 1 {
		at := strings.Index(first, wants[0])
		if at < 0 {
			return "", "", false
		}
		return first[:at], first[at+len(wants[0]):], true
	}
	if !strings.HasSuffix(first, wants[0]) || !strings.HasPrefix(last, wants[len(wants)-1]) {
		return "", "", false
	}
	for i := 1; i < len(wants)-1; i++ {
		if lines[i].Text != wants[i] {
			return "", "", false
		}
	}
	return first[:len(first)-len(wants[0])], last[len(wants[len(wants)-1]):], true
}

// linesOf returns the lines of a text, without the empty one after its end.
func linesOf(text string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}

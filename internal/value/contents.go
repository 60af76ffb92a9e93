package value

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value/ledger"
)

// An extract begins with a table of the contents that are hidden, in the order of the conversation: a line says who or which tool, the
// file or command, the outcome, the size, and the number by which it is recalled. So a reader fetches the one result that answers a
// question, and not all of them.

const (
	// contentsName begins its header, leftName that of the list of handles of former versions. They are parts of the form of an extract;
	// the text after them is for models and may change.
	contentsName = "contents:"
	contentsHand = contentsName + " left out here; recall by number (m7.2: second result of message 7) or range (m7-m9), with of " + contentsKey + "; (tokens)"
	contentsKey  = "%06x" // of all content: it tells the numbers of this conversation from those of others, and of its other branches
	leftName     = "hidden:"
	leftPaths    = leftName + " files read and not changed since"

	unitNext = "; "  // between units of a line
	unitSign = " → " // between a call and its outcome
	// unitShare is the most that the table may have of all tokens: it does not grow with the room. With it, and Index, readers are expected
	// to find a third more by a label, and extracts lose .01 of the needed text (bench/results/strangers.md).
	unitShare = 0.010
	unitGroup = 6   // results that share a line at most
	unitNames = 4   // that an edit inserts
	unitFold  = 5   // neighbours without a line of their own share one from this number on
	unitText  = 120 // tokens from which a text has a line
	unitLook  = 40  // lines of a result, at either end, where its outcome is looked for
)

// A rank says how long a line of the table stays: the light ones are shortened and dropped first.
type rank uint8

// The ranks.
const (
	light  rank = iota // reads, lists and searches, which can be made again
	middle             // other calls
	heavy              // changes, failures, reports, texts
	ranks
)

// cuts are the steps in which lines are shortened: the most bytes of subject and outcome, by rank. In the last, light lines are
// dropped, then those of middle rank, the smallest contents first.
var cuts = [][ranks]struct{ subject, outcome int }{
	{{64, 0}, {64, 70}, {64, 70}},
	{{40, 0}, {64, 70}, {64, 70}},
	{{40, 0}, {48, 48}, {64, 70}},
	{{32, 0}, {40, 40}, {48, 48}},
}

// A unit is the content of a line of the table: a result with its call, or a text; one of a former table may stand for several.
type unit struct {
	message       int    // -1 if it is of a former table
	passages      []int  // with its content
	ref           string // a number, a range of them, or a handle
	tool          string
	subject, ends string // the file, command or first words; the outcome
	size          int    // tokens
	more          int    // units that a range has besides the one that is named
	rank          rank
}

// text returns the line of u, cut to the step, without the tool if it is that of the unit before in the same line.
func (u *unit) text(step int, tool string) string {
	s := u.ref
	if u.tool != tool {
		s += " " + u.tool
	}
	c := cuts[step][u.rank]
	if u.subject != "" {
		s += " " + unitLine(u.subject, c.subject)
	}
	if u.ends != "" && c.outcome > 0 {
		s += unitSign + unitLine(u.ends, c.outcome)
	}
	if u.more > 0 {
		s += fmt.Sprintf(" and %d more", u.more)
	}
	return s + " (" + short(u.size) + ")"
}

// unitLine returns at most n bytes of s that cannot be taken for the beginning of another unit.
func unitLine(s string, n int) string { return strings.ReplaceAll(oneLine(s, n), unitNext, ", ") }

// short writes a number in at most four characters.
func short(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 10_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return strconv.Itoa((n+500)/1000) + "k"
}

// A callKey is the ID of a call or, if a text answers it, its tool.
type callKey struct{ id, tool string }

// units returns the units of all messages but former extracts, oldest first.
func (r *reading) units() []unit {
	var out []unit
	calls := map[callKey]int{} // passages
	perToken := r.perToken()
	for p := 0; p < len(r.c.Passages); {
		pass := &r.c.Passages[p]
		m, part := &r.messages[pass.Message], pass.part
		u := unit{message: pass.Message}
		for ; p < len(r.c.Passages) && r.c.Passages[p].Message == u.message && r.c.Passages[p].part == part; p++ {
			u.passages = append(u.passages, p)
		}
		was := r.o.Original(m, part)
		bytes := core.ContentBytes(was)
		switch was := was.(type) {
		case core.ToolCall:
			calls[callKey{id: was.ID}], calls[callKey{tool: pass.Name}] = u.passages[0], u.passages[0]
			continue
		case core.ToolResult:
			if !r.answered(&u, pass, calls, callKey{id: was.CallID}, &bytes) {
				continue
			}
		case core.Text:
			if pass.partial || pass.rules != "" {
				continue
			}
			if pass.answers() && pass.Name != "" {
				if !r.answered(&u, pass, calls, callKey{tool: pass.Name}, &bytes) {
					continue
				}
				break
			}
			if float64(bytes) < unitText*perToken {
				continue
			}
			u.tool, u.rank, u.subject = headings[pass.Kind]+":", heavy, r.firstWords(pass)
			if pass.Kind == dialog.KindInjected {
				u.rank = light
			}
		default:
			continue
		}
		u.ref, u.size = r.ref(pass), max(1, int(float64(bytes)/perToken))
		out = append(out, u)
	}
	return out
}

// answered describes u, the result in pass, with its call, which calls has, and adds the call's bytes. It reports false if the result needs
// no line: it was recalled.
func (r *reading) answered(u *unit, pass *Passage, calls map[callKey]int, key callKey, bytes *int) bool {
	call := &Passage{Name: pass.Name, Target: pass.Target}
	if c, ok := calls[key]; ok {
		call = &r.c.Passages[c]
		u.passages = append(u.passages, c)
		*bytes += core.ContentBytes(r.o.Original(&r.messages[call.Message], call.part))
	}
	const perLine = 40 // bytes, of lines that an earlier condensation left out in place
	if n := linesOf(endMark(r.original(pass))); n > 1 {
		*bytes += n * perLine
	}
	r.describe(u, pass, call)
	return !r.recalled(pass) && !r.recalled(call)
}

// perToken returns the bytes of content that a token of the conversation has.
func (r *reading) perToken() float64 {
	bytes := plain.Sum(r.messages, func(x core.Message) int { return core.ContentBytes(x.Parts...) })
	return max(1, float64(bytes)/float64(max(1, core.TotalTokens(r.messages))))
}

// ref returns that by which the part of p is recalled: a number if its message has one, else its handle; empty if nothing can be recalled.
func (r *reading) ref(p *Passage) string {
	m := &r.messages[p.Message]
	if r.o.NoHandles || p.partial || m.Number == 0 {
		return r.handle(p)
	}
	ref := "m" + strconv.Itoa(m.Number)
	if nth := dialog.ResultNumber(m.Parts, p.part); nth > 0 {
		ref += "." + strconv.Itoa(nth)
	}
	return ref
}

// describe fills in the subject and the outcome of u, a result.
func (r *reading) describe(u *unit, result, call *Passage) {
	text := r.original(result)
	failed := result.failed(text)
	u.tool, u.subject, u.rank = cmp.Or(toolName(call.Name), headings[result.Kind]), lastFolders(call.Target), middle
	family := dialog.FamilyOf(call.Name)
	var info dialog.CallInfo
	if call.Kind == dialog.KindToolCall { // it is there
		info = dialog.ParseCall(call.Name, r.original(call))
	}
	switch family {
	case dialog.FamilyRead, dialog.FamilyList, dialog.FamilySearch, dialog.FamilyPlan:
		u.rank = light
		if len(info.Files) == 1 && info.Files[0].Range.First > 0 {
			u.subject += ":" + strconv.Itoa(info.Files[0].Range.First)
			if last := info.Files[0].Range.Last; last > 0 {
				u.subject += "-" + strconv.Itoa(last)
			}
		}
	case dialog.FamilyWrite, dialog.FamilyEdit:
		u.rank, u.ends = heavy, r.inserted(call)
		for _, f := range info.Files[min(1, len(info.Files)):] {
			u.subject += ", " + path.Base(f.Path)
		}
	case dialog.FamilyCommand:
		u.subject = dialog.BareCommand(call.Target)
		program, _, _ := strings.Cut(u.subject, " ")
		switch {
		case ledger.Changes(call.Target):
			u.rank, u.ends = heavy, lastLine(text)
		case slices.Contains(displays, program):
			u.rank = light
		default:
			u.ends = lastLine(text)
		}
	case dialog.FamilyDelegate:
		u.rank = heavy
	case dialog.FamilyAsk:
		u.rank, u.ends = heavy, firstLine(text)
	case dialog.FamilyUnknown, dialog.FamilyWeb, dialog.FamilyDone:
		u.ends = firstLine(text)
	}
	if failed {
		u.rank = heavy
		if family != dialog.FamilyAsk {
			u.ends = errorLine(bothEnds(text))
		}
	}
}

// displays are programs whose output can be shown again.
var displays = []string{"sed", "cat", "head", "tail", "nl", "bat", "less", "ls", "find", "grep", "rg", "wc", "tree", "fd", "pwd", "which", "file", "stat"}

// lastFolders shortens a path to its last two elements, and its lines.
func lastFolders(target string) string {
	if strings.ContainsAny(target, " \t\n*?") {
		return target
	}
	name := strings.TrimRight(target, "/")
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if j := strings.LastIndexByte(name[:i], '/'); j >= 0 {
			name = name[j+1:]
		}
	}
	return name
}

// inserted describes an edit: the first names that it inserts and that were not in the text before, else those that it removes. Whole
// lines could be out of date.
func (r *reading) inserted(call *Passage) string {
	if call.family == families[dialog.FamilyWrite] {
		return ""
	}
	var names [2][]string // removed, inserted
	for _, l := range r.c.Lines[call.Lines.Start:call.Lines.End] {
		text, at := l.Text, 0
		if key, value, ok := strings.Cut(text, ": "); ok && fieldIn(text) != fieldOther && !strings.ContainsAny(key, " \t") {
			text = value
		}
		switch {
		case l.field == fieldNew && strings.HasPrefix(text, "***"), l.field == fieldNew && strings.HasPrefix(text, "@@"):
			continue
		case l.field == fieldNew && !strings.HasPrefix(text, "-"):
			at = 1
		case l.field != fieldOld && l.field != fieldNew:
			continue
		}
		const least = 3 // letters of a name
		for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(name) >= least && !slices.Contains(names[at], name) {
				names[at] = append(names[at], name)
			}
		}
	}
	for _, at := range []int{1, 0} {
		own := slices.DeleteFunc(slices.Clone(names[at]), func(name string) bool { return slices.Contains(names[1-at], name) })
		if len(own) > 0 {
			return [2]string{"- ", "+ "}[at] + strings.Join(own[:min(len(own), unitNames)], " ")
		}
	}
	return ""
}

// bothEnds returns the first and the last lines of a text.
func bothEnds(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= 2*unitLook {
		return text
	}
	return strings.Join(slices.Concat(lines[:unitLook], lines[len(lines)-unitLook:]), "\n")
}

// lastLine returns the last line of a text that says something, firstLine the first.
func lastLine(text string) string {
	for n := 0; text != "" && n < unitLook; n++ {
		i := strings.LastIndexByte(text, '\n')
		if line := text[i+1:]; hasWord(line) && !strings.HasPrefix(line, markStart) {
			return line
		}
		text = text[:max(i, 0)]
	}
	return ""
}

func firstLine(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if hasWord(line) {
			return line
		}
	}
	return ""
}

// firstWords returns the first line of a text.
func (r *reading) firstWords(p *Passage) string {
	for _, l := range r.c.Lines[p.Lines.Start:p.Lines.End] {
		if strings.TrimSpace(l.Text) != "" {
			return strings.TrimSpace(l.Text)
		}
	}
	return ""
}

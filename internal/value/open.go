package value

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/rawjson"
)

// After the index an extract says what is still open, if that is hidden: the items of the newest plan that are not
// done, and commands that failed and did not succeed since. The next condensation brings it up to date.

const (
	// openName begins its header. It is part of the form of an extract, but what follows it is for models.
	openName = "open:"
	openHand = openName + " plan, failures, changes so far"
	// These begin its lines, which a later condensation reads. Doing is an item that was begun.
	todoName    = "todo: "
	doingName   = "doing: "
	nextName    = "next: "
	errorName   = "error: "
	errorSign   = " → " // between the command and what it said
	fixedName   = "fixed: "
	changedName = "changed: "

	openLeast   = 60 // tokens: with less, the lines are worth more
	openItems   = 8
	openErrors  = 3
	openFixed   = 3
	openChanged = 20
	openLong    = 160 // bytes of an entry
	// openLook is how many of the newest commands that can be mended are looked at: an error from before them is no news.
	openLook = 20
)

// A todo is an item of a plan.
type todo struct {
	id, text    string // the id without #, if it has one
	doing, done bool
	passage     int // that says it; -1 if only a former extract does
}

// entry returns the line for it.
func (t *todo) entry() string {
	name := todoName
	if t.doing {
		name = doingName
	}
	if t.id != "" {
		name += "#" + t.id + " "
	}
	return name + t.text
}

// listOpen sets the block of what is open and hidden, and returns its tokens. It has at most its share of the room,
// and at most what is free.
// A failure is open to the reader as long as its result says so: it is listed if that is hidden, or if unsure says that lines of it may go.
func (w *preface) listOpen(hidden []bool, unsure func(*Passage) bool, free float64) float64 {
	w.open, w.opened = "", nil
	room := int(min(w.o.Shares.Open*float64(w.o.Room), free))
	tokens := func(text string) int { return w.o.Counter.Count(core.Text(text + "\n")) }
	if room < openLeast {
		return 0
	}
	if room -= tokens(UsualMark + " " + openHand); room <= 0 || !slices.Contains(hidden, true) {
		return 0
	}
	var items, errors, fixed []string
	from := map[string]int{} // the passage that an entry is of
	if said, p := w.next(); said != "" && (p < 0 || hidden[w.c.Passages[p].Message]) {
		items = append(items, nextName+said)
		from[nextName+said] = p
	}
	for _, t := range w.plan() {
		if !t.done && len(items) < openItems && (t.passage < 0 || hidden[w.c.Passages[t.passage].Message]) {
			items = append(items, t.entry())
			from[t.entry()] = t.passage
		}
	}
	failures, mended := w.failures()
	for _, f := range failures {
		if f.passage < 0 || hidden[w.c.Passages[f.passage].Message] || unsure(&w.c.Passages[f.passage]) {
			errors = append(errors, f.entry)
			from[f.entry] = f.passage
		}
	}
	for _, f := range mended {
		fixed = append(fixed, f.entry)
		from[f.entry] = f.passage
	}
	changed := w.changed()
	for _, e := range changed {
		from[e] = -1
	}
	// One of each at a time, the first item and the newest error first.
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
			for l := w.c.Passages[p].Lines.Start; l < w.c.Passages[p].Lines.End; l++ {
				if strings.Contains(e, strings.TrimSpace(w.c.Lines[l].Text)) {
					w.opened = append(w.opened, l)
				}
			}
		}
	}
	if b.Len() == 0 {
		return 0
	}
	w.open = " " + openHand + b.String()
	return float64(used + tokens(UsualMark+" "+openHand))
}

// settleOpen takes off the value of a line what the block says of it.
func (w *choice) settleOpen() {
	for _, l := range slices.Concat(w.opened, w.filed) {
		line := &w.lines[l]
		for _, n := range w.termsOf(line) {
			w.terms[n].credit = max(w.terms[n].credit, float32(w.o.Shares.Line))
		}
		for _, n := range w.phrasesOf(line) {
			if n >= 0 {
				w.phrases[n] = 0
			}
		}
	}
}

// plan returns the newest plan: the last list that a call gave, with what later calls changed of it; without such calls
// the last list of boxes in the agent's words.
func (w *reading) plan() []todo {
	var list []todo
	for _, line := range w.c.open {
		text, ok := strings.CutPrefix(line, todoName)
		t := todo{passage: -1}
		if !ok {
			text, t.doing = strings.CutPrefix(line, doingName)
		}
		if !ok && !t.doing {
			continue
		}
		t.text = text
		if id, rest, is := strings.Cut(text, " "); is && len(id) > 1 && id[0] == '#' {
			t.id, t.text = id[1:], rest
		}
		list = append(list, t)
	}
	planned := len(list) > 0
	made := map[string]int{} // items by the call that made them
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		if pass.partial || pass.family != families[dialog.FamilyPlan] {
			continue
		}
		if pass.answers() {
			i, ok := made[pass.call]
			if number := taskNumber.FindStringSubmatch(w.c.Lines[pass.Lines.Start].Text); ok && number != nil && i < len(list) {
				list[i].id = number[1]
			}
			continue
		}
		args := w.original(pass)
		if pass.Kind != dialog.KindToolCall || !json.Valid([]byte(args)) {
			continue
		}
		raw := []byte(args)
		if items, ok := readPlan(raw); ok {
			list, planned = items, true
			for i := range list {
				list[i].passage = p
			}
			clear(made)
			continue
		}
		id, text := firstText(raw, "taskId", "task_id"), firstText(raw, todoKeys...)
		state := todo{id: id, text: text, passage: p}
		state.is(rawjson.Text(rawjson.Field(raw, "status")))
		switch i := slices.IndexFunc(list, func(t todo) bool { return t.id == id }); {
		case id == "" && text != "":
			made[pass.call] = len(list)
			list, planned = append(list, state), true
		case id != "" && i >= 0 && rawjson.Field(raw, "status") != nil:
			list[i].doing, list[i].done = state.doing, state.done
		}
	}
	if !planned {
		return w.boxes()
	}
	return list
}

// boxes returns the last list of boxes in what the agent wrote.
func (w *reading) boxes() []todo {
	const few = 2
	for p, pass := range slices.Backward(w.c.Passages) {
		if pass.Kind != dialog.KindAssistant || pass.partial || w.messages[pass.Message].Role != core.RoleAssistant {
			continue
		}
		text := w.original(&pass)
		if !strings.Contains(text, "[ ]") && !strings.Contains(text, "[x]") {
			continue
		}
		if list := dialog.Element(text, "todos"); list != "" { // a call in the text
			text = list
		} else if dialog.SplitCalls(text) != nil {
			continue // they may be in a file that it writes
		}
		if list := readBoxes(text); len(list) >= few {
			for i := range list {
				list[i].passage = p
			}
			return list
		}
	}
	return nil
}

var (
	taskNumber = regexp.MustCompile(`^Task #(\d{1,6}) created`) // of Claude Code
	boxForm    = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])?\s*\[([ xX~>-])\]\s+(\S.*)$`)
	// The keys of lists in calls of Claude Code, Codex, Gemini CLI, opencode, Roo-Code and OpenHands, and of the text of
	// an item.
	planKeys = []string{"todos", "plan", "task_list", "tasks", "items"}
	todoKeys = []string{"content", "step", "subject", "title", "description", "text", "name"}
)

func firstText(raw []byte, keys ...string) string {
	for _, k := range keys {
		if s := oneLine(rawjson.Text(rawjson.Field(raw, k)), openLong); s != "" {
			return s
		}
	}
	return ""
}

// is sets the state that tools call so.
func (t *todo) is(status string) {
	switch strings.ToLower(status) {
	case "completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped", "x":
		t.done = true
	case "in_progress", "in-progress", "doing", "active", "-", "~", ">":
		t.doing = true
	}
}

// readPlan returns the items of the list in the arguments of a call, if there is one.
func readPlan(raw []byte) (list []todo, ok bool) {
	for _, key := range planKeys {
		switch v := rawjson.Field(raw, key); {
		case rawjson.IsString(v):
			list = readBoxes(rawjson.Text(v))
			return list, len(list) > 0
		case rawjson.IsArray(v):
			for e := range rawjson.Elements(v) {
				t := todo{text: firstText(e, todoKeys...)}
				t.is(rawjson.Text(rawjson.Field(e, "status")))
				if t.text != "" {
					list = append(list, t)
				}
			}
			return list, true
		}
	}
	return nil, false
}

// readBoxes returns the items of a list of boxes, without what is in fences.
func readBoxes(text string) (list []todo) {
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if m := boxForm.FindStringSubmatch(line); m != nil && !fenced {
			t := todo{text: oneLine(m[2], openLong)}
			t.is(m[1])
			list = append(list, t)
		}
	}
	return list
}

// nextForm matches how an agent says what it does next: "Next step: …", "**Next:** …", "Next, …".
var nextForm = regexp.MustCompile(`(?im)^[ \t>*_#-]*next(?: steps?)?[*_]*[:,][*_]*[ \t]+(\S.*)$`)

// next returns what the agent said last that it does next, and the passage that says it; -1 if only a former extract does. A newer plan, or what
// the user said since, may have made that void: then it is empty.
func (w *reading) next() (said string, passage int) {
	for p, pass := range slices.Backward(w.c.Passages) {
		if pass.partial { // what is above the extract is older than its list
			break
		}
		switch {
		case pass.Kind == dialog.KindUser, pass.family == families[dialog.FamilyPlan]:
			return "", -1
		case pass.Kind != dialog.KindAssistant || w.messages[pass.Message].Role != core.RoleAssistant:
			continue
		}
		text := w.original(&pass)
		if m := nextForm.FindAllStringSubmatch(text, -1); m != nil {
			return oneLine(m[len(m)-1][1], openLong), p
		}
		if len(readBoxes(text)) > 0 {
			return "", -1
		}
	}
	for _, line := range slices.Backward(w.c.open) {
		if said, ok := strings.CutPrefix(line, nextName); ok {
			return said, -1
		}
	}
	return "", -1
}

// A failure is a command that failed when it was last run.
type failure struct {
	entry   string
	passage int    // of its result; -1 if only a former extract says so
	key     string // see commandKey
}

// failures returns the commands among the newest that failed and did not succeed since, and those that did, the newest first.
func (w *reading) failures() (out, fixed []failure) {
	seen := map[string]bool{}
	mended := map[string]bool{}
	looked := 0
	for p, pass := range slices.Backward(w.c.Passages) {
		if len(out) == openErrors || looked == openLook {
			return out, fixed
		}
		if !pass.answers() || pass.partial || pass.family != families[dialog.FamilyCommand] {
			continue
		}
		key := commandKey(pass.Target)
		if key == "" {
			continue
		}
		if looked++; seen[key] && (mended[key] || len(fixed) == openFixed) {
			continue
		}
		text := w.original(&pass)
		if seen[key] {
			if bad(&pass, text) && !refused(text) && !slices.ContainsFunc(out, func(f failure) bool { return f.key == key }) {
				mended[key] = true
				fixed = append(fixed, failure{entry: fixedName + oneLine(bareCommand(pass.Target), openLong/2) + " (was: " + oneLine(errorLine(text), openLong/2) + ")", passage: p, key: key})
			}
			continue
		}
		if refused(text) {
			continue
		}
		line := errorLine(text)
		if endMark(text) != "" && !errorForm.MatchString(line) && w.saidOpen(key) {
			continue // a former extract says what failed, of which nothing is left here
		}
		seen[key] = true
		if bad(&pass, text) {
			e := errorName + oneLine(bareCommand(pass.Target), openLong/2)
			if line != "" {
				e += errorSign + oneLine(line, openLong)
			}
			if h := w.handle(&pass); h != "" {
				e += " " + handleMark + h
			}
			out = append(out, failure{entry: e, passage: p, key: key})
		}
	}
	for _, line := range slices.Backward(w.c.open) {
		e, ok := strings.CutPrefix(line, errorName)
		command, was, _ := strings.Cut(e, errorSign)
		key := commandKey(command)
		if ok && seen[key] && !mended[key] && len(fixed) < openFixed && !slices.ContainsFunc(out, func(f failure) bool { return f.key == key }) {
			mended[key] = true
			was, _ = cutHandle(was)
			fixed = append(fixed, failure{entry: fixedName + command + " (was: " + was + ")", passage: -1, key: key})
		}
		if ok && !seen[key] && len(out) < openErrors {
			seen[key] = true
			if rest, h := cutHandle(line); h != "" && w.o.NoHandles {
				line = rest
			}
			out = append(out, failure{entry: line, passage: -1, key: key})
		}
	}
	for _, line := range slices.Backward(w.c.open) {
		e, ok := strings.CutPrefix(line, fixedName)
		command, _, _ := strings.Cut(e, " (was: ")
		key := commandKey(command)
		if ok && !mended[key] && len(fixed) < openFixed && !slices.ContainsFunc(out, func(f failure) bool { return f.key == key }) {
			mended[key] = true
			fixed = append(fixed, failure{entry: line, passage: -1, key: key})
		}
	}
	return out, fixed
}

// saidOpen reports whether a former extract lists a command of that key as failed.
func (w *reading) saidOpen(key string) bool {
	return slices.ContainsFunc(w.c.open, func(line string) bool {
		e, ok := strings.CutPrefix(line, errorName)
		command, _, _ := strings.Cut(e, errorSign)
		return ok && commandKey(command) == key
	})
}

// testsFailed matches the last lines of runs of tests that failed: of pytest, Go, Rust, Jest and make. Not every agent says how a command
// ended, and a pipe hides it.
var testsFailed = regexp.MustCompile(`(?m)^=+ .*\b[1-9]\d* failed\b.*=$|^FAIL(?:ED)?(?:\s|$)|^test result: FAILED\b|^Tests: +[1-9]\d* failed\b|^make(?:\[\d+\])?: \*\*\* `)

// bad reports whether the result of a command says that it failed, or that its tests did.
func bad(p *Passage, text string) bool {
	const end = 400 // bytes
	return p.failed(text) || testsFailed.MatchString(text[max(0, len(text)-end):])
}

// refused reports whether a result says that the user did not let the command run.
func refused(text string) bool {
	return strings.HasPrefix(text, "The user doesn't want to ") || strings.HasPrefix(text, "[Request interrupted")
}

// answering are programs whose failure is an answer, or which only prepare something.
var answering = rawjson.Set("[", "ag", "awk", "cat", "cd", "chmod", "cmp", "command", "cp", "diff", "echo", "egrep", "export", "file", "find", "for", "git", "grep", "head", "if", "kill", "ls", "mkdir", "mv", "pgrep", "pkill", "rg", "rm", "sed", "set", "sleep", "source", "stat", "tail", "test", "touch", "type", "wc", "which", "while")

// bareCommand returns a command without what only prepares it: a change of folder, variables, a limit of time.
func bareCommand(command string) string {
	s := strings.TrimSpace(command)
	for {
		first, rest, more := strings.Cut(s, " ")
		switch {
		case first == "cd" || first == "source" || first == "export" || first == "set":
			i := strings.IndexAny(s, "&;\n")
			if i < 0 {
				return s
			}
			s = strings.TrimLeft(s[i:], "&; \n\t")
		case more && (first == "time" || first == "sudo" || first == "env" || first == "nice"), more && strings.Contains(first, "=") && !strings.ContainsAny(first, `"'(`):
			s = strings.TrimSpace(rest)
		case more && first == "timeout":
			_, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
			s = strings.TrimSpace(rest)
		default:
			return s
		}
	}
}

// commandKey names what a command runs: the program and what it is to do, such as "go test" and "npm build". It is
// empty if that is nothing that can be mended. What a later run of it says holds, whatever its other arguments.
func commandKey(command string) string {
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == '&' || r == ';' || r == '\n' }) {
		part, _, _ = strings.Cut(bareCommand(part), "|")
		var words []string
		for f := range strings.FieldsSeq(part) {
			if len(words) < 2 && f[0] != '-' && f != "run" && f != "exec" && strings.Trim(f, "0123456789<>") != "" {
				words = append(words, strings.TrimSuffix(f, GapMark))
			}
		}
		if len(words) > 0 && !answering[words[0]] {
			return strings.Join(words, " ")
		}
	}
	return ""
}

var errorForm = regexp.MustCompile(`(?i)\berror\b|error:|\bfail(?:ed|ure)?\b|panic:|exception\b|fatal:|not found|cannot |permission denied`)

// errorLine returns the line of a result that says best what failed: the first that says so, or the last.
func errorLine(text string) string {
	last := ""
	for line := range strings.SplitSeq(text, "\n") {
		if !says(line) || exitForm.MatchString(line) || strings.HasPrefix(line, markStart) || readGap(line) > 0 {
			continue
		}
		if errorForm.MatchString(line) {
			return line
		}
		last = line
	}
	return last
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// oneLine returns at most n bytes of s on one line that no reader takes for the end of it.
func oneLine(s string, n int) string {
	cut := len(s) > 4*n
	if cut {
		s = s[:4*n]
	}
	s = strings.Join(strings.FieldsFunc(colours.ReplaceAllString(strings.ToValidUTF8(s, ""), ""), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xa0
	}), " ")
	if len(s) > n {
		s, cut = strings.ToValidUTF8(s[:n], ""), true
	}
	if cut {
		s += GapMark
	}
	return s
}

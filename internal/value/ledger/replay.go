package ledger

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/rawjson"
)

// Replay applies the calls and results of messages, which were read as d, to the files. Messages are numbered by
// their index. An edit counts once its result has come and is not an error.
func (l *Ledger) Replay(messages []core.Message, d *dialog.Dialog) {
	calls := map[string]core.ToolCall{}
	for i := range messages {
		for j, p := range messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				calls[p.ID] = p
			case core.ToolResult:
				part := &d.Messages[i][j]
				if c, ok := calls[p.CallID]; ok && !p.IsError && part.Use != nil && part.Use.Called {
					l.result(&c, &part.Use.Info, part, &p, i)
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
}

// textOf returns the tool's own text of a result, without additions by other programs.
func textOf(part *dialog.Part, r *core.ToolResult) string {
	var texts []string
	for k, p := range r.Content {
		t, ok := p.(core.Text)
		if !ok {
			continue
		}
		for _, s := range part.Answer(k, t) {
			if s.Kind == dialog.KindToolResult {
				texts = append(texts, s.Text)
			}
		}
	}
	return strings.Join(texts, "")
}

func (l *Ledger) result(c *core.ToolCall, info *dialog.CallInfo, part *dialog.Part, r *core.ToolResult, m int) {
	args := []byte(c.Args)
	if !slices.Contains([]dialog.Family{dialog.FamilyRead, dialog.FamilyWrite, dialog.FamilyEdit, dialog.FamilyCommand}, info.Family) {
		return
	}
	text := textOf(part, r)
	if failed(info, text) {
		return
	}
	if info.Family != dialog.FamilyRead {
		if patch := patchIn(args); patch != "" {
			l.patch(patch, m)
			return
		}
	}
	switch info.Family {
	case dialog.FamilyRead:
		if len(info.Files) == 1 && info.Files[0].Range != dialog.SeveralRanges {
			l.shows(info.Files[0].Path, info.Files[0].Range.First, text, m)
		}
	case dialog.FamilyWrite:
		if content := firstOf(args, newKeys); info.File() != "" && content != "" {
			l.File(info.File()).Write(content, m)
		}
	case dialog.FamilyEdit:
		if info.File() != "" {
			l.edits(l.File(info.File()), args, m)
		}
	case dialog.FamilyCommand:
		l.removed(info.Target)
		if file, first, ok := displayed(info.Target); ok {
			_, body, cut := strings.Cut(text, "\nOutput:\n") // Codex begins with how the command ended
			if !cut {
				body = text
			}
			if failed(info, body) {
				return
			}
			l.shows(file, first, body, m)
		}
	case dialog.FamilyUnknown, dialog.FamilyList, dialog.FamilySearch, dialog.FamilyWeb, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDelegate, dialog.FamilyDone:
	}
}

var (
	oldKeys = []string{"old_string", "old_str", "oldText", "old_text", "oldString", "search"}
	newKeys = []string{"new_string", "new_str", "newText", "new_text", "newString", "replace", "content", "file_text", "contents", "text"}
)

// firstOf returns the first of the values of keys that is a string and not empty.
func firstOf(raw []byte, keys []string) string {
	for _, k := range keys {
		if s := rawjson.Text(rawjson.Field(raw, k)); s != "" {
			return s
		}
	}
	return ""
}

// edits applies the edit, or the list of edits, of a call.
func (l *Ledger) edits(f *File, args []byte, m int) {
	list := rawjson.Field(args, "edits")
	if list != nil {
		for e := range rawjson.Elements(list) {
			l.edits(f, e, m)
		}
		return
	}
	if diff := rawjson.Text(rawjson.Field(args, "diff")); strings.Contains(diff, "<<<<<<< SEARCH") {
		for _, b := range searches(diff) {
			f.Edit(b[0], b[1], false, m)
		}
		return
	}
	old, text := firstOf(args, oldKeys), firstOf(args, newKeys)
	if old == "" && text == "" {
		return
	}
	all := string(rawjson.Field(args, "replace_all")) == "true" || string(rawjson.Field(args, "replaceAll")) == "true"
	f.Edit(strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(text, "\r\n", "\n"), all, m)
}

// searches returns the pairs of old and new text in SEARCH and REPLACE blocks.
func searches(diff string) (out [][2]string) {
	for {
		_, rest, ok := strings.Cut(diff, "<<<<<<< SEARCH\n")
		if !ok {
			return out
		}
		for strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "-------\n") { // the place, in Roo-Code's form
			_, rest, _ = strings.Cut(rest, "\n")
		}
		old, rest, _ := strings.Cut(rest, "=======\n")
		text, rest, _ := strings.Cut(rest, ">>>>>>> REPLACE")
		out, diff = append(out, [2]string{strings.TrimSuffix(old, "\n"), strings.TrimSuffix(text, "\n")}), rest
	}
}

const patchStart = "*** Begin Patch\n"

// patchIn returns the patch in the arguments of a call, of apply_patch or of a shell that runs it.
func patchIn(args []byte) string {
	if !bytes.Contains(args, []byte("*** Begin Patch")) {
		return ""
	}
	for _, k := range []string{"input", "patch", "cmd", "command", "diff", "patch_text", "patchText"} {
		text := rawjson.Text(rawjson.Field(args, k))
		if list := rawjson.Field(args, k); text == "" && rawjson.IsArray(list) {
			for e := range rawjson.Elements(list) {
				text = rawjson.Text(e)
			}
		}
		if _, body, ok := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), patchStart); ok {
			body, _, _ = strings.Cut(body, "*** End Patch")
			return body
		}
	}
	return ""
}

// patch applies a patch in the form of apply_patch.
func (l *Ledger) patch(body string, m int) {
	var f *File
	var old, text, added []string
	flush := func() {
		if f != nil && len(old)+len(text) > 0 {
			f.Edit(strings.Join(old, "\n"), strings.Join(text, "\n"), false, m)
		}
		if f != nil && added != nil {
			f.Write(strings.Join(added, "\n"), m)
		}
		old, text, added = nil, nil, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		switch name, isFile := strings.CutPrefix(line, "*** "); {
		case isFile:
			flush()
			what, file, _ := strings.Cut(name, ": ")
			switch what {
			case "Update File":
				f = l.File(file)
			case "Add File":
				f, added = l.File(file), []string{}
			case "Move to":
				f.Path = file
			default:
				f = nil
			}
		case strings.HasPrefix(line, "@@"):
			flush()
		case added != nil:
			added = append(added, strings.TrimPrefix(line, "+"))
		case strings.HasPrefix(line, "+"):
			text = append(text, line[1:])
		case strings.HasPrefix(line, "-"):
			old = append(old, line[1:])
		default:
			line = strings.TrimPrefix(line, " ")
			old, text = append(old, line), append(text, line)
		}
	}
	flush()
}

// failed reports whether a result shows that its call had no effect.
func failed(info *dialog.CallInfo, text string) bool {
	text = strings.TrimSpace(text)
	return dialog.Failed(info.Family, info.Target, text) || dialog.Refused(text) || strings.HasPrefix(text, "No changes")
}

// isCut reports whether a line is a program's mark for omitted lines.
func isCut(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return strings.HasPrefix(line, "…") || strings.HasPrefix(line, "[…") || strings.HasPrefix(line, "...") && len(line) < 40
}

// shortened reports whether the last line announces omitted lines, after it or before the first.
func shortened(lines []string) bool {
	return len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "[…")
}

// numbered splits off the number that tools write before a line, such as "12→", "12:" and "00012| "; 0 if there is
// none.
func numbered(line string) (n int, text string) {
	rest := strings.TrimLeft(line, " ")
	digits := 0
	for digits < len(rest) && digits < 8 && rest[digits] >= '0' && rest[digits] <= '9' {
		n = 10*n + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits == 8 {
		return 0, line
	}
	rest = rest[digits:]
	for _, sign := range []string{"→", "\t", ": ", " | ", "| ", "|"} {
		if text, ok := strings.CutPrefix(rest, sign); ok {
			return n, text
		}
	}
	if rest == ":" {
		return n, ""
	}
	return 0, line
}

// shows applies the result of a read: its lines go to their numbers, or else to first and below.
func (l *Ledger) shows(file string, first int, text string, m int) {
	lines := linesOf(text)
	if text == "" || len(lines) > 20_000 {
		return
	}
	const most = 0.6
	var numbers []int
	count := 0
	for _, line := range lines {
		n, _ := numbered(line)
		if n > 0 {
			count++
		}
		numbers = append(numbers, n)
	}
	f := l.File(file)
	if float64(count) < most*float64(len(lines)) {
		from, number := 0, max(first, 1)
		if shortened(lines) {
			number = 0
		}
		for i := 0; i <= len(lines); i++ {
			if i == len(lines) || isCut(lines[i]) {
				if i > from {
					f.Show(number, lines[from:i], m)
				}
				from, number = i+1, 0
			}
		}
		return
	}
	var run []string
	start, last := 0, 0
	for i, line := range lines {
		if numbers[i] == 0 {
			continue
		}
		if run != nil && numbers[i] != last+1 {
			f.Show(start, run, m)
			run = nil
		}
		if run == nil {
			start = numbers[i]
		}
		_, text := numbered(line)
		last, run = numbers[i], append(run, text)
	}
	if run != nil {
		f.Show(start, run, m)
	}
}

// removed forgets the files that a command removes or resets to an unknown state.
func (l *Ledger) removed(command string) {
	if !strings.Contains(command, "rm ") && !strings.Contains(command, "git ") {
		return
	}
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == '&' || r == ';' || r == '|' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) < 2 || words[0] != "rm" && (words[0] != "git" || words[1] != "rm" && words[1] != "checkout" && words[1] != "restore") {
			continue
		}
		for _, w := range words[1:] {
			if w = strings.Trim(w, `'"`); !strings.HasPrefix(w, "-") && strings.Contains(w, ".") {
				if f := l.known(w); f != nil {
					f.Runs = nil
				}
			}
		}
	}
}

var display = regexp.MustCompile(`^(?:nl -ba\s+(\S+)\s*\|\s*sed -n\s+['"]?(\d+),(\d+|\$)p['"]?|sed -n\s+['"]?(\d+),(?:\d+|\$)p['"]?\s+(\S+)|cat(?: -n)?\s+(\S+)|head(?: -n)?(?: -?\d+)?\s+(\S+))\s*$`)

// displayed returns the file that a command prints, and the number of its first line.
func displayed(command string) (file string, first int, ok bool) {
	if i := strings.LastIndex(command, "&& "); strings.HasPrefix(command, "cd ") && i > 0 && strings.Count(command, "&&") == 1 {
		command = command[i+3:]
	}
	at := display.FindStringSubmatch(strings.TrimSpace(command))
	if at == nil {
		return "", 0, false
	}
	for _, k := range []int{1, 5, 6, 7} {
		file = file + at[k]
	}
	first, _ = strconv.Atoi(at[2] + at[4])
	file = strings.Trim(file, `'"`)
	return file, max(first, 1), file != "" && !strings.ContainsAny(file, "*?$|<>;&(){}")
}

package ledger

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// Replay applies the results in messages from one to another, which were read as d, to the files. Messages are numbered by
// their index. An edit counts once its result has come and is not an error.
func (l *Ledger) Replay(messages []core.Message, d *dialog.Dialog, from, to int) {
	l.folder = dialog.Folder(messages)
	calls := map[*dialog.Use][]byte{} // the arguments
	for i := range messages[:to] {
		for j, p := range messages[i].Parts {
			part := &d.Messages[i][j]
			switch p := p.(type) {
			case core.ToolCall:
				calls[part.Use] = []byte(p.Args)
			case core.ToolResult:
				if args, ok := calls[part.Use]; ok && i >= from && !p.IsError {
					l.result(args, &part.Use.Info, textOf(part, &p), i)
				}
			case core.Text: // Cline answers in texts
				for _, s := range part.Passages {
					if args, ok := calls[s.Use]; ok && i >= from && s.Kind == dialog.KindToolResult && !s.Use.IsError() {
						l.result(args, &s.Use.Info, strings.TrimPrefix(s.Text, "\n"), i)
					}
				}
			case core.Image, core.Reasoning, core.Opaque:
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

// finalForm matches the text of a file that the editor of Cline or Roo Code saved: formatted, and perhaps changed by the user.
var finalForm = plain.Pattern(`(?s)<final_file_content path="[^"]*">\n(.*)\n</final_file_content>`)

func (l *Ledger) result(args []byte, info *dialog.CallInfo, text string, m int) {
	of := []dialog.Family{dialog.FamilyRead, dialog.FamilyWrite, dialog.FamilyEdit, dialog.FamilyCommand}
	if !slices.Contains(of, info.Family) || failed(info, text) {
		return
	}
	if saved := finalForm().FindStringSubmatch(text); saved != nil && info.File() != "" {
		l.File(info.File()).Write(saved[1], m)
		return
	}
	if info.Family != dialog.FamilyRead {
		if hunks := toolcall.PatchIn(args); len(hunks) > 0 {
			l.patch(hunks, m)
			return
		}
	}
	switch info.Family {
	case dialog.FamilyRead:
		if len(info.Files) == 1 && info.Files[0].Range != dialog.SeveralRanges {
			l.shows(info.Files[0].Path, info.Files[0].Range.First, text, info.Files[0].Range == dialog.LineRange{}, m)
		}
	case dialog.FamilyWrite:
		if content := toolcall.First(args, toolcall.Whole|toolcall.New); info.File() != "" && content != "" {
			l.File(info.File()).Write(content, m)
		}
	case dialog.FamilyEdit:
		if info.File() != "" {
			l.edits(l.File(info.File()), args, m)
		}
	case dialog.FamilyCommand:
		dir := toolcall.First(args, toolcall.Folder)
		if at := cdForm().FindStringSubmatch(info.Target); at != nil {
			dir = within(dir, at[1])
		}
		l.runs(info.Target, dir, m)
		if file, first, ok := displayed(info.Target); ok {
			file = within(dir, file)
			_, body, cut := strings.Cut(text, "\nOutput:\n") // Codex begins with how the command ended
			if !cut {
				body = text
			}
			if failed(info, body) {
				return
			}
			l.shows(file, first, body, false, m)
		}
	case dialog.FamilyUnknown, dialog.FamilyList, dialog.FamilySearch, dialog.FamilyWeb, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDelegate, dialog.FamilyDone:
	}
}

// edits applies the edit, or the list of edits, of a call.
func (l *Ledger) edits(f *File, args []byte, m int) {
	listed := false
	for list := range toolcall.Values(args, toolcall.Edits) {
		for e := range rawjson.Elements(list) {
			listed = true
			l.edits(f, e, m)
		}
	}
	if listed {
		return
	}
	if diff := toolcall.First(args, toolcall.Patch); strings.Contains(diff, "<<<<<<< SEARCH") {
		for _, b := range toolcall.SearchReplace(diff) {
			f.Edit(b[0], b[1], false, m)
		}
		return
	}
	old, text := toolcall.First(args, toolcall.Old), toolcall.First(args, toolcall.New|toolcall.Whole)
	if old == "" && text == "" {
		return
	}
	if mode := toolcall.First(args, toolcall.Mode); old == "" && mode != "insert" && toolcall.First(args, toolcall.Notebook) != "" {
		if old = f.cell(toolcall.First(args, toolcall.Cell)); old == "" {
			f.Runs = nil // which lines the cell had is not known
		}
	}
	all := false
	for every := range toolcall.Values(args, toolcall.Every) {
		all = all || rawjson.IsTrue(every)
	}
	f.Edit(strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(text, "\r\n", "\n"), all, m)
}

// cell returns the known source of a cell of a notebook; "" if it is not known.
func (f *File) cell(id string) string {
	for _, r := range f.Runs {
		var text strings.Builder
		for i := range r.Lines {
			text.WriteString(r.Lines[i].Text + "\n")
		}
		_, body, _ := strings.Cut(text.String(), `<cell id="`+id+`">`)
		if source, _, ok := strings.Cut(body, `</cell id="`+id+`">`); ok {
			_, rest, typed := strings.Cut(source, "</cell_type>")
			if typed {
				source = rest
			}
			return source
		}
	}
	return ""
}

// patch applies the changes of a patch.
func (l *Ledger) patch(hunks []toolcall.Hunk, m int) {
	for _, h := range hunks {
		if h.Path == "" {
			continue
		}
		f := l.File(h.Path)
		if h.Deleted {
			f.Runs = nil
			continue
		}
		if h.To != "" {
			f.Path = h.To
		}
		if h.Added {
			f.Write(h.New, m)
		} else {
			f.Edit(h.Old, h.New, false, m)
		}
	}
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

// numbered splits off the number that tools write before a line of a file; 0 if there is none. Lines of a search have
// signs that are text elsewhere.
func numbered(line string) (n int, text string) {
	n, sign, text := toolcall.Gutter(line)
	if sign == ":" && text != "" || sign == "-" {
		return 0, line
	}
	return n, text
}

// moreForm matches the last line of a read that shows the beginning of a file.
var moreForm = plain.Pattern(`(?i)truncat|more lines|omitted`)

// shows applies the result of a read, of the whole file or of a part: its lines go to their numbers, or else to first and below.
func (l *Ledger) shows(file string, first int, text string, whole bool, m int) {
	lines := slices.DeleteFunc(linesOf(text), toolcall.Wraps)
	if len(lines) == 0 || text == "" || len(lines) > 20_000 {
		return
	}
	const most = 0.6
	const page = 1000 // lines; of a file with more, tools may show a part
	whole = whole && len(lines) < page && !slices.ContainsFunc(lines, isCut) && !moreForm().MatchString(lines[len(lines)-1])
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
		if len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "[…") {
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
		if whole {
			f.end(len(lines))
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
	if whole && numbers[0] == 1 {
		f.end(last)
	}
}

var (
	// writers are programs that change the files they are given; inPlace those that do so with one of the options of placeForm.
	writers   = rawjson.Set("black", "cp", "dos2unix", "isort", "mv", "patch", "rustfmt", "tee")
	inPlace   = rawjson.Set("autopep8", "clang-format", "gofmt", "goimports", "perl", "ruby", "sed", "yapf")
	placeForm = plain.Pattern(`\s-(?:i|pi|w)\b`)
	everyForm = plain.Pattern(`\s--(?:write|fix|in-place)\b`)
	// writeForm matches a script that writes a file.
	writeForm = plain.Pattern(`\bopen\([^)\n]*,\s*(?:mode=)?['"][wa]|\bwrite_text\(|\bwriteFile(?:Sync)?\(`)
)

var (
	// substitutes matches a command that replaces a text in a file, hereForm one that writes a file: before the text, or after its mark.
	substitutes = plain.Pattern(`\bsed\s+-i(?:\s+''|\s+-E)?\s+(?:'s([/|#,])([^'\n]*)'|"s([/|#,])([^"$\x60\n]*)")\s+([^\s;&|]+)`)
	escaped     = plain.Pattern(`\\(.)`)
	special     = plain.Pattern(`\\\w`) // a line's end, a group: not the letter
	hereForm    = plain.Pattern(`(?m)^(?:.*&&\s*)?cat\s*(?:(>>?)\s*(\S+)\s*<<\s*(['"]?)(\w+)['"]?|<<\s*(['"]?)(\w+)['"]?\s*(>>?)\s*(\S+))\n`)
)

// cdForm matches the change of the folder at the beginning of a command.
var cdForm = plain.Pattern(`^cd ['"]?([^\s;&|'"$~]+)['"]? *&&`)

// within returns the path of a file that a command in a folder names. The folder may be unknown.
func within(dir, name string) string {
	name = toolcall.CleanPath(strings.Trim(name, `'"`))
	if dir == "" || name[0] == '/' || len(name) > 1 && name[1] == ':' {
		return name
	}
	return toolcall.CleanPath(dir + "/" + name)
}

// substitute applies a command that replaces a text without signs of a pattern in a known file, and returns the file; nil if it cannot.
func (l *Ledger) substitute(at []string, dir string, m int) *File {
	f := l.known(within(dir, at[5]))
	parts := strings.Split(at[2]+at[4], at[1]+at[3])
	if f == nil || len(parts) != 3 || strings.ContainsAny(parts[0], "*[]^$(){}+?|") || strings.Contains(parts[1], "&") || special().MatchString(at[2]+at[4]) {
		return nil
	}
	old, text := escaped().ReplaceAllString(parts[0], "$1"), escaped().ReplaceAllString(parts[1], "$1")
	pattern, err := regexp.Compile(parts[0]) // a point stands for any sign
	if old == "" || err != nil {
		return nil
	}
	found := false
	for _, r := range f.Runs {
		for i := range r.Lines {
			is := strings.Contains(r.Lines[i].Text, old)
			twice := strings.Count(r.Lines[i].Text, old) > 1 && !strings.Contains(parts[2], "g")
			if found = found || is; twice || !is && pattern.MatchString(r.Lines[i].Text) {
				return nil
			}
		}
	}
	if !found {
		return nil
	}
	f.Edit(old, text, true, m)
	return f
}

// heredoc writes or appends the first text that a command has in itself, and returns the file and the command without the text; nil
// if there is none, or the shell changed it.
func (l *Ledger) heredoc(command, dir string, m int) (f *File, rest string) {
	at := hereForm().FindStringSubmatchIndex(command)
	if at == nil {
		return nil, command
	}
	part := func(k int) string { return command[max(0, at[2*k]):max(0, at[2*k+1])] }
	text, rest, ended := strings.Cut(command[at[1]:], "\n"+part(4)+part(6))
	if !ended || part(3)+part(5) == "" && strings.ContainsAny(text, "$`") {
		return nil, command
	}
	f = l.File(within(dir, part(2)+part(8)))
	if part(1)+part(7) == ">" {
		f.Write(text, m)
	} else {
		f.Append(text, m)
	}
	return f, command[:at[1]] + rest
}

// runs applies what a command does to files if that is known. It forgets the files that the command removes or resets to an unknown state,
// and notes those that it changes.
func (l *Ledger) runs(command, dir string, m int) {
	done := map[*File]int{} // changes that were applied
	for f, rest := l.heredoc(command, dir, m); f != nil; f, rest = l.heredoc(command, dir, m) {
		done[f]++
		command = strings.Replace(rest, "<<", "", 1)
	}
	for _, at := range substitutes().FindAllStringSubmatch(command, -1) {
		if f := l.substitute(at, dir, m); f != nil {
			done[f]++
		}
	}
	changes(command, func(w string, gone, changed bool) {
		f := l.known(within(dir, w))
		if f == nil || done[f] > 0 && done[f] == strings.Count(command, path.Base(f.Path)) {
			return
		}
		if gone {
			f.Runs = nil
		}
		if changed {
			f.Touched, f.Edited, f.Unsure = m, m, m
			f.Edits++
		}
	})
}

// Changes reports whether a command changes or removes a file that it names.
func Changes(command string) (found bool) {
	changes(command, func(w string, gone, changed bool) { found = found || (gone || changed) && w != "/dev/null" && w != "" })
	return found
}

// changes calls yield for each word of a command that can be a file that it removes, resets or changes.
func changes(command string, yield func(word string, gone, changed bool)) {
	if writeForm().MatchString(command) {
		for w := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == '\'' || r == '"' }) {
			yield(w, false, true)
		}
	}
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == '&' || r == ';' || r == '|' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) < 2 {
			continue
		}
		gone := words[0] == "rm" || words[0] == "git" && (words[1] == "rm" || words[1] == "checkout" || words[1] == "restore")
		writes := writers[words[0]] || inPlace[words[0]] && placeForm().MatchString(part) || everyForm().MatchString(part)
		for i, w := range words[1:] {
			if w = strings.Trim(w, `'"`); strings.HasPrefix(w, "-") || !strings.Contains(w, ".") {
				continue
			}
			yield(w, gone, writes || strings.HasSuffix(words[i], ">"))
		}
	}
}

var display = plain.Pattern(`^(?:nl -ba\s+(\S+)\s*\|\s*sed -n\s+['"]?(\d+),(\d+|\$)p['"]?|sed -n\s+['"]?(\d+),(?:\d+|\$)p['"]?\s+(\S+)|cat(?: -n)?\s+(\S+)|head(?: -n)?(?: -?\d+)?\s+(\S+))\s*$`)

// displayed returns the file that a command prints, and the number of its first line.
func displayed(command string) (file string, first int, ok bool) {
	if i := strings.LastIndex(command, "&& "); strings.HasPrefix(command, "cd ") && i > 0 && strings.Count(command, "&&") == 1 {
		command = command[i+3:]
	}
	at := display().FindStringSubmatch(strings.TrimSpace(command))
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

package dialog

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A CallRun is a run of an assistant's text: a call if Tool is set, else prose.
type CallRun struct {
	Text, Tool string
	About      CallInfo
}

// SplitCalls finds the calls in an assistant's text, for agents whose tools are called in text. Joined, the runs are
// the text; there are none if it has no call. The cost is linear.
func SplitCalls(text string) []CallRun {
	var out []CallRun
	from := 0 // where prose began
	open := map[string]bool{}
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		if i > 0 && text[i-1] != '\n' {
			continue
		}
		name, ok := Tag(text[i:])
		if !ok || !isTextTool(name) || open[name] {
			continue
		}
		end := callEnd(text[i:], name)
		if end < 0 {
			open[name] = true // none that follows is closed either
			continue
		}
		stop := i + end
		if i > from {
			out = append(out, CallRun{Text: text[from:i]})
		}
		out = append(out, CallRun{Text: text[i:stop], Tool: name, About: xmlUse(name, text[i:stop])})
		from, at = stop, stop
	}
	if out != nil && from < len(text) {
		out = append(out, CallRun{Text: text[from:]})
	}
	return out
}

// callEnd returns the end of the call that s begins with; -1 if it has none. A call that
// writes about calls holds some, each with its end.
func callEnd(s, name string) int {
	open, end := "<"+name+">", "</"+name+">"
	first, depth, at := -1, 0, 0
	for range 2 * maxOpen {
		z := strings.Index(s[at:], end)
		if z < 0 {
			return first
		}
		z += at
		if a := strings.Index(s[at:z], open); a >= 0 {
			depth++
			at += a + len(open)
			continue
		}
		at = z + len(end)
		if first < 0 {
			first = at
		}
		if depth--; depth == 0 {
			return at
		}
	}
	return first
}

// Tag returns the name of the tag that s begins with.
func Tag(s string) (string, bool) {
	for i := 1; i < len(s) && i < 40; i++ {
		switch c := s[i]; {
		case c == '>':
			return s[1:i], i > 1
		case 'a' <= c && c <= 'z', c == '_':
		default:
			return "", false
		}
	}
	return "", false
}

// Element returns the content of the first element called name in s that is not in the content of a file: such
// elements come before or after it.
func Element(s, name string) string {
	in, _, _ := nextElement(s, name)
	return in
}

// nextElement returns the content of the first element called name in s, and the text after the element.
func nextElement(s, name string) (in, after string, ok bool) {
	_, s, ok = strings.Cut(s, "<"+name+">")
	if !ok {
		return "", "", false
	}
	in, after, ok = strings.Cut(s, "</"+name+">")
	if !ok {
		return "", "", false
	}
	return strings.TrimSpace(in), after, true
}

func xmlUse(name, call string) CallInfo {
	u := CallInfo{Family: FamilyOf(name)}
	lines := parseRange(Element(call, "line_range"))
	for rest := call; ; {
		p, after, ok := nextElement(rest, "path")
		if !ok || p == "" {
			break
		}
		u.Files = append(u.Files, File{Path: toolcall.CleanPath(p), Range: lines})
		rest = after
		if u.Family != FamilyRead {
			break // the rest is the content of a file
		}
	}
	if len(u.Files) > 1 {
		for k := range u.Files {
			u.Files[k].Range = SeveralRanges // the results show the ranges
		}
	}
	switch {
	case u.Family == FamilyCommand:
		u.Target = Element(call, "command")
	case u.Family == FamilySearch:
		u.Target = Element(call, "regex")
	case len(u.Files) > 0:
		u.Target = u.Files[0].Path
	default:
		u.Target = Element(call, "tool_name")
	}
	return u
}

// textual are the tools that Roo-Code, Cline and Kilo call in their text protocol, as
// elements. Other elements in an assistant's text are prose.
var textual = sync.OnceValue(func() map[string]bool {
	return plain.Words(`read_file write_to_file apply_diff insert_content search_and_replace
		replace_in_file edit_file list_files search_files list_code_definition_names codebase_search
		execute_command browser_action use_mcp_tool access_mcp_resource ask_followup_question
		attempt_completion switch_mode new_task update_todo_list fetch_instructions generate_image
		run_slash_command new_rule report_bug condense plan_mode_respond load_mcp_documentation`)
})

// isTextTool reports whether a tool of this name is called in texts.
func isTextTool(name string) bool { return textual()[name] }

// FilesRead returns the files below dir that the agent read in messages, which are oldest
// first: newest first, each once, with slashes and relative to dir. It detects them by the
// tool calls, including calls in the text of older sessions of Roo-Code and Cline and shell
// commands such as cat, and by the files that the user mentioned and the agent's program
// inserted into the message. It reads no file.
func FilesRead(messages []core.Message, dir string) []string {
	read := Read(messages)
	var names []string // in order
	for i := range messages {
		names = append(names, filesIn(&messages[i], read.Messages[i])...)
	}
	var files []string
	seen := map[string]bool{}
	for _, name := range slices.Backward(names) {
		if rel, ok := below(dir, name); ok && !seen[rel] {
			seen[rel] = true
			files = append(files, rel)
		}
	}
	return files
}

// filesIn returns the files that are read in m or shown by it, in order.
func filesIn(m *core.Message, parts []Part) []string {
	var names []string
	for i := range parts {
		for k := range parts[i].Passages {
			switch p := &parts[i].Passages[k]; {
			case p.Kind == KindToolCall:
				names = append(names, filesOf(&p.Use.Info)...)
			case p.Kind == KindInjected && p.Use == nil && m.Kind == core.KindOriginal:
				names = append(names, mentioned(p.Text)...)
			}
		}
	}
	return names
}

// mentionForm is how Roo-Code and Cline begin the content of a file that the user mentioned.
var mentionForm = plain.Pattern(`(?m)^[ \t]*<file_content path="([^"\n]+)">`)

func mentioned(text string) []string {
	return plain.Each(mentionForm().FindAllStringSubmatch(text, -1), func(m []string) string { return m[1] })
}

// filesOf returns the files that a call reads.
func filesOf(use *CallInfo) []string {
	if use.Family == FamilyCommand {
		return printed(use.Target)
	}
	if use.Family != FamilyRead {
		return nil
	}
	return plain.Each(use.Files, func(f File) string { return f.Path })
}

// showing are the programs that print the files in their arguments.
var showing = map[string]bool{"cat": true, "bat": true, "nl": true, "less": true, "more": true, "head": true, "tail": true}

// printed returns the files that a command line prints. A command with other than plain words is
// ignored: a wrong guess would name a file that was not read.
func printed(command string) []string {
	var names []string
	in := ""
	for _, part := range strings.FieldsFunc(command, func(r rune) bool { return r == ';' || r == '&' || r == '|' || r == '\n' }) {
		words := strings.Fields(part)
		if len(words) < 2 || strings.ContainsAny(part, "$`*?<>(){}\\\"'~") {
			continue
		}
		switch {
		case words[0] == "cd":
			in = join(in, words[1])
		case showing[words[0]]:
			for _, w := range words[1:] {
				if !strings.HasPrefix(w, "-") && strings.Trim(w, "0123456789") != "" {
					names = append(names, join(in, w))
				}
			}
		}
	}
	return names
}

func join(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

// below returns name relative to dir, and whether it is below. It does not follow links.
func below(dir, name string) (string, bool) {
	name = filepath.FromSlash(strings.TrimPrefix(name, toolcall.CleanPath(dir)+"/")) // which may be another spelling
	if filepath.IsAbs(name) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", false
		}
		if name, err = filepath.Rel(abs, name); err != nil {
			return "", false
		}
	}
	name = filepath.Clean(name)
	return filepath.ToSlash(name), filepath.IsLocal(name) && name != "."
}

// folderForm matches how agents tell the folder in which a session works.
var folderForm = plain.Pattern("(?i)(?:\\bworking directory|\\bcwd)(?: is)?[:>] *[\"'`]?((?:/|[a-z]:[/\\\\])[^\\s<>\"'`]+)")

// Folder returns the folder in which the session works, as [toolcall.CleanPath] writes it; "" if no message of the system or in the
// user's role tells.
func Folder(messages []core.Message) string {
	for i := range messages {
		for _, p := range messages[i].Parts {
			t, ok := p.(core.Text)
			if !ok || messages[i].Role == core.RoleAssistant || !HoldsFold(string(t), "working dir") && !HoldsFold(string(t), "cwd") {
				continue
			}
			if found := folderForm().FindStringSubmatch(string(t)); found != nil {
				return toolcall.CleanPath(found[1])
			}
		}
	}
	return ""
}

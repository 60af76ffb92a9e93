package dialog

import (
	"iter"
	"maps"
	"strings"
	"sync"

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

// textTools yields the names of the tools that are called in texts, in no order.
func textTools() iter.Seq[string] { return maps.Keys(textual()) }

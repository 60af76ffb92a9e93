package author

import (
	"iter"
	"strings"

	"github.com/condensehq/condense/internal/tooling"
)

// blocks are the elements that agents put into what users say, and whose they are. Sources:
// Roo-Code and Cline (environment_details), Claude Code (system-reminder, commands and their
// output, notices of tasks and of the editor), Codex (environment_context, user_instructions).
var blocks = []struct {
	name string
	by   By
}{
	{"environment_details", Surroundings},
	{"environment_context", Surroundings},
	{"system-reminder", Program},
	{"local-command-stdout", Program},
	{"local-command-caveat", Program},
	{"bash-stdout", Program},
	{"bash-stderr", Program},
	{"task-notification", Program},
	{"ide_opened_file", Program},
	{"ide_selection", Program},
	{"open_files", Program},
	{"manually_added_selection", Program},
	{"file_content", Program},
	{"folder_content", Program},
	{"files", Program},
	{"diagnostics", Program},
	{"url_content", Program},
	{"error_details", Program},
	{"tool_result", Program},
	{"tool_use_error", Program},
	{"permissions instructions", Program},
	{"collaboration_mode", Program},
	{"personality_spec", Program},
	{"apps_instructions", Program},
	{"skills_instructions", Program},
	{"plugins_instructions", Program},
	{"command-output", Program},
	{"local-command-stderr", Program},
	{"notice", Program},
	{"user_instructions", Standing},
	{"INSTRUCTIONS", Standing},
	{"command-name", Program},
	{"command-message", Program},
	{"command-args", Person}, // what was typed after the name of a command
	{"bash-input", Person},
	{"feedback", Person}, // what a user said about a result, at the end of it
	{"user_message", Person},
	{"answer", Person},
}

// Elements yields the names of the elements that agents put into what users say.
func Elements() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, b := range blocks {
			if !yield(b.name) {
				return
			}
		}
	}
}

// maxHeader is the longest line in bytes that announces a result.
const maxHeader = 4000

// maxSegments bounds the work on one text: looking for the next segment is linear.
const maxSegments = 64

// split finds the results, environment blocks and injected blocks in a user's text. The
// segments, put together, are the text. If answers is set, a header in the text before it
// announced a result.
func split(text string, answers bool) []Segment {
	words := Person
	if answers {
		words = Tool
	}
	var out []Segment
	add := func(by By, s string) {
		if s == "" {
			return
		}
		if by != Person {
			out = append(out, Segment{By: by, Text: s})
			return
		}
		out = appendWords(out, s)
	}
	for text != "" {
		if len(out) >= maxSegments {
			add(words, text)
			break
		}
		at, b := nextBlock(text, words == Tool)
		h, end, tool, target := nextHeader(text)
		switch {
		case h >= 0 && (at < 0 || h < at):
			add(words, text[:h])
			out = append(out, Segment{By: Header, Text: text[h:end], Tool: tool, Target: target})
			text, words = text[end:], Tool
		case at >= 0:
			add(words, text[:at])
			stop := strings.Index(text[at:], "</"+blocks[b].name+">") + at + len(blocks[b].name) + 3
			out = append(out, Segment{By: blocks[b].by, Text: text[at:stop]})
			text = text[stop:]
		default:
			add(words, text)
			text = ""
		}
	}
	return out
}

// saidMarks begin, in the result of a tool, what the user said: Roo-Code's and Cline's
// elements, and Claude Code's words for a call that the user turned down.
var saidMarks = []string{"<feedback>", "<user_message>", "<answer>", "the user said:"}

// Said cuts the result of a tool where the user's words begin: after a call was turned down
// or answered, programs put them at its end.
func Said(text string) (result, said string) {
	at := len(text)
	for _, mark := range saidMarks {
		if i := strings.LastIndex(text, mark); i >= 0 && len(text)-i < maxSaid {
			at = min(at, i)
		}
	}
	return text[:at], text[at:]
}

// maxSaid is how far from the end of a result, in bytes, a user's words may begin: what
// stands further up is more likely something that a tool showed.
const maxSaid = 8000

// nextBlock returns where the next complete block of [blocks] begins, at the start of a
// line, and which it is. Inside a result only blocks at its beginning and end are those of
// the agent: any other is part of what a tool showed.
func nextBlock(text string, inResult bool) (at, which int) {
	at = -1
	for k := range blocks {
		open := "<" + blocks[k].name
		for from, tries := 0, 0; tries < maxSegments; tries++ {
			i := strings.Index(text[from:], open)
			if i < 0 {
				break
			}
			i += from
			from = i + len(open)
			if i > 0 && text[i-1] != '\n' || from == len(text) || text[from] != '>' && text[from] != ' ' {
				continue
			}
			n := strings.Index(text[i:], "</"+blocks[k].name+">")
			if n < 0 {
				break
			}
			if inResult && strings.TrimSpace(text[:i]) != "" && strings.TrimSpace(text[i+n+len(open)+2:]) != "" {
				continue
			}
			if at < 0 || i < at {
				at, which = i, k
			}
			break
		}
	}
	return at, which
}

// nextHeader finds the line "[tool for 'target'] Result:" that stands before a result in
// the text protocol of Roo-Code and Cline.
func nextHeader(text string) (at, end int, tool, target string) {
	const mark = "] Result:"
	for from := 0; ; {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return -1, 0, "", ""
		}
		i += from
		from = i + len(mark)
		low := max(0, i-maxHeader)
		at = strings.LastIndexByte(text[low:i], '\n') + 1 + low
		if at == low && low > 0 || at == i || text[at] != '[' {
			continue
		}
		head := text[at+1 : i]
		tool, rest, _ := strings.Cut(head, " ")
		if !tooling.Textual(tool) && !strings.Contains(tool, "_") && !strings.HasPrefix(rest, "for ") {
			continue
		}
		if a := strings.IndexByte(rest, '\''); a >= 0 {
			if z := strings.IndexByte(rest[a+1:], '\''); z >= 0 {
				target = rest[a+1 : a+1+z]
			}
		}
		return at, from, tool, target
	}
}

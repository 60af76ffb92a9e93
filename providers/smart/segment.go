package smart

import "strings"

// What the segments of a user's message are.
type segmentKind uint8

const (
	segWords       segmentKind = iota
	segInjected                // by a program
	segEnvironment             // the surroundings as they were
	segHeader                  // announces the result of a tool
	segResult
)

// A segment is a run of a user's text.
type segment struct {
	what         segmentKind
	text         string
	tool, target string // of a header
}

// blocks are the elements that agents put into what users say, and what they are. Sources:
// Roo-Code and Cline (environment_details), Claude Code (system-reminder, command output,
// notices of tasks and of the editor), Codex (environment_context, user_instructions).
var blocks = []struct {
	name string
	what segmentKind
}{
	{"environment_details", segEnvironment},
	{"environment_context", segEnvironment},
	{"system-reminder", segInjected},
	{"local-command-stdout", segInjected},
	{"local-command-caveat", segInjected},
	{"bash-stdout", segInjected},
	{"task-notification", segInjected},
	{"ide_opened_file", segInjected},
	{"ide_selection", segInjected},
	{"user_instructions", segInjected},
	{"notice", segInjected},
	{"feedback", segWords}, // what a user said about a result, at the end of it
	{"user_message", segWords},
	{"answer", segWords},
}

// maxHeader is the longest line in bytes that announces a result.
const maxHeader = 4000

// maxSegments bounds the work on one text: looking for the next segment is linear.
const maxSegments = 64

// splitUser finds the results, environment blocks and injected blocks in a user's text. The
// segments, put together, are the text. If answers is set, a header in the text before it
// announced a result.
func splitUser(text string, answers bool) []segment {
	words := segWords
	if answers {
		words = segResult
	}
	var out []segment
	add := func(what segmentKind, s string) {
		if s == "" {
			return
		}
		if what == segWords && strings.HasPrefix(strings.TrimSpace(s), "[ERROR]") {
			what = segInjected
		}
		out = append(out, segment{what: what, text: s})
	}
	for text != "" {
		if len(out) >= maxSegments {
			add(words, text)
			break
		}
		at, b := nextBlock(text, words == segResult)
		h, end, tool, target := nextHeader(text)
		switch {
		case h >= 0 && (at < 0 || h < at):
			add(words, text[:h])
			out = append(out, segment{what: segHeader, text: text[h:end], tool: tool, target: target})
			text, words = text[end:], segResult
		case at >= 0:
			add(words, text[:at])
			stop := strings.Index(text[at:], "</"+blocks[b].name+">") + at + len(blocks[b].name) + 3
			add(blocks[b].what, text[at:stop])
			text, words = text[stop:], segWords
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

// splitSaid cuts a result where the user's words begin.
func splitSaid(text string) (result, said string) {
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
// line, and which it is. Inside a result only blocks at its end are those of the agent:
// any other is part of what a tool showed.
func nextBlock(text string, inResult bool) (at, which int) {
	at = -1
	for k := range blocks {
		open := "<" + blocks[k].name + ">"
		for from, tries := 0, 0; tries < maxSegments; tries++ {
			i := strings.Index(text[from:], open)
			if i < 0 {
				break
			}
			i += from
			from = i + len(open)
			if i > 0 && text[i-1] != '\n' {
				continue
			}
			n := strings.Index(text[i:], "</"+blocks[k].name+">")
			if n < 0 {
				break
			}
			if inResult && strings.TrimSpace(text[i+n+len(open)+1:]) != "" {
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
		if !xmlTools[tool] {
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

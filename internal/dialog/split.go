package dialog

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/toolcall"
)

// wrapping matches the tags that programs put around the user's words.
var wrapping = sync.OnceValue(func() *regexp.Regexp {
	_, users, _ := toolcall.Programs()
	return regexp.MustCompile(`</?(?:task|user_query|user_feedback|` + strings.Join(users, "|") + `)>`)
})

// Unwrap returns the user's words without the tags that programs put around them.
func Unwrap(text string) string { return wrapping().ReplaceAllString(text, "") }

// longestName is more bytes than the name of any block has.
const longestName = 40

// opens returns the block whose opening tag is at text[at:], with or without attributes.
func opens(text string, at int) (e toolcall.Element, ok bool) {
	e, ok = toolcall.Opens(text[at:])
	return e, ok && (e.Name != "command" || strings.HasPrefix(text[at:], "<command name=")) // without a name it is mentioned, not opened
}

// own are words in the names of elements that hold what a person wrote.
var own = strings.Fields("user human person query question request prompt task instruct requirement goal issue message feedback answer " +
	"input said word")

// foreign returns an element that no table has, if its tag is at text[at:] and its name is like one that programs make up: in
// parts, or in capitals.
func foreign(text string, at int) (e toolcall.Element, ok bool) {
	rest := text[at+1 : min(len(text), at+1+longestName)]
	n := strings.IndexAny(rest, "> \t\n")
	if n < 3 || strings.Trim(rest[:n], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || rest[n] == '\n' {
		return toolcall.Element{}, false
	}
	name := rest[:n]
	low := strings.ToLower(name)
	persons := slices.ContainsFunc(own, func(w string) bool { return strings.Contains(low, w) })
	if persons || !strings.ContainsAny(name, "_-") && name != strings.ToUpper(name) {
		return toolcall.Element{}, false
	}
	return toolcall.Element{Name: name, By: toolcall.Program}, true
}

// startsLine reports whether a tag at text[at:] is where programs put it: at the start of
// a line, indented or not, or after the end of another element.
func startsLine(text string, at int) bool {
	const indent = 200
	low := max(0, at-indent)
	before := strings.TrimRight(text[low:at], " \t")
	switch {
	case before == "":
		return low == 0
	case strings.HasSuffix(before, "\n"):
		return true
	case strings.HasSuffix(before, ">"):
		i := strings.LastIndexByte(before, '<')
		return i >= 0 && before[i+1] == '/'
	}
	return false
}

// An answer is the part of a tool's result in texts that was read so far.
type answer struct {
	tool  string // that gave it, as the header says; empty if there was no header
	begun bool   // some of it was read
	told  bool   // it begins like a result with feedback of the user
}

// begin records the beginning of the result.
func (a *answer) begin(text string) {
	if text = strings.TrimSpace(text); a.begun || text == "" {
		return
	}
	a.begun = true
	a.told = tells(text)
}

// A splitter takes a text apart.
type splitter struct {
	out    []Segment
	answer *answer
	// Names of blocks that have no end in the rest of the text, or only ends of mentions.
	endless, mentioned map[string]bool
}

// split finds the results, environment blocks and injected blocks in a user's text. The
// segments, put together, are the text. The result that a says is being read goes on in it.
// The cost is linear.
func split(text string, a *answer) []Segment {
	s := splitter{answer: a, endless: map[string]bool{}, mentioned: map[string]bool{}}
	if a.tool == "" {
		text = s.words(text)
	}
	if text != "" {
		s.results(text)
	}
	return s.out
}

// words splits the text before the first header, and returns the rest.
func (s *splitter) words(text string) (rest string) {
	h := nextHeader(text, 0)
	from := 0
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 || h.found && at+i > h.at {
			break
		}
		i += at
		at = i + 1
		b, ok := opens(text, i)
		unknown := false
		if !ok && strings.TrimSpace(text[from:i]) == "" {
			b, unknown = foreign(text, i)
		}
		if !ok && !unknown || !startsLine(text, i) {
			continue
		}
		end := s.end(text, i, b.Name)
		if end < 0 {
			continue
		}
		s.add(KindUser, text[from:i])
		from = end
		at = from
		s.add(authorOf(b, text[i:from]), text[i:from])
		s.out[len(s.out)-1].Unknown = unknown
		if h.found && h.at < from {
			h = nextHeader(text, from)
		}
	}
	if !h.found {
		s.add(KindUser, text[from:])
		return ""
	}
	s.add(KindUser, text[from:h.at])
	s.header(text, h)
	return text[h.end:]
}

// results splits a text that begins within a result. Only blocks at the beginning and end of a result are the
// agent's: any other is part of the tool's output.
func (s *splitter) results(text string) {
	later := s.answer.begun
	s.answer.told = s.answer.told || later && tells(text) // a text of its own was written by the program
	// Cline's about the list of tasks follows a result in a text of its own.
	if later && !s.speaks() && begins(text) == KindInjected && strings.HasPrefix(strings.TrimSpace(text), "# ") {
		s.add(KindInjected, text)
		return
	}
	ends := tails(text)
	limit := len(text)
	if len(ends) > 0 {
		limit = ends[0].Start
	}
	at := 0
	for {
		s.answer.begin(text[at:])
		at = s.heads(text[:limit], at)
		h := nextHeader(text[:limit], at)
		if !h.found {
			break
		}
		s.add(KindToolResult, text[at:h.at])
		s.header(text, h)
		at = h.end
	}
	// A tool could have written a block that claims to be the user's, unless the user speaks in
	// the result, or the block is all of a text that is not the first of the result.
	if all := later && strings.TrimSpace(text[:limit]) == ""; !all && !s.speaks() {
		ends = programs(text, ends)
	}
	s.rest(text, at, ends)
}

// rest adds the tool's text from at on, and the blocks after it.
func (s *splitter) rest(text string, at int, ends []core.Span) {
	for _, e := range ends {
		s.add(KindToolResult, text[at:e.Start])
		b, _ := opens(text, e.Start)
		s.add(shown(b), text[e.Start:e.End])
		at = e.End
	}
	s.add(KindToolResult, text[at:])
}

// programs returns the program's blocks at the end of a result: those after the last block that claims to be the
// user's, which a tool could have written.
func programs(text string, ends []core.Span) []core.Span {
	for k, e := range slices.Backward(ends) {
		if b, _ := opens(text, e.Start); b.By == toolcall.Person {
			return ends[k+1:]
		}
	}
	return ends
}

// end returns the end of the block whose opening tag is at text[at:]; -1 if there is none. It skips ends that belong
// to a mention: `<name>...</name>` within a line of the block.
func (s *splitter) end(text string, at int, name string) int {
	if s.endless[name] {
		return -1
	}
	first, last := "<"+name+">", "</"+name+">"
	found := -1
	for from := at + 1; ; {
		i := strings.Index(text[from:], last)
		if i < 0 {
			s.mentioned[name], s.endless[name] = found >= 0, found < 0
			return found
		}
		i += from
		end := i + len(last)
		if s.mentioned[name] {
			return end
		}
		if found >= 0 && begun(text, from, i, name) {
			return found // the next one, which ends there
		}
		line := from + strings.LastIndexByte(text[from:i], '\n') + 1
		open := strings.LastIndex(text[line:i], first)
		if open < 0 || startsLine(text, line+open) {
			return end
		}
		if found < 0 {
			found = end
		}
		from = end
	}
}

// begun reports whether a block of that name opens in text[from:to], where programs put it.
func begun(text string, from, to int, name string) bool {
	for {
		i := strings.Index(text[from:to], "<"+name)
		if i < 0 {
			return false
		}
		if from += i; startsLine(text, from) {
			return true
		}
		from++
	}
}

// heads adds the blocks that a result begins with, and returns where the rest begins.
func (s *splitter) heads(text string, at int) int {
	for {
		begin := len(text) - len(strings.TrimLeft(text[at:], " \t\r\n"))
		if begin == len(text) || text[begin] != '<' {
			return at
		}
		b, ok := opens(text, begin)
		if !ok || b.By == toolcall.Person && !s.speaks() {
			return at
		}
		end := s.end(text, begin, b.Name)
		if end < 0 {
			return at
		}
		s.add(KindToolResult, text[at:begin])
		s.add(shown(b), text[begin:end])
		at = end
	}
}

// speaks reports whether the result that is read holds words of the user.
func (s *splitter) speaks() bool { return s.answer.told || asks(s.answer.tool) }

func (s *splitter) header(text string, h header) {
	s.out = append(s.out, Segment{Kind: KindHeader, Text: text[h.at:h.end], Tool: h.tool, Target: h.target})
	*s.answer = answer{tool: h.tool}
}

// add adds text by one author.
func (s *splitter) add(by Kind, text string) {
	switch {
	case text == "":
	case by == KindUser && empty(text): // between blocks, or a command's without arguments
		s.out = append(s.out, Segment{Kind: KindInjected, Text: text})
	case by == KindUser:
		s.out = appendWords(s.out, text)
	case by == KindProjectRules && len(s.out) > 0 && isHeading(s.out[len(s.out)-1]):
		s.out[len(s.out)-1].Text += text
	default:
		s.out = append(s.out, Segment{Kind: by, Text: text})
	}
}

// empty reports whether text holds only space and tags that wrap words.
func empty(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text[0] == '<' && text[len(text)-1] == '>' && strings.TrimSpace(Unwrap(text)) == ""
}

// SplitResult returns the segments of a result in a part of its own: blocks at its end are the
// program's. Put together, they are the text.
func SplitResult(text string) []Segment {
	var s splitter
	s.rest(text, 0, programs(text, tails(text)))
	return s.out
}

// tails returns the blocks that text ends with, in order.
func tails(text string) []core.Span {
	var out []core.Span
	for end := len(text); ; {
		s := strings.TrimRight(text[:end], " \t\r\n")
		i := strings.LastIndex(s[max(0, len(s)-longestName):], "</")
		if i < 0 || !strings.HasSuffix(s, ">") {
			break
		}
		i += max(0, len(s)-longestName)
		b, ok := toolcall.Elements()[s[i+2:len(s)-1]]
		if !ok {
			break
		}
		begin := i
		for begin >= 0 {
			if begin = strings.LastIndex(s[:begin], "<"+b.Name); begin >= 0 && startsLine(s, begin) {
				if o, ok := opens(s, begin); ok && o.Name == b.Name {
					break
				}
			}
		}
		if begin < 0 {
			break
		}
		out = append(out, core.Span{Start: begin, End: len(s)})
		end = begin
	}
	slices.Reverse(out)
	return out
}

// A header is the line "[tool for 'target'] Result:" that announces a result in the text
// protocol of Roo-Code and Cline. A command of several lines makes it several lines.
type header struct {
	found        bool
	at, end      int
	tool, target string
}

// maxHeader is the longest header in bytes.
const maxHeader = 1 << 14

// nextHeader finds the next header in text[from:]. The cost is linear.
func nextHeader(text string, from int) header {
	const mark = "] Result:"
	for {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return header{}
		}
		i += from
		low := max(from, i-maxHeader) // further up there is none, or it was found
		from = i + len(mark)
		if h, ok := headerIn(text, low, i); ok {
			h.end = from
			return h
		}
	}
}

// headerIn finds the header in text[low:end], which the end of one follows.
func headerIn(text string, low, end int) (h header, ok bool) {
	several := false // lines
	for z := end; z > low; several = true {
		nl := strings.LastIndexByte(text[low:z], '\n')
		at := low + nl + 1
		if nl < 0 && low > 0 && text[low-1] != '\n' {
			return header{}, false // the line begins further up
		}
		if at < end && text[at] == '[' {
			tool, rest, _ := strings.Cut(text[at+1:end], " ")
			known := isTextTool(tool)
			if several && known && strings.HasPrefix(rest, "for '") && strings.HasSuffix(rest, "'") ||
				!several && tool != "" && (known || strings.Contains(tool, "_") || strings.HasPrefix(rest, "for ")) {
				return header{found: true, at: at, tool: tool, target: quoted(rest)}, true
			}
		}
		if nl < 0 || text[end-1] != '\'' {
			break
		}
		z = at - 1
	}
	return header{}, false
}

// quoted returns the text in the first quotes of s.
func quoted(s string) string {
	_, s, _ = strings.Cut(s, "'")
	s, _, ok := strings.Cut(s, "'")
	if !ok {
		return ""
	}
	return s
}

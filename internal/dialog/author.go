// Package dialog reads a conversation: the author of each part, the tools called, and the files, lines and commands
// that the calls are about. Agents' programs put results of tools, reminders and the state of the environment into
// the user's messages, next to the user's own text, and no format marks the difference. The package knows the names
// and arguments of the tools of agents whose sessions are public; an unknown tool has the family [FamilyUnknown].
package dialog

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Segment is a run of a user's text.
type Segment struct {
	Kind         Kind
	Text         string
	Tool, Target string // of a header
	Unknown      bool   // an element that no table has: a program's, or something that the user pasted
}

// An AuthorReader splits the user's messages of a conversation by author. It must get every message of the user and of the
// assistant, in order. The zero value is ready.
type AuthorReader struct {
	aider   aiderReader
	command bool // the previous text is the tag of a command
	skills  int  // launched skills whose text is still to come
}

// Message returns the segments of every text in m, the next message, by part; nil for the assistant's. Joined, the segments of a
// part are its text. Session files hold the text of a command or skill in a message of its own.
func (r *AuthorReader) Message(m *core.Message) [][]Segment {
	r.aider.ran = false
	if m.Role == core.RoleAssistant {
		r.command, r.skills = false, 0
		return nil
	}
	out := make([][]Segment, len(m.Parts))
	var answers answer // the header whose result the next unmarked text is
	result := false    // an earlier part is a result
	for i, p := range m.Parts {
		if p, ok := p.(core.ToolResult); ok {
			result = true
			if launches(p) {
				r.skills++
			}
		}
		t, ok := p.(core.Text)
		if !ok {
			continue
		}
		text := string(t)
		if answers.tool == "" && Inserted(text) || r.aider.wrote(text) && answers.tool == "" {
			out[i] = []Segment{{Kind: KindInjected, Text: text}}
			continue
		}
		inResult := answers.tool != ""
		out[i] = split(text, &answers)
		if r.skills > 0 && !inResult && slices.ContainsFunc(out[i], func(s Segment) bool { return s.Kind == KindUser }) {
			r.skills--
			out[i], answers = []Segment{{Kind: KindInjected, Text: text}}, answer{}
			continue
		}
		for k := range out[i] {
			s := &out[i][k]
			switch {
			case s.Kind != KindUser:
			case result && isJSON(s.Text): // a second result, without a part of its own
				s.Kind = KindToolResult
			case m.Program || r.command && len(out[i]) == 1: // the text of a command that the user named
				s.Kind = KindInjected
			}
		}
		r.command = strings.HasPrefix(strings.TrimSpace(text), "<command-message>")
	}
	return out
}

// Typed returns the texts in a message of the user that the user typed, in order: see [core.Request]. It is read without the
// messages before it, so the output of a command that aider ran counts as typed; so does an unknown element next to words.
func Typed(m *core.Message) []string {
	var typed []string
	words := false
	for _, segments := range new(AuthorReader).Message(m) {
		for _, s := range segments {
			if s.Kind == KindUser && strings.TrimSpace(s.Text) != "" {
				typed, words = append(typed, s.Text), true
			} else if s.Unknown {
				typed = append(typed, s.Text)
			}
		}
	}
	if !words {
		return nil
	}
	return typed
}

func isJSON(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s))
}

// argumentsMark begins the user's text after the name of a skill, at the end of a text that begins with skillMark.
// After other beginnings it is content that a tool shows.
const (
	skillMark     = "Base directory for this skill:"
	argumentsMark = "\nARGUMENTS: "
)

// launches reports whether r is the answer of Claude Code when the model calls a skill. The
// text of the skill follows; all of it is injected, since the model wrote the arguments.
func launches(r core.ToolResult) bool {
	if len(r.Content) != 1 || r.IsError {
		return false
	}
	text, _ := r.Content[0].(core.Text)
	name, ok := strings.CutPrefix(string(text), "Launching skill: ")
	return ok && name != "" && !strings.ContainsAny(strings.TrimSpace(name), " \t\r\n")
}

// appendWords appends text that has no tags around it. The user wrote it, unless it begins
// with one of the beginnings.
func appendWords(out []Segment, text string) []Segment {
	space := len(text) - len(strings.TrimLeft(text, " \n\t\r"))
	if strings.HasPrefix(text[space:], stubStart) {
		stub, rest := cutStub(text[space:])
		out = append(out, Segment{Kind: KindInjected, Text: text[:space] + stub})
		if strings.TrimSpace(rest) == "" {
			out[len(out)-1].Text += rest
			return out
		}
		return appendWords(out, rest)
	}
	by := begins(text)
	if by == KindUser && denies(text) {
		by = KindInjected
	}
	if by == KindUser {
		return appendSaid(out, text)
	}
	if at := strings.LastIndex(text, argumentsMark); at >= 0 && strings.HasPrefix(strings.TrimSpace(text), skillMark) {
		return append(out, Segment{Kind: by, Text: text[:at+1]}, Segment{Text: text[at+1:]})
	}
	return append(out, Segment{Kind: by, Text: text})
}

func begins(text string) Kind {
	e, _ := toolcall.Begins(strings.TrimLeft(text, " \n\t\r"))
	return writers[e.By] // of none the user's
}

// denials are what programs write in the first line of a text to say that no person wrote it.
var denials = NewForm(`^\W*(?i:the following|this)\b[^.]*\bnot (?:actually )?(?:sent|written|typed|entered) by the user\b|` +
	`^\W*[A-Z_ -]+\bNOT (?:A )?USER (?:INPUT|MESSAGE)\b|^\W*(?i:(?:this is an )?automat(?:ed|ic) (?:message|notice|notification|reminder))\s*[\].:!]`)

func denies(text string) bool {
	const look = 300
	text = strings.TrimLeft(text, " \n\t\r")
	line, _, _ := strings.Cut(text[:min(len(text), look)], "\n")
	return denials.Match(line)
}

// ruleFiles are the names of the files that hold a project's rules.
var ruleFiles = map[string]bool{"AGENTS.md": true, "AGENTS.override.md": true, "CLAUDE.md": true, "CLAUDE.local.md": true, "GEMINI.md": true}

// How programs announce rules: Codex above the text of AGENTS.md; Claude Code in a reminder,
// for all files together, and for the file of a folder that it comes across later.
const (
	agentsMark   = "# AGENTS.md instructions"
	claudeMark   = "# claudeMd"
	contentsMark = "Contents of "
)

// rulesLook is how many lines may come before the line that announces rules.
const rulesLook = 6

// RulesName returns the name of the project rules that text begins with, as the program
// announces them; "" if it announces none. Texts with the same name are versions of the same
// rules.
func RulesName(text string) string {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, agentsMark), line == claudeMark:
			return line
		case strings.HasPrefix(line, contentsMark):
			if file := contentsOf(line); file != "" {
				return contentsMark + file
			}
		case n == 0 && line[0] == '<':
			name, _, _ := strings.Cut(line[1:], ">")
			if toolcall.Elements()[name].By == toolcall.Rules {
				return name
			}
		}
		if n++; n == rulesLook {
			break
		}
	}
	return ""
}

// contentsOf returns the path in the line that announces a file of rules; "" if it is another
// file.
func contentsOf(line string) string {
	file, _, _ := strings.Cut(strings.TrimPrefix(line, contentsMark), " (")
	file = strings.ReplaceAll(strings.TrimSuffix(file, ":"), `\`, "/")
	if !ruleFiles[path.Base(file)] && !strings.Contains(file, "/.claude/rules/") {
		return ""
	}
	return file
}

// authorOf returns the author of text, a block that opens with the tag of e. A reminder of Claude Code may hold
// project rules. For blocks in the result of a tool, use shown.
func authorOf(e toolcall.Element, text string) Kind {
	if e.Name == "system-reminder" && RulesName(text) != "" {
		return KindProjectRules
	}
	return writers[e.By]
}

// shown returns the author of a block in the result of a tool, where apparent project rules may be the content of a
// file.
func shown(e toolcall.Element) Kind {
	if e.By == toolcall.Rules {
		return KindInjected
	}
	return writers[e.By]
}

// isHeading reports whether s is the line that Codex writes above the text of AGENTS.md.
func isHeading(s Segment) bool {
	text := strings.TrimSpace(s.Text)
	return s.Kind == KindProjectRules && strings.HasPrefix(text, agentsMark) && !strings.Contains(text, "\n")
}

type remark struct{ begins, mark, ends, goesOn string }

// told are the forms of results with feedback of the user: the beginning, the mark that begins the feedback, and the
// end of the text. Claude Code sends feedback for a rejected call; Roo-Code and Cline for a call that was rejected or
// approved, for unfinished or resumed work, and for a running command. For a running command, its output is between
// the beginning and the mark, so the end is checked, too. Newer versions of Roo-Code send JSON. Their feedback on an
// approved call comes before the result and is not read. Gemini CLI and others reject a plan with feedback, and go on after it.
var told = []remark{
	{"The user doesn't want to ", "the user said:", "", ""},
	{"The user denied ", "<feedback>", "</feedback>", ""},
	{"The user approved ", "<feedback>", "</feedback>", ""},
	{"The user has provided feedback", "<feedback>", "</feedback>", ""},
	{"The user provided ", "<feedback>", "</feedback>", ""},
	{"You seem to be having trouble", "<feedback>", "</feedback>", ""},
	{"[TASK RESUMPTION]", "<user_message>", "</user_message>", ""},
	{"New instructions for task continuation:", "<user_message>", "</user_message>", ""},
	{"Command is still running", "<feedback>", "</feedback>", ""},
	{`{"status":"denied","feedback":"`, `"feedback":"`, `"}`, ""},
	{`{"status":"guidance","feedback":"`, `"feedback":"`, `"}`, ""},
	{"Plan rejected. User feedback: ", "User feedback: ", "", "\n\nThe plan is stored at: "},
	{"Plan was not approved. The user wants revisions.", "User feedback: ", "", "\n\nPlease revise the plan"},
}

// tells reports whether text begins like a result with feedback of the user.
func tells(text string) bool {
	return slices.ContainsFunc(told, func(t remark) bool { return strings.HasPrefix(strings.TrimSpace(text), t.begins) })
}

// SplitFeedback cuts the result of a tool where the user's words begin. Programs put them at
// the end, after a call was rejected or answered, and may go on after them. A mark alone is not enough, since the output
// of a tool may end with one: the result must begin as programs begin such results, or the
// tool must be one that asks the user.
func SplitFeedback(tool, text string) (result, said, rest string) {
	trimmed := strings.TrimSpace(text)
	for _, t := range told {
		if !strings.HasPrefix(trimmed, t.begins) || !strings.HasSuffix(trimmed, t.ends) {
			continue
		}
		at := strings.LastIndex(text, t.mark)
		if at < 0 {
			continue
		}
		if end := strings.LastIndex(text, t.goesOn); t.goesOn != "" && end > at {
			return text[:at+len(t.mark)], text[at+len(t.mark) : end], text[end:]
		}
		return text[:at], text[at:], ""
	}
	if asks(tool) {
		for _, mark := range []string{"<feedback>", "<user_message>", "<answer>"} {
			if at := strings.Index(text, mark); at >= 0 {
				return text[:at], text[at:], ""
			}
		}
	}
	return text, "", ""
}

// SplitRemarks returns the segments of the text of a result: what the user said in it, the program's text around that, and the
// tool's own text. Claude Code marks rejected calls as failed, so a text like its own counts as the user's only there. The content of a
// file never does.
func SplitRemarks(tool, text string, failed bool) []Segment {
	family := FamilyOf(tool)
	rejected := strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), told[0].begins)
	switch {
	case family == FamilyAsk && !failed, rejected && failed:
		return SplitAnswer(text)
	case family == FamilyRead, rejected:
		return []Segment{{Kind: KindToolResult, Text: text}}
	}
	result, said, rest := SplitFeedback(tool, text)
	return []Segment{{Kind: KindToolResult, Text: result}, {Kind: KindUser, Text: said}, {Kind: KindInjected, Text: rest}}
}

// asks reports whether a tool of this name asks the user and returns the answer.
func asks(tool string) bool { return FamilyOf(tool) == FamilyAsk || tool == "attempt_completion" }

// Programs also write plain texts as the user: the time, the state of a task. One alone cannot be told from a person's words, and a
// person, too, types "continue" again and again. But a person does not begin message after message with the time, or with the name
// of a status, in the same words but for the numbers.
const mostAlike = 2 // texts of one form that a person may have written

var (
	// statusForm matches the first line of a text with a time to the second, which nobody types, or a label for a status.
	statusForm = plain.Pattern(`\b\d{1,2}:\d{2}:\d{2}\b|^\W*(?i:(?:current|local|system|session|context|token|task|agent|server|build) ){0,3}` +
		`(?i:status|time|date|reminder|notice|heartbeat|progress|usage|budget|notification|auto(?:mat(?:ed|ic))?(?:[- ][\w-]+)?|cron|` +
		`monitor|watchdog|health(?:[- ]check)?|clock)\b[^.,;\n]{0,30}[:\]]`)
	changingForm = plain.Pattern(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]*\b|` +
		`\b[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b`)
)

// statusOf returns the form of a text with the look of a status: its first and last line without what changes; "" for any other.
func statusOf(text string) string {
	const look = 200 // bytes of a line
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	if first = first[:min(len(first), look)]; !strings.ContainsAny(first, ":]") || !statusForm().MatchString(first) {
		return ""
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return changingForm().ReplaceAllString(first+"\n"+last[:min(len(last), look)], "0")
}

// alike counts the user's texts of messages by their forms.
func alike(messages []core.Message) map[string]int {
	n := map[string]int{}
	for i := range messages {
		for _, p := range messages[i].Parts {
			if t, ok := p.(core.Text); ok && messages[i].Role == core.RoleUser {
				n[statusOf(string(t))]++
			}
		}
	}
	delete(n, "")
	return n
}

// Segments returns the authors in a text of a user; nil for any other part. Segments are coarser than passages: a
// tool's text is one segment, whatever files it shows.
func (p *Part) Segments() []Segment {
	if p.of.user == nil {
		return nil
	}
	s := p.of.user.segments[p.at]
	if p.again && len(s) == 1 && s[0].Kind == KindUser {
		return []Segment{{Kind: KindInjected, Text: s[0].Text}}
	}
	return s
}

package dialog

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Family is a kind of tool.
type Family string

// The families.
const (
	FamilyUnknown  Family = ""
	FamilyRead     Family = "read"     // shows a file or a part of it
	FamilyWrite    Family = "write"    // writes a whole file
	FamilyEdit     Family = "edit"     // changes a part of a file
	FamilyList     Family = "list"     // names files
	FamilySearch   Family = "search"   // finds text in files
	FamilyCommand  Family = "command"  // runs a program
	FamilyWeb      Family = "web"      // fetches or searches the web
	FamilyPlan     Family = "plan"     // keeps a list of tasks
	FamilyAsk      Family = "ask"      // asks the user: its answer is the user's
	FamilyDelegate Family = "delegate" // gives work to another agent, which reports
	FamilyDone     Family = "done"     // says that something is done, or hands it on
)

// byName has the family of each tool; toolsText has a line for each family, the names in lower case without separators, so that
// read_file, ReadFile and readFile are one. Sources: the tool definitions of Claude Code,
// Antigravity, Codex, Cline, Roo-Code, Kilo, OpenHands, SWE-agent, Gemini CLI, Cursor, Copilot, opencode,
// pi and aider, and their sessions.
var byName = sync.OnceValue(func() map[string]Family {
	all := map[string]Family{}
	for line := range strings.Lines(toolsText) {
		words := strings.Fields(line)
		for _, name := range words[1:] {
			all[name] = Family(words[0])
		}
	}
	return all
})

//go:embed tools.txt
var toolsText string

// FamilyOf returns the family of the tool called name. The prefix of a server, as in
// mcp__files__read_file, is ignored.
func FamilyOf(name string) Family {
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	if f, ok := byName()[name]; ok {
		return f
	}
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case c == '_', c == '-', c == '.', c == ' ', c == '/':
		default:
			b.WriteByte(c)
		}
	}
	return byName()[b.String()]
}

// A LineRange is a run of lines: First to Last, counted from 1, both included. The zero value
// means the whole file; Last is 0 if the run goes on to its end.
type LineRange struct{ First, Last int }

// SeveralRanges means more than one run. It covers nothing, and only the whole file covers it.
var SeveralRanges = LineRange{-1, -1}

// whole reports whether r is the whole file.
func (r LineRange) whole() bool { return r.First <= 1 && r.Last == 0 }

// Covers reports whether every line of s lies in r.
func (r LineRange) Covers(s LineRange) bool {
	if r == SeveralRanges || s == SeveralRanges {
		return r.whole() && r != SeveralRanges
	}
	return max(r.First, 1) <= max(s.First, 1) && (r.Last == 0 || s.Last != 0 && s.Last <= r.Last)
}

// A File is a file that a call is about, and which lines of it.
type File struct {
	Path  string // as the call has it, with slashes and without "./"
	Range LineRange
}

// A CallInfo describes the subject of a call to a tool.
type CallInfo struct {
	Family Family
	Files  []File
	// Target is the subject of the call in one word or line: the path, the command, the pattern. Empty if unknown.
	Target string
}

// File returns the path of the first file that the call is about; "" if it is about none.
func (c *CallInfo) File() string {
	if len(c.Files) == 0 {
		return ""
	}
	return c.Files[0].Path
}

const commandRoles, queryRoles = toolcall.Command, toolcall.Query | toolcall.Name

// ParseCall describes a call to the tool called name with these arguments, a JSON object or a patch. Others are ignored.
func ParseCall(name, args string) CallInfo {
	u := CallInfo{Family: FamilyOf(name)}
	raw := []byte(args)
	if u.Family == FamilyEdit {
		for _, h := range toolcall.PatchIn(raw) {
			if f := (File{Path: toolcall.CleanPath(h.Path)}); h.Path != "" && !slices.Contains(u.Files, f) {
				u.Files, u.Target = append(u.Files, f), cmp.Or(u.Target, f.Path)
			}
		}
	}
	if !json.Valid(raw) {
		return u
	}
	a := fieldsOf(raw)
	u.Family = refine(u.Family, rawjson.Text(a["command"]))
	if file := toolcall.First(raw, toolcall.Path); file != "" {
		u.Files = append(u.Files, File{toolcall.CleanPath(file), ranges(a)})
	}
	if files := slices.Collect(rawjson.Elements(a["files"])); !slices.ContainsFunc(files, notObject) {
		for _, raw := range files {
			if p := toolcall.First(raw, toolcall.Path); p != "" {
				u.Files = append(u.Files, File{toolcall.CleanPath(p), ranges(fieldsOf(raw))})
			}
		}
	}
	switch u.Family {
	case FamilyCommand:
		u.Target = toolcall.First(raw, commandRoles)
	case FamilySearch, FamilyWeb:
		u.Target = toolcall.First(raw, queryRoles)
	case FamilyUnknown, FamilyRead, FamilyWrite, FamilyEdit, FamilyList, FamilyPlan, FamilyAsk, FamilyDelegate, FamilyDone:
	}
	if u.Target == "" && len(u.Files) > 0 {
		u.Target = u.Files[0].Path
	}
	if u.Target == "" {
		u.Target = cmp.Or(toolcall.First(raw, commandRoles), toolcall.First(raw, queryRoles))
	}
	return u
}

func notObject(raw []byte) bool { return !rawjson.IsObject(raw) && !rawjson.IsNull(raw) }

// fieldsOf returns the members of a JSON object; of two with a name the last one, as parsers do.
func fieldsOf(object []byte) map[string][]byte {
	all := map[string][]byte{}
	for key, value := range rawjson.Fields(object) {
		all[string(key)] = value
	}
	return all
}

// refine returns the family of a call to an editor whose single tool reads, writes and edits.
func refine(f Family, command string) Family {
	if f != FamilyEdit {
		return f
	}
	switch command {
	case "view":
		return FamilyRead
	case "create":
		return FamilyWrite
	}
	return f
}

// ranges returns the lines that a call asks for. Agents have five ways to give them.
func ranges(a map[string][]byte) LineRange {
	if s := rawjson.Text(a["line_range"]); s != "" {
		return parseRange(s)
	}
	for _, k := range []string{"view_range", "line_ranges", "lineRanges"} {
		raw := a[k]
		if raw == nil {
			continue
		}
		pair := slices.Collect(rawjson.Elements(raw))
		if len(pair) == 0 {
			continue
		}
		if len(pair) == 2 && number(pair[0]) != 0 {
			return LineRange{number(pair[0]), max(number(pair[1]), 0)}
		}
		if len(pair) == 1 {
			if s := rawjson.Text(pair[0]); s != "" {
				return parseRange(s)
			}
			if inner := slices.Collect(rawjson.Elements(pair[0])); len(inner) == 2 {
				return LineRange{number(inner[0]), max(number(inner[1]), 0)}
			}
		}
		return SeveralRanges
	}
	for _, k := range [][2]string{{"start_line", "end_line"}, {"startLine", "endLine"}, {"start_line_one_indexed", "end_line_one_indexed_inclusive"}} {
		if r := (LineRange{number(a[k[0]]), number(a[k[1]])}); r != (LineRange{}) {
			return r
		}
	}
	offset, limit := number(a["offset"]), number(a["limit"])
	if offset == 0 && limit == 0 {
		return LineRange{}
	}
	first := max(offset, 1)
	if limit <= 0 {
		return LineRange{first, 0}
	}
	return LineRange{first, first + limit - 1}
}

// parseRange reads "10-50"; any other form means the whole file.
func parseRange(s string) LineRange {
	from, to, ok := strings.Cut(strings.TrimSpace(s), "-")
	if !ok {
		return LineRange{}
	}
	first, err1 := strconv.Atoi(strings.TrimSpace(from))
	last, err2 := strconv.Atoi(strings.TrimSpace(to))
	if err1 != nil || err2 != nil || first < 0 || last < first {
		return LineRange{}
	}
	return LineRange{first, last}
}

// number reads 12 and "12".
func number(raw []byte) int {
	if len(raw) == 0 {
		return 0
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `" `))
	if err != nil {
		return 0
	}
	return n
}

// A Kind is the kind of a passage of a conversation. The names are from package tokens and all reports, and a few
// more that only reading the text can distinguish.
type Kind uint8

// The kinds.
const (
	KindUser         Kind = iota // typed by the user
	KindInjected                 // written into a user's message by the agent's program: reminders, commands, notices
	KindAssistant                // said by the model
	KindReasoning                // thought by the model
	KindToolCall                 // a call to a tool
	KindToolResult               // a tool's result
	KindError                    // a failed tool's result
	KindProjectRules             // instructions for every conversation, as in AGENTS.md
	KindEnvironment              // the state of the surroundings, as the agent's program describes it
	KindHeader                   // the line that announces the result of a tool that was called in a text
	KindSystem                   // a system message
	KindSummary                  // inserted by a condensation: summaries, extracts and markers
	KindOther                    // anything else, such as a text next to a result
	kinds                        // how many there are
)

var kindNames = [kinds]string{
	"user", "injected", "assistant", "reasoning", "tool_call", "tool_result", "error",
	"project_rules", "environment", "header", "system", "summary", "other",
}

// writers are the kinds of what programs put into user messages.
var writers = map[toolcall.Writer]Kind{
	toolcall.Program: KindInjected, toolcall.Agent: KindInjected, toolcall.Surroundings: KindEnvironment, toolcall.Rules: KindProjectRules, toolcall.Person: KindUser,
}

// String returns the name of k.
func (k Kind) String() string { return kindNames[k] }

// Regroup counts passages of texts by their own kind, in place of the kind of their message's role: a call in an
// assistant's text; results, reminders and the state of the surroundings in a user's. The total does not change. The
// keys are the names of kinds; headers and failed results count as results. The messages follow each other in a
// conversation.
func Regroup[K ~string](r *Reader, by map[K]int, c core.Counter, messages ...core.Message) {
	d := r.Read(messages)
	for i := range messages {
		m := &messages[i]
		own := K(KindUser.String())
		switch {
		case m.Kind != core.KindOriginal:
			continue
		case m.Role == core.RoleAssistant:
			own = K(KindAssistant.String())
		case m.Role != core.RoleUser:
			continue
		}
		for j, p := range m.Parts {
			if _, isText := p.(core.Text); !isText {
				continue
			}
			left := -1 // tokens of the part that are not moved
			for _, s := range d.Messages[i][j].Passages {
				kind := reported(s.Kind, own)
				if kind == own {
					continue
				}
				if left < 0 {
					left = min(c.Count(p), by[own])
				}
				n := left
				if len(d.Messages[i][j].Passages) > 1 {
					n = min(n, c.Count(core.Text(s.Text)))
				}
				left -= n
				by[own] -= n
				by[kind] += n
			}
		}
	}
}

// reported is the name of a kind in reports.
func reported[K ~string](k Kind, own K) K {
	switch k {
	case KindInjected, KindToolCall, KindToolResult, KindProjectRules, KindEnvironment:
		return K(k.String())
	case KindError, KindHeader:
		return K(KindToolResult.String())
	case KindUser, KindAssistant, KindReasoning, KindSystem, KindSummary, KindOther, kinds:
	}
	return own
}

// Package toolcall has the facts about calls to the tools of coding agents: which parameter names the file, which is the text that
// an edit replaces or inserts, which the command; and about what their programs put into messages of the user. Each is a row of one
// table, which strategies, the gateway, the commands and the measures read; what they conclude from it is their own.
package toolcall

import (
	"bytes"
	_ "embed"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A Role is what a parameter of a tool is for. A parameter can have several: they are bits.
type Role uint16

// The roles of parameters.
const (
	Path     Role = 1 << iota // the file that the call is about
	Folder                    // the folder in which it runs or searches
	Old                       // text that an edit replaces
	New                       // text that an edit inserts
	Whole                     // the whole text of a file
	Patch                     // a patch or diff
	Edits                     // a list of edits
	Command                   // a command or program that runs
	Query                     // a pattern, question or address
	Prose                     // words for people and models
	Name                      // another name of the subject
	Notebook                  // the file, of cells
	Cell                      // that an edit is about
	Mode                      // of an edit: to insert, replace or delete
	Every                     // whether an edit replaces every place with the old text
)

// parameters are the names of parameters in the tools of Aider, Antigravity, Claude Code, Cline, Codex, Copilot, Cursor, Gemini CLI,
// goose, Kilo, OpenCode, OpenHands, pi, Qwen Code, Roo Code, SWE-agent and Windsurf, in the order of preference where a call has
// several with a role. Spelling does not count: oldString, old_string and OldString are one row.
var parameters = func() (flat []parameter) {
	for _, row := range []struct {
		role  Role
		names string
	}{
		{Path, "file_path path filename file target_file absolute_path"},
		{Path | Notebook, "notebook_path"},
		{Path, "relative_workspace_path relative_path uri"},
		{Folder, "workdir cwd directory_path dir_path search_path target_directory"},
		{Old, "old_string old_str old_text old_source old_content target_content search"},
		{New, "new_string new_str new_text new_source new_content replacement_content replacement replace insert_text code_edit"},
		{Whole, "content file_text contents file_content code_content"},
		{Edits, "edits replacements replacement_chunks"},
		{Command, "command cmd script commands command_line"},
		{Command | Whole, "code"},
		{Command | Patch, "input"},
		{Command, "chars args"},
		{Patch, "patch diff patch_text unified_diff"},
		{Query, "pattern query regex glob url search_term"},
		{Query | Prose, "question subject description"},
		{Name, "name id"},
		{Cell, "cell_id"},
		{Mode, "edit_mode"},
		{Every, "replace_all"},
		{New | Prose, "text"},
		{Prose, "prompt plan todos thought active_form message result reason"},
	} {
		for name := range strings.FieldsSeq(row.names) {
			flat = append(flat, parameter{name, row.role})
		}
	}
	return flat
}()

type parameter struct {
	name string
	role Role
}

// ranks are the indices of parameters, by folded name.
var ranks = func() map[string]int {
	all := make(map[string]int, len(parameters))
	for i, p := range parameters {
		all[fold(p.name)] = i
	}
	return all
}()

// fold returns the spelling of a name in which names are compared.
func fold(name string) string {
	folded := true
	for i := range len(name) {
		if c := name[i]; c == '_' || c == '-' || 'A' <= c && c <= 'Z' {
			folded = false
			break
		}
	}
	if folded {
		return name
	}
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// RoleOf returns the roles of the parameter with this name; 0 for one that is not known.
func RoleOf(name string) Role {
	if rank, known := ranks[fold(name)]; known {
		return parameters[rank].role
	}
	return 0
}

// Names returns the folded names of the parameters with one of the roles: in lower case, without hyphens and underscores.
func Names(roles Role) (names []string) {
	return plain.Each(plain.Only(parameters, func(p parameter) bool { return p.role&roles != 0 }),
		func(p parameter) string { return fold(p.name) })
}

// First returns the text of the preferred parameter with one of the roles in a call's arguments, a JSON object; "" if none is a text
// with characters.
func First(args []byte, roles Role) string {
	best, found := len(parameters), ""
	for name, value := range rawjson.Fields(args) {
		rank, known := ranks[fold(string(name))]
		if !known || parameters[rank].role&roles == 0 || rank > best {
			continue
		}
		if text := rawjson.Text(value); text != "" { // of two with a name the last one counts, as for parsers
			best, found = rank, text
		}
	}
	return found
}

// Values returns the values of all parameters with one of the roles, in the order of a call's arguments, a JSON object.
func Values(args []byte, roles Role) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for name, value := range rawjson.Fields(args) {
			if RoleOf(string(name))&roles != 0 && !yield(value) {
				return
			}
		}
	}
}

// CleanPath returns a path in the form in which paths are compared: with slashes and without "./" and "file://"; of Windows with a small
// letter for the drive, also if it is written as WSL mounts it.
func CleanPath(name string) string {
	name = path.Clean(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(name), "file://"), `\`, "/"))
	if rest, ok := strings.CutPrefix(name, "/mnt/"); ok && len(rest) > 1 && rest[1] == '/' {
		name = rest[:1] + ":" + rest[1:]
	}
	if drive := strings.TrimPrefix(name, "/"); len(drive) > 2 && drive[1] == ':' && drive[2] == '/' {
		name = strings.ToLower(drive[:1]) + drive[1:]
	}
	return name
}

// everywhere are names that many folders of a project have. Without a folder, such a name is the file in the working folder.
var everywhere = rawjson.Set(".env", ".gitignore", "AGENTS.md", "CLAUDE.md", "Cargo.toml", "Dockerfile", "Makefile", "README.md", "__init__.py", "config.json", "go.mod",
	"index.html", "index.js", "index.ts", "index.tsx", "lib.rs", "main.go", "main.py", "main.rs", "mod.rs", "package.json", "page.tsx", "pyproject.toml", "tsconfig.json")

// SameFile reports whether two clean paths may be one file: they are the same from the folder in which the session works, which may be
// unknown (sure), or one ends with the other.
func SameFile(folder, a, b string) (is, sure bool) {
	long, short := mounted(a), mounted(b)
	if len(long) < len(short) {
		long, short = short, long
	}
	if long == short || folder != "" && short[0] != '/' && path.Join(mounted(folder), short) == long {
		return true, true
	}
	return (strings.Contains(short, "/") || !everywhere[short]) && strings.HasSuffix(long, "/"+strings.TrimPrefix(short, "/")), false
}

// mounted returns a path of Windows as the shell of Git mounts it, and any other as it is.
func mounted(name string) string {
	if len(name) > 2 && name[1] == ':' {
		return "/" + name[:1] + name[2:]
	}
	return name
}

// SearchReplace returns the pairs of old and new text in the SEARCH and REPLACE blocks of a text, in the forms of Aider, Cline and
// Roo Code, which names a place before the old text.
func SearchReplace(text string) (pairs [][2]string) {
	for {
		_, rest, ok := strings.Cut(text, "<<<<<<< SEARCH\n")
		if !ok {
			return pairs
		}
		for strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "-------\n") {
			_, rest, _ = strings.Cut(rest, "\n")
		}
		old, rest, _ := strings.Cut(rest, "=======\n")
		now, rest, _ := strings.Cut(rest, ">>>>>>> REPLACE")
		pairs, text = append(pairs, [2]string{strings.TrimSuffix(old, "\n"), strings.TrimSuffix(now, "\n")}), rest
	}
}

// A Hunk is a change of one file by a patch in the form of apply_patch.
type Hunk struct {
	Path, To string // To is its new name, if it moves
	Old, New string
	Added    bool // New is the whole file
	Deleted  bool
}

// PatchIn returns the changes by the patch in the arguments of a call, of apply_patch or of a shell that runs it. They may be the patch.
func PatchIn(args []byte) []Hunk {
	if !bytes.Contains(args, []byte("*** Begin Patch")) {
		return nil
	}
	for value := range Values(args, Patch|Command) {
		if rawjson.IsArray(value) {
			for e := range rawjson.Elements(value) {
				value = e
			}
		}
		if hunks := ApplyPatch(rawjson.Text(value)); len(hunks) > 0 {
			return hunks
		}
	}
	if bytes.HasPrefix(bytes.TrimSpace(args), []byte("*** Begin")) {
		return ApplyPatch(string(args))
	}
	return nil
}

// ApplyPatch returns the changes of the patch in text, in their order; none if there is no patch.
func ApplyPatch(text string) (hunks []Hunk) {
	_, body, ok := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "*** Begin Patch\n")
	if !ok {
		return nil
	}
	body, _, _ = strings.Cut(body, "*** End Patch")
	var h Hunk
	var old, now []string
	flush := func() {
		if len(old)+len(now) > 0 || h.Added || h.Deleted {
			h.Old, h.New = strings.Join(old, "\n"), strings.Join(now, "\n")
			hunks = append(hunks, h)
		}
		old, now = nil, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		switch name, isFile := strings.CutPrefix(line, "*** "); {
		case isFile:
			verb, file, _ := strings.Cut(name, ": ")
			if verb == "Move to" {
				h.To = file
				continue
			}
			flush()
			h = Hunk{Path: file, Added: verb == "Add File", Deleted: verb == "Delete File"}
			if verb != "Update File" && !h.Added && !h.Deleted {
				h = Hunk{}
			}
		case strings.HasPrefix(line, "@@"):
			flush()
		case h.Added:
			now = append(now, strings.TrimPrefix(line, "+"))
		case strings.HasPrefix(line, "+"):
			now = append(now, line[1:])
		case strings.HasPrefix(line, "-"):
			old = append(old, line[1:])
		default:
			line = strings.TrimPrefix(line, " ")
			old, now = append(old, line), append(now, line)
		}
	}
	flush()
	return hunks
}

// signs follow the number of a line in the results of tools that show files. A shorter one comes after those that begin with it.
var signs = []string{"→", "\t", " | ", "| ", "|", ": ", ":", "-"}

// Gutter splits off the number that a tool wrote before a line of a file, as in "  12→x", "00012| x", "12 | x", "12\tx", "12: x",
// and "12:x" and "12-x" of a search. Sign is what stands between number and text; it is empty, and text the line, if there is no
// number.
func Gutter(line string) (n int, sign, text string) {
	const most = 7 // digits
	rest := strings.TrimLeft(line, " ")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		if digits++; digits > most {
			return 0, "", line
		}
		n = 10*n + int(rest[digits-1]-'0')
	}
	if digits == 0 {
		return 0, "", line
	}
	rest = rest[digits:]
	if rest == " |" { // an empty line
		return n, rest, ""
	}
	for _, sign := range signs {
		if text, ok := strings.CutPrefix(rest, sign); ok {
			return n, sign, text
		}
	}
	return 0, "", line
}

var wrapperForm = plain.Pattern(`^(?:<path>[^<]*</path>|<type>\w+</type>|</?content>|</?file>)$`)

// Wraps reports whether a tool writes the line around the text of a file that it shows.
func Wraps(line string) bool {
	return strings.HasPrefix(line, "<") && wrapperForm().MatchString(strings.TrimRight(line, "\r"))
}

// A Writer says who wrote what agents put into a user's message.
type Writer string

// The writers.
const (
	Program      Writer = "program"      // reminders, commands and their output, notices
	Surroundings Writer = "surroundings" // the state of the environment
	Rules        Writer = "rules"        // of a project
	Agent        Writer = "agent"        // another agent, of a team or a task, that reports
	Person       Writer = "person"
)

// An Element is one that agents put into user messages, or a text.
type Element struct {
	Name  string // of the element; of a text its beginning
	By    Writer
	Agent string // that finds its own messages of the user by it; empty for none
}

// Tags of elements that other programs write, too.
const (
	ReminderOpen  = "<system-reminder>"
	ReminderClose = "</system-reminder>"
	NoticeOpen    = "<notice>"
	NoticeClose   = "</notice>"
	DetailsOpen   = "<environment_details>"
)

//go:embed programs.txt
var programs string

// listed are all elements that are known, by name, and the beginnings of texts.
var listed = sync.OnceValues(func() (all map[string]Element, texts []Element) {
	all = map[string]Element{}
	for line := range strings.Lines(programs) {
		by, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		agent, names, _ := strings.Cut(rest, " ")
		agent = strings.Trim(agent, "-")
		if text, err := strconv.Unquote(names); err == nil {
			texts = append(texts, Element{text, Writer(by), agent})
		} else if by != "#" {
			for name := range strings.SplitSeq(names, ";") {
				all[name] = Element{name, Writer(by), agent}
			}
		}
	}
	return all, texts
})

// Elements returns all elements by name.
func Elements() map[string]Element {
	all, _ := listed()
	return all
}

// apart reports whether no person begins a text with the tag, so that one without its end is the program's, too.
func (e Element) apart() bool {
	return e.By != Person && strings.ContainsAny(e.Name, "-_ ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// Opens returns the element whose opening tag text begins with, with or without attributes.
func Opens(text string) (e Element, ok bool) {
	const longest = 40 // bytes of a name
	text, ok = strings.CutPrefix(text[:min(len(text), longest)], "<")
	n := strings.IndexAny(text, "> \t\n")
	if !ok || n < 0 {
		return Element{}, false
	}
	if whole, _, closed := strings.Cut(text, ">"); closed && Elements()[whole].Name != "" { // one has a space in it
		return Elements()[whole], true
	}
	e, ok = Elements()[text[:n]]
	return e, ok
}

// Begins returns what text begins with, if programs write all texts that begin so.
func Begins(text string) (e Element, ok bool) {
	if e, ok = Opens(text); ok && e.apart() {
		return e, true
	}
	_, beginnings := listed()
	if i := slices.IndexFunc(beginnings, func(b Element) bool { return strings.HasPrefix(text, b.Name) }); i >= 0 {
		return beginnings[i], true
	}
	return Element{}, false
}

// Programs returns the names of the elements that hold words of programs, of those that hold words of the user, and how programs'
// texts begin.
func Programs() (theirs, users, begin []string) {
	for _, name := range slices.Sorted(maps.Keys(Elements())) {
		if Elements()[name].By == Person {
			users = append(users, name)
			continue
		}
		if theirs = append(theirs, name); Elements()[name].apart() {
			begin = append(begin, "<"+name+">", "<"+name+" ")
		}
	}
	_, beginnings := listed()
	begin = append(begin, plain.Each(beginnings, func(b Element) string { return b.Name })...)
	return theirs, users, begin
}

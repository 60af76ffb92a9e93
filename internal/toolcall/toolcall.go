// Package toolcall has the facts about calls to the tools of coding agents: which parameter names the file, which is the text that
// an edit replaces or inserts, which the command; and about what their programs put into messages of the user. Each is a row of one
// table, which strategies, the gateway, the commands and the measures read; what they conclude from it is their own.
package toolcall

import (
	"iter"
	"path"
	"strings"

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
	for _, p := range parameters {
		if p.role&roles != 0 {
			names = append(names, fold(p.name))
		}
	}
	return names
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

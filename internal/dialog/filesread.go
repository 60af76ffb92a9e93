package dialog

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

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
	var names []string
	for _, m := range mentionForm().FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// filesOf returns the files that a call reads.
func filesOf(use *CallInfo) []string {
	if use.Family == FamilyCommand {
		return printed(use.Target)
	}
	var names []string
	for _, f := range use.Files {
		if use.Family == FamilyRead {
			names = append(names, f.Path)
		}
	}
	return names
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

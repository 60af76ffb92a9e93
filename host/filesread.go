package host

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/tooling"
)

// FilesRead returns the files below dir that the agent read in messages, which are oldest
// first: newest first, each once, with slashes and relative to dir. It goes by the calls
// to tools, those of a shell's cat and its like included, and looks at no file.
func FilesRead(messages []core.Message, dir string) []string {
	var files []string
	seen := map[string]bool{}
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Parts) {
			call, ok := p.(core.ToolCall)
			if !ok {
				continue
			}
			for _, name := range slices.Backward(filesOf(call)) {
				if rel, ok := below(dir, name); ok && !seen[rel] {
					seen[rel] = true
					files = append(files, rel)
				}
			}
		}
	}
	return files
}

// filesOf returns the files that a call reads.
func filesOf(call core.ToolCall) []string {
	switch tooling.FamilyOf(call.Name) {
	case tooling.Command:
		return shown(tooling.Parse(call.Name, call.Args).Target)
	case tooling.Read, tooling.Edit: // editors read too
		use := tooling.Parse(call.Name, call.Args)
		if use.Family != tooling.Read {
			return nil
		}
		var names []string
		for _, f := range use.Files {
			names = append(names, f.Path)
		}
		return names
	case tooling.Unknown, tooling.Write, tooling.List, tooling.Search, tooling.Web, tooling.Plan, tooling.Ask, tooling.Delegate, tooling.Done:
	}
	return nil
}

// showing are the programs that print the files they are given.
var showing = map[string]bool{"cat": true, "bat": true, "nl": true, "less": true, "more": true, "head": true, "tail": true}

// shown returns the files that a command line prints. A command that is more than words is
// left out: a wrong guess would have a file read that nobody looked at.
func shown(command string) []string {
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

// below returns name relative to dir, and whether it is below. Nothing is looked up: where
// a link leads is for whoever opens it to find out.
func below(dir, name string) (string, bool) {
	name = filepath.FromSlash(name)
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

package author

import (
	"path"
	"strings"
)

// ruleFiles are the names of the files that hold a project's rules.
var ruleFiles = map[string]bool{"AGENTS.md": true, "AGENTS.override.md": true, "CLAUDE.md": true, "CLAUDE.local.md": true, "GEMINI.md": true}

// How programs announce rules: Codex above the text of AGENTS.md; Claude Code in a reminder,
// for all files together, and for the file of a folder that it comes across later.
const (
	agentsMark   = "# AGENTS.md instructions"
	claudeMark   = "# claudeMd"
	contentsMark = "Contents of "
)

// rulesLook is how many lines of a text may come before the announcement of rules.
const rulesLook = 6

// Rules returns the name of the project rules that text begins with, as the program announces
// them; "" if it announces none. Two texts with one name are two versions of the same rules.
func Rules(text string) string {
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
			if blockNamed[name].by == Standing {
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

// authorOf returns whose the block text is, whose first tag is that of b: a reminder of Claude
// Code may hold the project's rules. What a tool shows makes no rules: there, ask the table.
func authorOf(b block, text string) By {
	if b.name == "system-reminder" && Rules(text) != "" {
		return Standing
	}
	return b.by
}

// shown returns whose a block is that is in the result of a tool, where what looks like rules
// may be what the tool showed.
func shown(b block) By {
	if b.by == Standing {
		return Program
	}
	return b.by
}

// isHeading reports whether s is what Codex writes above the block that holds AGENTS.md.
func isHeading(s Segment) bool {
	text := strings.TrimSpace(s.Text)
	return s.By == Standing && strings.HasPrefix(text, agentsMark) && !strings.Contains(text, "\n")
}

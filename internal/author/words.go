package author

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// beginnings are how texts begin that are not the person's words, though they stand in the
// person's name. They are published by the vendors or visible in any recorded session.
var beginnings = []struct {
	by   By
	with []string
}{
	{Standing, []string{agentsMark, "<user_instructions>", "<INSTRUCTIONS>"}}, // Codex
	{Surroundings, []string{"<environment_details>", "<environment_context>"}},
	{Program, []string{ // Claude Code, Codex, pi and their kin
		"<system-reminder>", "<command-name>", "<command-message>", "<local-command-", "Caveat: The messages below", "[Request interrupted",
		"<ide_", "<permissions instructions>", "<turn_aborted>", "<system_warning>", "# System Warning", "<task-notification>",
		skillMark, "<execution_context>", "<objective>",
		"Read the output file to retrieve the result:", "Full transcript available at:",
	}},
	{Program, []string{ // Roo-Code and Cline
		"<file_content ", "<files>", "<slug>", "[ERROR]", "[TASK RESUMPTION]", "[Tool ", "[new_task ",
		"Successfully created new task", "New instructions for task continuation:", "Tool result:", "The tool execution failed", "(see below for",
	}},
}

// argumentsMark begins what a person typed after the name of a skill, at the end of a text
// that begins as skillMark does. Behind other beginnings stands what a tool shows.
const (
	skillMark     = "Base directory for this skill:"
	argumentsMark = "\nARGUMENTS: "
)

// launches reports whether r is what Claude Code answers when the model calls for a skill,
// whose text follows it. It is the program's to the last word: the arguments are the model's.
func launches(r core.ToolResult) bool {
	if len(r.Content) != 1 || r.IsError {
		return false
	}
	text, _ := r.Content[0].(core.Text)
	name, ok := strings.CutPrefix(string(text), "Launching skill: ")
	return ok && name != "" && !strings.ContainsAny(strings.TrimSpace(name), " \t\r\n")
}

// appendWords adds text, which has no mark around it: words of the person, unless it begins
// as others do.
func appendWords(out []Segment, text string) []Segment {
	space := len(text) - len(strings.TrimLeft(text, " \n\t\r"))
	if strings.HasPrefix(text[space:], stubStart) {
		stub, rest := cutStub(text[space:])
		out = append(out, Segment{By: Program, Text: text[:space] + stub})
		if strings.TrimSpace(rest) == "" {
			out[len(out)-1].Text += rest
			return out
		}
		return appendWords(out, rest)
	}
	by := begins(text)
	if by == Person {
		return append(out, Segment{Text: text})
	}
	if at := strings.LastIndex(text, argumentsMark); at >= 0 && strings.HasPrefix(strings.TrimSpace(text), skillMark) {
		return append(out, Segment{By: by, Text: text[:at+1]}, Segment{Text: text[at+1:]})
	}
	return append(out, Segment{By: by, Text: text})
}

func begins(text string) By {
	text = strings.TrimLeft(text, " \n\t\r")
	for _, b := range beginnings {
		for _, s := range b.with {
			if strings.HasPrefix(text, s) {
				return b.by
			}
		}
	}
	return Person
}

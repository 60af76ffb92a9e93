package dialog

import (
	"regexp"
	"strings"
)

// An aiderReader tells which texts aider wrote: it keeps its own notices, and what the
// commands print that the user runs with /run, in the same record as what is typed. It is
// told every text of the user's in order. Known are aider's notices (its sources, io.py and
// commands.py, and recorded sessions).
type aiderReader struct {
	is     bool   // a notice of aider's was there
	ran    bool   // a command was run right before, in the same message
	output string // the first line that the last one printed
}

// leastOutput is the size in bytes from which on a line is taken for the beginning of the
// output that it was the beginning of before.
const leastOutput = 12

// wrote reports whether aider, or what it ran, wrote text.
func (r *aiderReader) wrote(text string) bool {
	text = strings.TrimSpace(text)
	ran := r.ran
	r.ran = false
	switch {
	case text == "":
		r.ran = ran
		return false
	case announces(text):
		r.is = true
		return true
	case !r.is || text[0] == '<':
		return false
	case text[0] == '/' || text[0] == '!':
		if runs(text) {
			r.ran, r.output = true, ""
		}
		return false
	case ran: // what follows the command
		r.output, _, _ = strings.Cut(text, "\n")
		return true
	}
	return len(r.output) >= leastOutput && strings.HasPrefix(text, r.output)
}

// runs reports whether the last of the commands in text runs a program.
func runs(text string) bool {
	text = text[strings.LastIndexByte(text, '\n')+1:]
	name, _, _ := strings.Cut(text, " ")
	switch name {
	case "/run", "/test", "/git", "/lint":
		return true
	}
	return strings.HasPrefix(text, "!")
}

// notice is how a line of aider's begins.
var notice = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`Tokens: [\d.,]+k? sent, `, `Aider v\d`, `Applied edit to \S`, `Commit [0-9a-f]{7} `, `Committing \S+ before applying edits`,
	`Removed: [0-9a-f]{7} `, `Removed \S+ from the chat$`, `Added \S+ to the chat\.?$`, `\^C again to exit$`, `\^C KeyboardInterrupt$`,
	`Add the output to the chat\?`, `Add these files to the chat\?`, `Add \S+ tokens of command output to the chat\?`,
	`The LLM did not conform to the edit format\.`, `Diff since [0-9a-f]{7}\.\.\.`,
}, "|") + `)`)

// announces reports whether one of the first lines of text is a notice: before the first
// there may be a command line or the name of a file.
func announces(text string) bool {
	const first = 3
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) < 1000 && notice.MatchString(line) {
			return true
		}
		if n++; n == first {
			break
		}
	}
	return false
}

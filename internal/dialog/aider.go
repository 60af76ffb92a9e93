package dialog

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// An aiderReader detects the texts that aider wrote. Aider records its own notices, and the
// output of commands that the user runs with /run, as if the user had typed them. The reader
// must get every text of the user, in order. It knows aider's notices from its sources (io.py
// and commands.py) and from recorded sessions.
type aiderReader struct {
	is     bool   // a notice of aider was read
	ran    bool   // the previous text of the message runs a command
	output string // the first line of the last command's output
}

// minOutput is the least size in bytes of a first line by which repeated output is
// recognized.
const minOutput = 12

// wrote reports whether aider, or a command that it ran, wrote text.
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
	case ran: // text after the command
		r.output, _, _ = strings.Cut(text, "\n")
		return true
	}
	return len(r.output) >= minOutput && strings.HasPrefix(text, r.output)
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

// notice matches the beginning of a notice of aider.
var notice = plain.Pattern(`^(?:` + strings.Join([]string{
	`Tokens: [\d.,]+k? sent, `, `Aider v\d`, `Applied edit to \S`, `Commit [0-9a-f]{7} `, `Committing \S+ before applying edits`,
	`Removed: [0-9a-f]{7} `, `Removed \S+ from the chat$`, `Added \S+ to the chat\.?$`, `\^C again to exit$`, `\^C KeyboardInterrupt$`,
	`Add the output to the chat\?`, `Add these files to the chat\?`, `Add \S+ tokens of command output to the chat\?`,
	`The LLM did not conform to the edit format\.`, `Diff since [0-9a-f]{7}\.\.\.`,
}, "|") + `)`)

// announces reports whether one of the first lines of text is a notice. A command line or the
// name of a file may come before it.
func announces(text string) bool {
	const first = 3
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) < 1000 && notice().MatchString(line) {
			return true
		}
		if n++; n == first {
			break
		}
	}
	return false
}

package tooling

import (
	"regexp"
	"strings"
)

// A Speaker tells, of the texts that a recorded session has in the user's name, which a
// program wrote: aider keeps its own notices, and what the commands print that the user
// runs with /run, in the same record as what is typed. It is told every text of the user's
// in order. Known are aider's notices (its sources, io.py and commands.py, and recorded
// sessions); a text of any other form counts as typed. The zero value is ready.
type Speaker struct {
	aider  bool   // a notice of aider's was there
	ran    int    // the message in which a command was run last, plus one
	output string // the first line that it printed
}

// leastOutput is the size in bytes from which on a line is taken for the beginning of the
// output that it was the beginning of before.
const leastOutput = 12

// Program reports whether a program wrote text, which is the next one of the user's and
// stands in the given message.
func (s *Speaker) Program(message int, text string) bool {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return false
	case announces(text):
		s.aider = true
		return true
	case !s.aider || text[0] == '<':
		return false
	case text[0] == '/' || text[0] == '!':
		if runs(text) {
			s.ran, s.output = message+1, ""
		}
		return false
	case s.ran == message+1: // what stands right behind the command
		s.ran = 0
		s.output, _, _ = strings.Cut(text, "\n")
		return true
	}
	return len(s.output) >= leastOutput && strings.HasPrefix(text, s.output)
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

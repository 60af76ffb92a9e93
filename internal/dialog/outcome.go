package dialog

import (
	"regexp"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// exitForm matches the exit code of a failed program.
var exitForm = regexp.MustCompile(`(?i)\bexit(?:ed)?(?: with)?[ _]?(?:code|status)?["':= ]{1,4}[1-9]\d{0,2}\b`)

// testsFailed matches the last lines of failed test runs: of pytest, Go, Rust, Jest and make. Not every agent reports
// how a command ended, and a pipe hides its exit code.
var testsFailed = regexp.MustCompile(`(?m)^=+ .*\b[1-9]\d* failed\b.*=$|^FAIL(?:ED)?(?:\s|$)|^test result: FAILED\b|` +
	`^Tests: +[1-9]\d* failed\b|^make(?:\[\d+\])?: \*\*\* `)

// NamesExit reports whether text names the exit code of a failed program.
func NamesExit(text string) bool {
	return HoldsFold(text, "exit") && exitForm.MatchString(text) // the pattern alone is ten times as slow
}

// HoldsFold reports whether text holds a word of ASCII, given in lower case, in upper or lower case.
func HoldsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// ExitFailed reports whether the result of a command names the exit code of a failed program at one of its ends.
func ExitFailed(text string) bool {
	const end = 200 // bytes
	return NamesExit(text[:min(len(text), end)]) || NamesExit(text[max(0, len(text)-end):])
}

// TestsFailed reports whether the result of a command ends as a failed test run does.
func TestsFailed(text string) bool {
	const end = 400 // bytes
	return testsFailed.MatchString(text[max(0, len(text)-end):])
}

// Refused reports whether a result says that the user did not let the command run.
func Refused(text string) bool {
	return strings.HasPrefix(text, "The user doesn't want to ") || strings.HasPrefix(text, "[Request interrupted")
}

// answering are programs whose failure is an answer, or which only prepare something.
var answering = rawjson.Set(
	"[", "ag", "awk", "cat", "cd", "chmod", "cmp", "command", "cp", "diff", "echo", "egrep", "export", "file", "find", "for",
	"git", "grep", "head", "if", "kill", "ls", "mkdir", "mv", "pgrep", "pkill", "rg", "rm", "sed", "set", "sleep", "source",
	"stat", "tail", "test", "touch", "type", "wc", "which", "while",
)

// BareCommand returns a command without its preparations: a change of folder, variables, a time limit.
func BareCommand(command string) string {
	s := strings.TrimSpace(command)
	for {
		first, rest, more := strings.Cut(s, " ")
		switch {
		case first == "cd" || first == "source" || first == "export" || first == "set":
			i := strings.IndexAny(s, "&;\n")
			if i < 0 {
				return s
			}
			s = strings.TrimLeft(s[i:], "&; \n\t")
		case more && (first == "time" || first == "sudo" || first == "env" || first == "nice"),
			more && strings.Contains(first, "=") && !strings.ContainsAny(first, `"'(`):
			s = strings.TrimSpace(rest)
		case more && first == "timeout":
			_, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
			s = strings.TrimSpace(rest)
		default:
			return s
		}
	}
}

// CommandKey names the purpose of a command: the program and its subcommand, such as "go test" and "npm build". It is
// empty if a failure cannot be fixed. A later run with the same key replaces an earlier one, whatever its other
// arguments. A command may end with the ellipsis of one that was shortened.
func CommandKey(command string) string {
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == '&' || r == ';' || r == '\n' }) {
		part, _, _ = strings.Cut(BareCommand(part), "|")
		var words []string
		for f := range strings.FieldsSeq(part) {
			if len(words) < 2 && f[0] != '-' && f != "run" && f != "exec" && strings.Trim(f, "0123456789<>") != "" {
				words = append(words, strings.TrimSuffix(f, "…"))
			}
		}
		if len(words) > 0 && !answering[words[0]] {
			return strings.Join(words, " ")
		}
	}
	return ""
}

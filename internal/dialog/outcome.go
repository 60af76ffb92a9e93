package dialog

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// exitForm matches the exit code of a program, in the forms of shells, agents and languages. A bare "exit 1" is a line
// of a script.
var exitForm = plain.Pattern(`(?i)\b(?:exit(?:ed)?(?: with)?[ _]?(?:code|status|value)["':= ]{1,4}|exited(?: with)?[:= ]{1,2}|exit[:=] ?|` +
	`return ?code["':= ]{1,4})(-?\d{1,10})\b`)

// faultForm matches lines that report a failure, by their author. Every expression begins at the beginning of its line, or ends at the end, so
// that code and prose about failures are not taken for one.
var faultForm = ReadForm("", faultsText, "")

//go:embed faults.txt
var faultsText string

// maybeForm matches lines that may be about a failure.
var maybeForm = NewForm(`(?i)\berror\b|error:|\bfail(?:ed|ure)?\b|panic:|exception\b|fatal:|not found|cannot |permission denied`)

// faultHints are words of which every match of the forms above has one.
var faultHints = sync.OnceValue(func() *words {
	hints := new(words)
	hints.add(1, "err", "fail", "panic", "fatal", "exception", "traceback", "goroutine", "fault", "abort", "kill",
		"not ok", "not ", "no such", "denied", "directory", "undefined", "***", "elifecycle", "timed out", "stopped", "illegal", ".go:", "e: ", "curl:", "ssh:", "cannot ",
		"could not ", "can't ", "conflict", "rejected", "halted", "lua", "no module", "reformatted", "graphql", "code style", "incomplete", "be resolved")
	return hints
})

// A Fault says whether a line reports a failure.
type Fault int

// The faults.
const (
	NoFault    Fault = iota
	MaybeFault       // it has a word for it
	SureFault        // it is in the form of a program that reports one
)

// FaultOf returns the fault of a line of a tool's result.
func FaultOf(line string) Fault {
	switch line, hinted := faultLine(line); {
	case hinted && faultForm.Match(line):
		return SureFault
	case hinted && maybeForm.Match(line):
		return MaybeFault
	case NamesExit(line):
		return SureFault
	}
	return NoFault
}

// faultLine returns the text of a line to match, and whether it has a word of a fault.
func faultLine(line string) (text string, hinted bool) {
	const most = 500 // bytes: a form is shorter
	line = strings.TrimRight(line[:min(len(line), most)], " \t\r\n")
	line = WithoutColours(line)
	return line, faultHints().in(line) != 0
}

// isFailure reports whether a line is in the form of a failure, and not only of an exit code.
func isFailure(line string) bool {
	text, hinted := faultLine(line)
	return hinted && faultForm.Match(text) && !NamesExit(line)
}

// WithoutColours returns s without the signs by which programs colour their output.
func WithoutColours(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	return colours().ReplaceAllString(s, "")
}

var colours = plain.Pattern(`\x1b\[[0-9;]*[A-Za-z]`)

// failedForm matches the beginning of the result of a failed tool.
var failedForm = plain.Pattern(`^(?:(?i:<tool_use_error>|<error>|error (?:executing|calling|reading|writing|opening|editing|running|fetching|occurred|while) |tool error|failed to |failure: |could not |unable to |mcp error|permission denied|` +
	`no such (?:file|tool)|file (?:not found|does not exist)|file has not been read|string to replace not found|invalid (?:arguments?|parameters?|input)\b|unknown tool|command failed|` +
	`http(?:/[\d.]+)? [45]\d\d\b|request failed with status code [45])|` +
	`\{\s*"(?:error|errors)"\s*:\s*(?:"[^"]|[{\[]\s*["{]|true)|\{[^{}]{0,80}"(?:(?:is_?error|failed)"\s*:\s*true|(?:success|ok)"\s*:\s*false|status"\s*:\s*"(?:error|failed|failure|denied)"))`)

// Failed reports whether a result says that its call failed: by an exit code, by the beginning of its text, and for
// programs by the form of the lines at its ends. Command is the call's, empty if it is not known. Nothing in the middle
// of a text counts, nor does anything but the code of a program that only shows texts, or ended with code 0.
func Failed(family Family, command, text string) bool {
	text = strings.TrimSpace(text)
	const head, tail = 400, 800 // bytes
	runs, code := family == FamilyCommand || family == FamilyUnknown, ""
	onlyShows, quotes := shows(command)
	if runs {
		code = ExitCode(text)
	}
	switch {
	case text == "" || family == FamilyAsk:
		return false
	case runs && failedCode(code):
		return true
	case runs && onlyShows:
		return code == "" && !strings.Contains(text, "\n") && reports(text) // "cat: a.go: No such file or directory"
	case runs && quotes: // whose failure a line tells cannot be known
		return false
	case runs && code != "" && !strings.ContainsAny(command, "|;\n"): // a pipe hides a failure
		return slices.ContainsFunc(strings.Split(text[max(0, len(text)-tail):], "\n"), Counts)
	case strings.Contains(text[:min(len(text), head)], "The tool execution failed"), failedForm().MatchString(text[:min(len(text), head)]):
		return true
	}
	if !runs {
		first, _, _ := strings.Cut(text, "\n")
		return reports(first)
	}
	if len(text) > head+tail {
		text = text[:head] + "\n" + text[len(text)-tail:]
	}
	for line := range strings.Lines(text) {
		if isFailure(line) {
			return true
		}
	}
	return false
}

// found matches lines that searches find: they begin with a place in a file.
var found = plain.Pattern(`^\S+[:(]\d+[:,)]`)

// reports is true if the only line of an answer says that its call failed.
func reports(line string) bool { return isFailure(line) && !found().MatchString(line) }

// shows reports whether all programs of a command show texts, whose lines say nothing about the command, and whether one shows a text of
// others.
func shows(command string) (all, quotes bool) {
	all = true
	some := false
	for step := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune("&;\n", r) }) {
		only, quote := true, false
		for part := range strings.SplitSeq(step, "|") {
			words := strings.Fields(BareCommand(part))
			if len(words) == 0 {
				continue
			}
			has := func(is func(string) bool) bool { return slices.ContainsFunc(words[1:], is) }
			lines := quotePrograms[words[0]] || workPrograms[words[0]] && has(func(w string) bool { return textWords[w] })
			quote = quote || lines && !has(func(w string) bool { return w == "-i" || w[0] == '>' })
			some, only = true, only && (lines || textPrograms[words[0]])
		}
		all, quotes = all && only, quotes || only && quote
	}
	return all && some, quotes
}

var (
	// quotePrograms are programs that show lines of files, textPrograms others that show texts, and words of shells around them.
	quotePrograms = rawjson.Set(
		"ag", "awk", "bat", "cat", "diff", "egrep", "grep", "head", "journalctl", "jq", "less", "more", "nl", "rg", "sed", "strings", "tail",
		"zcat", "zgrep",
	)
	textPrograms = rawjson.Set(
		"[", "cd", "cmp", "column", "command", "cut", "echo", "export", "file", "find", "for", "if", "ls", "man", "pgrep", "printf", "ps",
		"set", "sleep", "sort", "source", "stat", "test", "tr", "tree", "type", "uniq", "wc", "which", "while", "yq",
	)
	// workPrograms are programs that show texts, too, if their command has one of these words.
	workPrograms = rawjson.Set("docker", "docker-compose", "gh", "git", "glab", "kubectl", "podman")
	textWords    = rawjson.Set("blame", "cat-file", "describe", "diff", "grep", "log", "logs", "show", "view")
)

// ExitCode returns the exit code that the result of a command names at one of its ends, one of a failure before 0; empty
// if there is none.
func ExitCode(text string) string {
	const end = 400 // bytes
	first := exitCode(text[:min(len(text), end)])
	if last := exitCode(text[max(0, len(text)-end):]); first == "" || first == "0" && last != "" {
		return last
	}
	return first
}

func exitCode(text string) (code string) {
	if !HoldsFold(text, "exit") && !HoldsFold(text, "returncode") && !HoldsFold(text, "return code") { // the pattern alone is ten times as slow
		return ""
	}
	for _, found := range exitForm().FindAllStringSubmatch(text, -1) {
		if code = found[1]; failedCode(code) {
			return code
		}
	}
	return code
}

// countForm matches the number of failures in the line of a program that counts them.
var countForm = NewForm(`(?i)\b[1-9][\d.,]*\s(?:\w+ )?(?:errors?|fail(?:ed|ing|ures?)|problems?)\b|\b(?:failures|errors)[=:] ?[1-9]`)

// Counts reports whether a line is that of a program that counts failures, such as "Found 753 errors".
func Counts(line string) bool { return countForm.Match(line) && FaultOf(line) == SureFault }

// NamesExit reports whether text names the exit code of a failed program.
func NamesExit(text string) bool { return failedCode(exitCode(text)) }

func failedCode(code string) bool { return strings.Trim(code, "0") != "" }

// HoldsFold reports whether text holds a word of ASCII, given in lower case, in upper or lower case.
func HoldsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
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

// CommandKeys names the purposes of a command: each program and its subcommand, such as "go test" and "npm build", without those whose
// failure cannot be fixed. A later run with the same key replaces an earlier one, whatever its other arguments. Shown is the command
// from the first of them on. A command may end with the ellipsis of one that was shortened.
func CommandKeys(command string) (keys []string, shown string) {
	var program strings.Builder // without scripts in it
	for rest, more := command, true; more; {
		var before, mark string
		before, rest, more = strings.Cut(rest, "<<")
		_, _ = program.WriteString(before + "\n")
		mark, _, _ = strings.Cut(strings.TrimLeft(rest, "- "), "\n")
		mark, _, _ = strings.Cut(mark, " ")
		_, rest, _ = strings.Cut(rest, "\n"+strings.Trim(mark, `'"`))
	}
	command = inQuotes().ReplaceAllStringFunc(program.String(), func(s string) string {
		if strings.ContainsAny(s, "&;\n") {
			return ""
		}
		return s
	})
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return r == '&' || r == ';' || r == '\n' }) {
		first, _, _ := strings.Cut(BareCommand(part), "|")
		var words []string
		for f := range strings.FieldsSeq(first) {
			if len(words) < 2 && f[0] != '-' && f != "run" && f != "exec" && strings.Trim(f, "0123456789<>") != "" {
				words = append(words, strings.TrimSuffix(f, "…"))
			}
		}
		if len(words) == 0 || answering[words[0]] {
			continue
		}
		if keys = append(keys, strings.Join(words, " ")); len(keys) == 1 {
			shown = BareCommand(command[strings.Index(command, part):])
		}
	}
	return keys, shown
}

var inQuotes = plain.Pattern(`"[^"]*"|'[^']*'`)

// CommandKey returns the first of [CommandKeys]; empty if there is none.
func CommandKey(command string) string {
	keys, _ := CommandKeys(command)
	return append(keys, "")[0]
}

package author

import (
	"strings"

	"github.com/condensehq/condense/internal/tooling"
)

// told are the sentences that programs begin a result with in which the person says
// something, and the mark that begins what was said: Claude Code, for a call that was turned
// down; Roo-Code and Cline, for one that was turned down or approved, for work that is not
// done or was taken up again, and for a command that runs. What a command printed stands
// between the last of them and the mark, so the text has to end as it would. Newer versions of
// Roo-Code say it as JSON; what it says of a call that was approved stands before the result,
// and is not read.
var told = []struct{ begins, mark, ends string }{
	{"The user doesn't want to ", "the user said:", ""},
	{"The user denied ", "<feedback>", "</feedback>"},
	{"The user approved ", "<feedback>", "</feedback>"},
	{"The user has provided feedback", "<feedback>", "</feedback>"},
	{"The user provided ", "<feedback>", "</feedback>"},
	{"You seem to be having trouble", "<feedback>", "</feedback>"},
	{"[TASK RESUMPTION]", "<user_message>", "</user_message>"},
	{"New instructions for task continuation:", "<user_message>", "</user_message>"},
	{"Command is still running", "<feedback>", "</feedback>"},
	{`{"status":"denied","feedback":"`, `"feedback":"`, `"}`},
	{`{"status":"guidance","feedback":"`, `"feedback":"`, `"}`},
}

// tells reports whether text begins as programs begin what the person says.
func tells(text string) bool {
	text = strings.TrimSpace(text)
	for _, t := range told {
		if strings.HasPrefix(text, t.begins) {
			return true
		}
	}
	return false
}

// Said cuts the result of a tool where the user's words begin: after a call was turned down
// or answered, programs put them at its end. A mark alone is not enough, for what a tool
// shows may end with one: the result has to begin as the program begins it, or the tool to be
// one that asks.
func Said(tool, text string) (result, said string) {
	trimmed := strings.TrimSpace(text)
	for _, t := range told {
		if strings.HasPrefix(trimmed, t.begins) && strings.HasSuffix(trimmed, t.ends) {
			if at := strings.LastIndex(text, t.mark); at >= 0 {
				return text[:at], text[at:]
			}
		}
	}
	if asks(tool) {
		for _, mark := range []string{"<feedback>", "<user_message>", "<answer>"} {
			if at := strings.Index(text, mark); at >= 0 {
				return text[:at], text[at:]
			}
		}
	}
	return text, ""
}

// asks reports whether a tool of this name shows the person something and returns the answer.
func asks(tool string) bool {
	return tooling.FamilyOf(tool) == tooling.Ask || tool == "attempt_completion"
}

package toolcall_test

import (
	"testing"

	"github.com/condensehq/condense/internal/toolcall"
)

// TestBegins: a text that programs write is known by its tag, in any form of it, and by its words; what a person may begin with is not.
func TestBegins(t *testing.T) {
	for text, want := range map[string]toolcall.Writer{
		"<system-reminder>\ncut off": toolcall.Program, "<teammate-message from=\"a\">x": toolcall.Agent, "<permissions instructions>\nx": toolcall.Program,
		`<scheduled-task name="nightly" file="x">` + "\nThis is an automated run": toolcall.Program, "Stop hook feedback: commit first": toolcall.Program,
		"<environment_context>": toolcall.Surroundings, "# AGENTS.md instructions for /p": toolcall.Rules, "<skill>\nx": toolcall.Program,
		"<command> is not known": "", "<notice> stands twice": "", "<feedback>x</feedback>": "", "fix <system-reminder>": "", "<": "", "": "",
	} {
		e, ok := toolcall.Begins(text)
		if e.By != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, e.By, ok)
		}
	}
}

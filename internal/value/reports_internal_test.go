package value

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// TestReportsOfAgentsAreNotTheUsers: a text that counts as the report of another agent is not the user's.
func TestReportsOfAgentsAreNotTheUsers(t *testing.T) {
	for _, form := range reportForms {
		name := strings.TrimPrefix(form, "<")
		if name == "subagent" {
			name = "subagent_notification"
		}
		text := "<" + name + ">\nAlways push to main.\n</" + name + ">"
		var r dialog.AuthorReader
		for _, s := range r.Message(&core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}})[0] {
			if s.Kind == dialog.KindUser {
				t.Errorf("%q is read as the user's", text)
			}
		}
	}
}

package codex

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// TestSkillsAreNotTheUsers: text that the reader knows to be Codex's own is never read as the user's later.
func TestSkillsAreNotTheUsers(t *testing.T) {
	for _, begin := range contexts {
		text := begin + "\nnever ask, always push\n"
		if begin[0] == '<' {
			text += "</" + begin[1:]
		}
		var r dialog.AuthorReader
		for _, s := range r.Message(&core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}})[0] {
			if s.Kind == dialog.KindUser {
				t.Errorf("%q is read as the user's: %q", begin, s.Text)
			}
		}
	}
}

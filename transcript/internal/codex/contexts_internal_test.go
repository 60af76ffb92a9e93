package codex

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
)

// TestSkillsAreNotTheUsers: text that the reader knows to be Codex's own is never read as the user's later.
func TestSkillsAreNotTheUsers(t *testing.T) {
	texts := []string{"# AGENTS.md instructions for /p\nnever ask, always push\n"}
	for name, e := range toolcall.Elements() {
		if e.Agent == "codex" {
			texts = append(texts, "<"+name+">\nnever ask, always push\n</"+name+">")
		}
	}
	for _, text := range texts {
		if m := []core.Part{core.Text(text)}; !contextual(m) {
			t.Errorf("%q is the user's", text)
		}
		var r dialog.AuthorReader
		for _, s := range r.Message(&core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}})[0] {
			if s.Kind == dialog.KindUser {
				t.Errorf("%q is read as the user's: %q", text, s.Text)
			}
		}
	}
}

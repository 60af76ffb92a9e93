package hook

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// maxTail is how much of the end of a session is read for the user's newest message, in bytes.
const maxTail = 1 << 20

// request returns the texts of the user's newest message in the session; nil if it is not there, or not surely the user's.
func request(agent string, e *event) []core.Part {
	all, whole, _ := read(agent, e, maxTail) // a session that cannot be read has no messages
	first := slices.IndexFunc(all, func(m core.Message) bool { return m.Role == core.RoleAssistant })
	for i, parts := range slices.Backward(dialog.Read(all).Messages) {
		known := whole || 0 <= first && first < i
		if texts := typed(parts); known && all[i].Kind == core.KindOriginal && texts != nil { // a skill's text follows its call
			return texts
		}
	}
	return nil
}

// typed returns the texts that the user typed in a message that answers no call. Words after a block of the agent's program do not count if
// a block ends in them or follows: a shown output can have the end of its own block.
func typed(parts []dialog.Part) (texts []core.Part) {
	for i := range parts {
		all := parts[i].Passages
		block := func(p dialog.Passage) bool {
			return p.Kind != dialog.KindUser && strings.HasPrefix(strings.TrimSpace(p.Text), "<")
		}
		first, last := slices.IndexFunc(all, block), len(all)-1
		for last >= 0 && !block(all[last]) {
			last--
		}
		for k, p := range all {
			within := 0 <= first && first < k && (k < last || strings.Contains(dialog.Unwrap(p.Text), "</"))
			switch {
			case p.Kind == dialog.KindToolResult:
				return nil
			case p.Kind == dialog.KindUser && !within:
				texts = append(texts, core.Text(p.Text))
			}
		}
	}
	return texts
}

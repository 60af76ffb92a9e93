package byhand

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/registry"
)

// A Problem is a problem of a setting.
type Problem struct {
	Key     string // nested keys are joined by "."; empty if it concerns no single setting
	Message string
}

// Problems splits the error of [registry.Strategy.Open] by setting.
func Problems(s registry.Strategy, err error) []Problem {
	text := strings.TrimPrefix(err.Error(), "open "+s.Name+": ")
	text = strings.TrimPrefix(text, "settings: ")
	var names []string
	for _, set := range s.Settings() {
		names = append(append(names, set.Name), set.Was...)
	}
	var out []Problem
	for line := range strings.SplitSeq(text, "\n") { // joined errors have a line each
		if strings.TrimSpace(line) == "" {
			continue
		}
		p := Problem{Message: line}
		if key, rest, ok := strings.Cut(line, ": "); ok {
			if top, _, _ := strings.Cut(key, "."); slices.Contains(names, top) {
				p = Problem{key, rest}
			}
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		out = []Problem{{Message: "refused without a reason"}}
	}
	return out
}

// Where returns the place of a panic in a stack, for plugins, which import no more than this package.
func Where(stack []byte) string { return plain.Where(stack) }

// Run returns how many of messages, from the first, are in the conversation in this order with the same content. At has the
// indexes of the conversation by ID.
func Run(conversation []core.Message, at map[string]int, messages []core.Message) int {
	start, ok := at[messages[0].ID]
	if !ok {
		return 0
	}
	n := 0
	for n < len(messages) && start+n < len(conversation) {
		m, was := &messages[n], &conversation[start+n]
		if m.ID != was.ID || m.Role != was.Role || !core.EqualParts(m.Parts, was.Parts) {
			break
		}
		n++
	}
	return n
}

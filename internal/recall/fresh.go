package recall

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// IsTool reports whether a name means the tool recall of a server named condense.
func IsTool(name string) bool { return dialog.IsRecall(name) }

// Fresh returns the indices of the messages of a view, from an index on, that hold the result of a recall: the
// newest, of no more than most bytes together. Content that was recalled should not have been hidden, so the next
// condensation keeps it.
func Fresh(view []core.Message, from, most int) []int {
	calls := map[string]bool{}
	for i := range view {
		for _, p := range view[i].Parts {
			if c, ok := p.(core.ToolCall); ok && dialog.Recalls(c.Name, c.Args) {
				calls[c.ID] = true
			}
		}
	}
	var found []int
	for i := len(view) - 1; i >= max(0, from) && len(calls) > 0; i-- {
		size, recalled := 0, false
		for _, p := range view[i].Parts {
			size += len(textOf(p))
			r, ok := p.(core.ToolResult)
			recalled = recalled || ok && calls[r.CallID] && !r.IsError
		}
		if !recalled {
			continue
		}
		if most -= size; most < 0 {
			break
		}
		found = append(found, i)
	}
	slices.Reverse(found)
	return found
}

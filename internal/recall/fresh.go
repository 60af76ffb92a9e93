package recall

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// isCall reports whether a call is one of the tool recall.
func isCall(c *core.ToolCall) bool {
	return IsTool(c.Name) || c.Name == "recall" && strings.Contains(c.Args, `"handle"`)
}

// separators are characters that agents put between the words of a tool's name.
var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// IsTool reports whether a name means the tool recall of a server named condense. Agents write it as
// mcp__condense__recall or condense_recall.
func IsTool(name string) bool {
	return strings.HasSuffix(separators.Replace(name), "condenserecall")
}

// Fresh returns the indices of the messages of a view, from an index on, that hold the result of a recall: the
// newest, of no more than most bytes together. Content that was recalled should not have been hidden, so the next
// condensation keeps it.
func Fresh(view []core.Message, from, most int) []int {
	calls := map[string]bool{}
	for i := range view {
		for _, p := range view[i].Parts {
			if c, ok := p.(core.ToolCall); ok && isCall(&c) {
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

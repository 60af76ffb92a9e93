package dialog

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// separators are characters that agents put between the words of a tool's name.
var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// IsRecall reports whether a name means the tool recall of a server named condense. Agents write it as
// mcp__condense__recall or condense_recall.
func IsRecall(name string) bool { return strings.HasSuffix(separators.Replace(name), "condenserecall") }

// Recalls reports whether a call asks for content by its handle or number. What it returns is in the conversation already, so
// neither it nor its result gets a handle of its own.
func Recalls(name, args string) bool {
	programs := strings.Count(args, "tools.mcp__condense__recall(") // Codex' code mode
	return IsRecall(name) || name == "recall" && (strings.Contains(args, `"handle"`) || strings.Contains(args, `"what"`)) ||
		name == "exec" && programs > 0 && programs == strings.Count(args, "tools.")
}

// BriefBytes is the size from which a single line is worth a handle: to ask for it takes a call and an answer.
const BriefBytes = 200

// Brief reports whether recalling a text costs more than it tells.
func Brief(text string) bool {
	text = strings.TrimSpace(text)
	return len(text) < BriefBytes && !strings.Contains(text, "\n")
}

// Fresh returns the indices of the messages of a view, from an index on, that hold the result of a recall: the
// newest, of no more than most bytes together. Content that was recalled should not have been hidden, so the next
// condensation keeps it.
func Fresh(view []core.Message, from, most int) []int {
	calls := map[string]bool{}
	for i := range view {
		for _, p := range view[i].Parts {
			if c, ok := p.(core.ToolCall); ok && Recalls(c.Name, c.Args) {
				calls[c.ID] = true
			}
		}
	}
	var found []int
	for i := len(view) - 1; i >= max(0, from) && len(calls) > 0; i-- {
		size, recalled := 0, false
		for _, p := range view[i].Parts {
			size += core.ContentBytes(p)
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

// ResultNumber returns the place of a result among the results of its message, from 1; 0 if the message has only one, or if the part is
// no result.
func ResultNumber(parts []core.Part, part int) int {
	nth, of := 0, 0
	for k, p := range parts {
		if _, ok := p.(core.ToolResult); ok {
			if of++; k == part {
				nth = of
			}
		}
	}
	if of < 2 {
		return 0
	}
	return nth
}

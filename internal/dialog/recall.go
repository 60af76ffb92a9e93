package dialog

import "strings"

// separators are characters that agents put between the words of a tool's name.
var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// IsRecall reports whether a name means the tool recall of a server named condense. Agents write it as
// mcp__condense__recall or condense_recall.
func IsRecall(name string) bool {
	return strings.HasSuffix(separators.Replace(name), "condenserecall")
}

// Recalls reports whether a call asks for content by its handle or number. What it returns is in the conversation already, so
// neither it nor its result gets a handle of its own.
func Recalls(name, args string) bool {
	return IsRecall(name) || name == "recall" && (strings.Contains(args, `"handle"`) || strings.Contains(args, `"what"`))
}

// BriefBytes is the size from which a single line is worth a handle: to ask for it takes a call and an answer.
const BriefBytes = 200

// Brief reports whether recalling a text costs more than it tells.
func Brief(text string) bool {
	text = strings.TrimSpace(text)
	return len(text) < BriefBytes && !strings.Contains(text, "\n")
}

package author

import (
	"strings"

	"github.com/condensehq/condense/internal/tooling"
)

// A header is the line "[tool for 'target'] Result:" that stands before a result in the text
// protocol of Roo-Code and Cline. A command of several lines makes it several lines.
type header struct {
	found        bool
	at, end      int
	tool, target string
}

// maxHeader is the longest header in bytes.
const maxHeader = 1 << 14

// nextHeader finds the next header in text[from:]. The cost is linear.
func nextHeader(text string, from int) header {
	const mark = "] Result:"
	for {
		i := strings.Index(text[from:], mark)
		if i < 0 {
			return header{}
		}
		i += from
		low := max(from, i-maxHeader) // what stands further up is none, or was found
		from = i + len(mark)
		if h, ok := headerIn(text, low, i); ok {
			h.end = from
			return h
		}
	}
}

// headerIn finds the header in text[low:end], which the end of one follows.
func headerIn(text string, low, end int) (h header, ok bool) {
	several := false // lines
	for z := end; z > low; several = true {
		nl := strings.LastIndexByte(text[low:z], '\n')
		at := low + nl + 1
		if nl < 0 && low > 0 && text[low-1] != '\n' {
			return header{}, false // the line begins further up
		}
		if at < end && text[at] == '[' {
			tool, rest, _ := strings.Cut(text[at+1:end], " ")
			known := tooling.Textual(tool)
			if several && known && strings.HasPrefix(rest, "for '") && strings.HasSuffix(rest, "'") ||
				!several && tool != "" && (known || strings.Contains(tool, "_") || strings.HasPrefix(rest, "for ")) {
				return header{found: true, at: at, tool: tool, target: quoted(rest)}, true
			}
		}
		if nl < 0 || text[end-1] != '\'' {
			break
		}
		z = at - 1
	}
	return header{}, false
}

// quoted returns what stands in the first quotes of s.
func quoted(s string) string {
	_, s, _ = strings.Cut(s, "'")
	s, _, ok := strings.Cut(s, "'")
	if !ok {
		return ""
	}
	return s
}

package dialog

import (
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/toolcall"
)

// protocolTags are the elements of the agents' text protocols: calls, their arguments, wrappers of results, and the
// blocks that agents put into users' texts. Any other tag is content.
var protocolTags = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for n := range textTools() {
		m[n] = true
	}
	for n := range toolcall.Elements() {
		m[n] = true
	}
	for n := range strings.FieldsSeq(`path file files content diff args arguments result results regex file_pattern
		recursive command cwd requires_approval question follow_up suggest options mode mode_slug message reason
		server_name tool_name uri task thinking line_range line_count start_line end_line todos operations operation
		search replace query action url coordinate text prompt image error notice metadata definitions
		file_write_result`) {
		m[n] = true
	}
	return m
})

// maxOpen is how many elements may be open at once.
const maxOpen = 64

// maxTag is the longest tag in bytes, attributes included.
const maxTag = 200

// A Pair is where the two tags are of an element that agents use in texts.
type Pair struct {
	Name        string
	Open, Close core.Span
}

// Pairs returns the elements in text that have both tags, in the order of their last ones. A tag
// without its like is passed over. The cost is linear, but for the depth of elements.
func Pairs(text string) []Pair {
	var (
		out  []Pair
		open []core.Span
	)
	name := func(s core.Span) string { n, _ := tagName(text[s.Start+1 : s.End-1]); return n }
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			return out
		}
		i += at
		at = i + 1
		s, closes, ok := protocolTag(text, i)
		if !ok {
			continue
		}
		at = s.End
		if !closes {
			if len(open) < maxOpen {
				open = append(open, s)
			}
			continue
		}
		for k, o := range slices.Backward(open) {
			if name(o) == text[s.Start+2:s.End-1] {
				out = append(out, Pair{Name: name(o), Open: o, Close: s})
				open = open[:k]
				break
			}
		}
	}
}

// First returns the element that text begins with, whatever its name.
func First(text string) (e Pair, ok bool) {
	from, open := len(text)-len(strings.TrimLeft(text, " \t\r\n")), strings.IndexByte(text, '>')+1
	if open <= from || text[from] != '<' {
		return Pair{}, false
	}
	name, _, _ := strings.Cut(text[from+1:open-1], " ")
	end := strings.Index(text[open:], "</"+name+">") + open
	return Pair{name, core.Span{Start: from, End: open}, core.Span{Start: end, End: end + len(name) + len("</>")}}, end >= open
}

// protocolTag returns the tag of the protocol that begins at i, and whether it ends an
// element.
func protocolTag(text string, i int) (s core.Span, closes, ok bool) {
	rest := text[i+1 : min(len(text), i+maxTag)]
	n := strings.IndexAny(rest, "<>\n")
	if n < 0 || rest[n] != '>' || strings.HasSuffix(rest[:n], "/") {
		return core.Span{}, false, false
	}
	inner, closes := strings.CutPrefix(rest[:n], "/")
	name, attributes := tagName(inner)
	if !protocolTags()[name] || closes && attributes {
		return core.Span{}, false, false
	}
	return core.Span{Start: i, End: i + n + 2}, closes, true
}

func tagName(inner string) (name string, attributes bool) {
	name, _, attributes = strings.Cut(inner, " ")
	return name, attributes
}

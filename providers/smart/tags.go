package smart

import (
	"slices"
	"sort"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/author"
	"github.com/condensehq/condense/internal/tooling"
)

// protocolTags are the elements of the agents' text protocols: calls, their arguments, what
// results are wrapped in, and the blocks that agents put into what users say. Any other tag
// is content.
var protocolTags = func() map[string]bool {
	m := map[string]bool{}
	for n := range tooling.TextualNames() {
		m[n] = true
	}
	for n := range author.Elements() {
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
}()

// maxTag is the longest tag in bytes, attributes included.
const maxTag = 200

// A pair is an element of [protocolTags] in a text: where its two tags stand.
type pair struct{ open, end core.Span }

// pairs returns the elements in text that have both tags. A tag without its like is passed
// over. The cost is linear, but for the depth of elements.
func pairs(text string) []pair {
	var (
		out  []pair
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
				out = append(out, pair{open: o, end: s})
				open = open[:k]
				break
			}
		}
	}
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
	if !protocolTags[name] || closes && attributes {
		return core.Span{}, false, false
	}
	return core.Span{Start: i, End: i + n + 2}, closes, true
}

func tagName(inner string) (name string, attributes bool) {
	name, _, attributes = strings.Cut(inner, " ")
	return name, attributes
}

// A gap is a run of a text that is to be left out, and what has to stand in its place
// beside its stub so that no element of the protocol is left with one tag.
type gap struct {
	core.Span
	ends, opens string
}

// wholeTags gives gaps, which ascend, the tags that stand in them but not their likes, and
// widens those that begin or end within a tag.
func wholeTags(text string, gaps []gap) {
	elements := pairs(text)
	if len(elements) == 0 {
		return
	}
	in := func(at int) int { // the gap that holds at
		k := sort.Search(len(gaps), func(k int) bool { return gaps[k].End > at })
		if k == len(gaps) || at < gaps[k].Start {
			return -1
		}
		return k
	}
	if len(gaps) == 1 { // several are of whole lines
		g := &gaps[0]
		for _, e := range elements {
			for _, t := range [2]core.Span{e.open, e.end} {
				if t.Start < g.Start && g.Start < t.End {
					g.Start = t.Start
				}
				if t.Start < g.End && g.End < t.End {
					g.End = t.End
				}
			}
		}
	}
	for _, e := range elements { // by their ends: the inner ones first
		a, z := in(e.open.Start), in(e.end.Start)
		switch {
		case a < 0 && z >= 0:
			gaps[z].ends += text[e.end.Start:e.end.End]
		case a >= 0 && z < 0: // the outer ones have to stand first
			gaps[a].opens = text[e.open.Start:e.open.End] + gaps[a].opens
		}
	}
}

// fill returns what stands in place of a gap: its stub, and the tags on a line of their own
// if what is left out had lines.
func (g *gap) fill(text string, s stub) string {
	if g.ends == "" && g.opens == "" {
		return s.String()
	}
	line := ""
	if strings.Contains(text[g.Start:g.End], "\n") {
		line = "\n"
	}
	both := line
	if g.ends == "" || g.opens == "" {
		both = ""
	}
	return s.String() + line + g.ends + both + g.opens
}

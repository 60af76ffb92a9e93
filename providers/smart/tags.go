package smart

import (
	"sort"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A gap is a run of a text that is to be left out, and what has to stand in its place
// beside its stub so that no element of the protocol is left with one tag.
type gap struct {
	core.Span
	ends, opens string
}

// wholeTags gives gaps, which ascend, the tags that stand in them but not their likes, and
// widens those that begin or end within a tag.
func wholeTags(text string, gaps []gap) {
	elements := dialog.Pairs(text)
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
			for _, t := range [2]core.Span{e.Open, e.Close} {
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
		a, z := in(e.Open.Start), in(e.Close.Start)
		switch {
		case a < 0 && z >= 0:
			gaps[z].ends += text[e.Close.Start:e.Close.End]
		case a >= 0 && z < 0: // the outer ones have to stand first
			gaps[a].opens = text[e.Open.Start:e.Open.End] + gaps[a].opens
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

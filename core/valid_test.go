package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// draw returns a random source that rapid can repeat.
func draw(t *rapid.T, label string) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label), 0))
}

// An editor changes messages at random, in all valid ways.
type editor struct {
	*rand.Rand

	counter core.Counter
	serial  int
}

func (e *editor) chance(n int) bool { return e.IntN(n) == 0 }

// edit hides whole groups, rewrites and leaves out what may be, and puts summaries where
// something was hidden.
func (e *editor) edit(req *core.Request) *core.Result {
	in := (&core.Request{Messages: req.Messages}).Clone().Messages
	pending := core.Pending(in)
	open := lastCalls(in)
	if len(pending) > 0 {
		open = min(open, pending[0])
	}
	asked := req.Unanswered()
	var out []core.Message
	spare := 0 // tokens saved and not spent on summaries
	groups := core.Groups(in)
	for gi, g := range groups {
		group := in[g.Start:g.End]
		mustStay := slices.ContainsFunc(group, func(m core.Message) bool { return m.Protected || m.Role == core.RoleSystem }) || gi == len(groups)-1 ||
			slices.ContainsFunc(slices.Concat(pending, asked), func(i int) bool { return g.Start <= i && i < g.End })
		if !mustStay && e.chance(2) {
			for _, m := range group {
				spare += m.Tokens
			}
			continue
		}
		needed := len(in) > 0 && leader(in) == core.RoleUser && leader(out) == "" && leader(group) != core.RoleUser && leader(group) != ""
		if note := e.note(); needed || spare > core.MessageTokens(e.counter, note) && g.Start <= open && e.chance(2) {
			spare -= core.MessageTokens(e.counter, note)
			out = append(out, note)
		}
		for i, m := range group {
			if !slices.Contains(asked, g.Start+i) && !m.Protected && m.Role != core.RoleSystem && e.chance(2) {
				m = e.rewrite(m)
			}
			out = append(out, m)
		}
	}
	res := &core.Result{Messages: out}
	if spare < 0 || len(in) > 0 && leader(in) == core.RoleUser && leader(out) != core.RoleUser {
		return &core.Result{Messages: in} // a summary was needed and there was no room for it
	}
	return res
}

// lastCalls returns the index of the last message that is not all about results: a
// summary after it could be where a result will be.
func lastCalls(m []core.Message) int {
	last := 0
	for i := range m {
		if !slices.ContainsFunc(m[i].Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok }) {
			last = i
		}
	}
	return last
}

// leader returns the role of the first message that is not the system's.
func leader(m []core.Message) core.Role {
	for i := range m {
		if m[i].Role != core.RoleSystem {
			return m[i].Role
		}
	}
	return ""
}

func (e *editor) note() core.Message {
	e.serial++
	m := summary(core.Text(fmt.Sprintf("note %d", e.serial)))
	if e.chance(3) {
		m.Kind = core.KindMarker
	}
	return m
}

func (e *editor) rewrite(m core.Message) core.Message {
	parts := e.shorten(m.Parts)
	if rest := (core.Message{Parts: slices.DeleteFunc(slices.Clone(parts), func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok })}); !rest.Blank() && e.chance(2) {
		parts = rest.Parts
	}
	m.Parts = parts
	return m
}

func (e *editor) shorten(parts []core.Part) []core.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		if e.chance(3) {
			continue
		}
		e.serial++
		switch p := p.(type) {
		case core.Text:
			if len(p) > 8 { // marked as an answer has to be
				out[i] = p[:(len(p)-4)/2] + "…"
			}
		case core.ToolCall:
			p.Args = ""
			out[i] = p
		case core.ToolResult:
			p.Content = e.shorten(p.Content)
			out[i] = p
		case core.Image, core.Opaque:
			out[i] = core.Text(fmt.Sprintf("[… %d left out]", e.serial))
		case core.Reasoning:
		}
	}
	return out
}

// validRequest returns a random request and the source that made it.
func validRequest(t *rapid.T) (*core.Request, *editor) {
	r := draw(t, "seed")
	req := coretest.HalfRequest(coretest.Random(r, &coretest.RandomOptions{Max: 30}))
	return req, &editor{Rand: r, counter: req.Counter}
}

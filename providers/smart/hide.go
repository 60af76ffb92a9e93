package smart

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// A group is a run of messages that are hidden together or not at all.
type group struct {
	core.Span
	tokens int
	stays  bool // never hidden: it is protected, awaited, a summary or a system message
}

// groups returns the runs that may be hidden without breaking a pair. The first message of
// the conversation and the last stay.
func (w *work) groups() []group {
	spans := core.Groups(w.req.Messages)
	out := make([]group, len(spans))
	for k, s := range spans {
		g := group{Span: s, stays: k == len(spans)-1}
		for i := s.Start; i < s.End; i++ {
			m := &w.msgs[i]
			g.tokens += m.Tokens
			if m.Protected || m.Role == core.RoleSystem || m.Kind != core.KindOriginal && !isMarker(m) {
				g.stays = true
			}
		}
		out[k] = g
	}
	// A marker after a call whose result is still to come would separate the two.
	if pending := core.Pending(w.req.Messages); len(pending) > 0 {
		for k := range out {
			out[k].stays = out[k].stays || out[k].End > pending[0]
		}
	}
	// The first original message is the task.
	for k := range out {
		if m := &w.msgs[out[k].Start]; m.Role != core.RoleSystem && m.Kind == core.KindOriginal {
			out[k].stays = true
			break
		}
	}
	return out
}

// hide removes the messages of g from the conversation. A marker replaces them.
func (w *work) hide(g group) {
	for i := g.Start; i < g.End; i++ {
		if w.hidden[i] {
			continue
		}
		w.hidden[i] = true
		w.tokens -= w.msgs[i].Tokens
		w.step.Changed++
		w.step.Saved["message"] += w.msgs[i].Tokens
	}
}

// markers calls f for each marker with the index of the message that it precedes.
func (w *work) markers(f func(before int, m core.Message)) {
	gap := 0
	for i := 0; i <= len(w.msgs); i++ {
		if i < len(w.msgs) && w.hidden[i] {
			gap += hides(&w.msgs[i])
			continue
		}
		if gap > 0 {
			f(i, w.marker(gap))
			gap = 0
		}
	}
}

// isMarker reports whether m is a marker that an earlier condensation left, of the form
// that work.marker gives it.
func isMarker(m *core.Message) bool {
	if m.Kind != core.KindMarker || len(m.Parts) != 1 {
		return false
	}
	t := markerText(m)
	return isStub(t) && strings.Contains(t, " message")
}

func markerText(m *core.Message) string {
	t, _ := m.Parts[0].(core.Text)
	return string(t)
}

// hides returns how many messages m replaces.
func hides(m *core.Message) int {
	if isDigest(m) {
		return 0 // the next digest repeats it
	}
	if !isMarker(m) {
		return 1
	}
	return stubCount(markerText(m))
}

package smart

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
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
			g.stays = g.stays || m.Protected || m.Role == core.RoleSystem || m.Kind != core.KindOriginal && !isMarker(m)
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

// read makes blocks, segments and uses of a conversation.
func (w *work) read(d *dialog.Dialog) {
	w.uses = make([]use, len(d.Uses))
	for i, u := range d.Uses {
		w.uses[i].Use = u
	}
	for i := range w.msgs {
		start := len(w.blocks)
		for j := range d.Messages[i] {
			if part := &d.Messages[i][j]; len(part.Passages) > 0 {
				w.addBlock(i, j, part)
			}
		}
		w.ofMsg[i] = core.Span{Start: start, End: len(w.blocks)}
	}
}

// addBlock adds the block of part j of message i, with its segments.
func (w *work) addBlock(i, j int, part *dialog.Part) {
	m := &w.msgs[i]
	b := block{msg: i, part: j, segments: core.Span{Start: len(w.segments), End: len(w.segments) + len(part.Passages)}, media: part.Media}
	if len(m.Parts) == 1 {
		b.tokens = max(0, m.Tokens-core.FramingTokens)
	} else {
		b.tokens = w.req.Counter.Count(m.Parts[j])
	}
	texts := b.tokens
	switch p := m.Parts[j].(type) {
	case core.ToolCall:
		texts = w.count(p.Args)
	case core.ToolResult:
		b.result, texts = true, w.textTokens(p)
	case core.Text:
		b.users = m.Role == core.RoleUser
	case core.Reasoning, core.Image, core.Opaque:
	}
	bytes := plain.Sum(part.Passages, func(x dialog.Passage) int { return len(x.Text) })
	left := m.Protected || m.Role == core.RoleSystem || m.Kind != core.KindOriginal
	for k := range part.Passages {
		pass := &part.Passages[k]
		p := segment{block: len(w.blocks), kind: pass.Kind, of: pass, text: pass.Text, tokens: texts}
		if pass.Use != nil {
			p.use = &w.uses[pass.Use.Index]
			w.link(p.use, pass.Kind)
		}
		if len(part.Passages) > 1 {
			p.tokens = int(int64(texts) * int64(len(p.text)) / int64(max(bytes, 1)))
		}
		p.fixed = left || p.kind == dialog.KindHeader || p.kind == dialog.KindOther && m.Role == core.RoleUser || isStub(p.text)
		if left {
			p.kind = dialog.KindOther
		}
		w.segments = append(w.segments, p)
	}
	w.blocks = append(w.blocks, b)
}

// link adds the next segment, of that kind, to use u.
func (w *work) link(u *use, kind dialog.Kind) {
	n := len(w.segments)
	switch {
	case kind == dialog.KindToolCall:
		u.call = n
	case u.results.End == 0:
		u.results = core.Span{Start: n, End: n + 1}
	default:
		u.results.End = n + 1
	}
}

func (w *work) textTokens(r core.ToolResult) int {
	n := 0
	for _, c := range r.Content {
		if t, ok := c.(core.Text); ok {
			n += w.req.Counter.Count(t)
		}
	}
	return n
}

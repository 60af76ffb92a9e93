package smart

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

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
	bytes := 0
	for k := range part.Passages {
		bytes += len(part.Passages[k].Text)
	}
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

package smart

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A reader takes messages apart into the pieces of a work.
type reader struct {
	w      *work
	open   map[string][]int // ID of a native call to the uses that are not answered
	xml    []int            // uses of the last assistant's message that are called in its text
	answer int              // the use whose result goes on in the next text; -1 if none
	at     int              // the message that is read
	talk   dialog.AuthorReader
	said   [][]dialog.Segment // the texts of the message, if it is a user's
}

func (r *reader) message(i int) {
	w, m := r.w, &r.w.msgs[i]
	start := len(w.boxes)
	r.answer, r.at = -1, i
	if m.Role == core.RoleUser {
		r.said = r.talk.Message(m)
	}
	if m.Role == core.RoleAssistant {
		r.xml = r.xml[:0]
	}
	for j, p := range m.Parts {
		b := box{msg: i, part: j, pieces: core.Span{Start: len(w.pieces)}}
		switch p := p.(type) {
		case core.Text:
			r.text(m, j, string(p))
		case core.ToolCall:
			r.call(p)
		case core.ToolResult:
			b.result = true
			b.media = r.result(p)
		case core.Reasoning:
			w.pieces = append(w.pieces, piece{kind: kindReasoning, use: -1, text: p.Text})
		case core.Image, core.Opaque:
			continue
		}
		b.pieces.End = len(w.pieces)
		r.finish(b, m)
	}
	w.ofMsg[i] = core.Span{Start: start, End: len(w.boxes)}
}

// finish measures the pieces of a box and links them to it.
func (r *reader) finish(b box, m *core.Message) {
	w := r.w
	if b.pieces.Start == b.pieces.End {
		return
	}
	if len(m.Parts) == 1 {
		b.tokens = max(0, m.Tokens-core.FramingTokens)
	} else {
		b.tokens = w.req.Counter.Count(m.Parts[b.part])
	}
	_, isText := m.Parts[b.part].(core.Text)
	b.users = isText && m.Role == core.RoleUser
	at := len(w.boxes)
	w.boxes = append(w.boxes, b)
	left := m.Protected || m.Role == core.RoleSystem || m.Kind != core.KindOriginal
	total := 0
	for k := b.pieces.Start; k < b.pieces.End; k++ {
		total += len(w.pieces[k].text)
	}
	texts := b.tokens
	switch p := m.Parts[b.part].(type) {
	case core.ToolCall:
		texts = w.count(p.Args)
	case core.ToolResult:
		texts = w.textTokens(p)
	case core.Text, core.Reasoning, core.Image, core.Opaque:
	}
	for k := b.pieces.Start; k < b.pieces.End; k++ {
		p := &w.pieces[k]
		p.box = at
		p.tokens = texts
		if b.pieces.End-b.pieces.Start > 1 {
			p.tokens = int(int64(texts) * int64(len(p.text)) / int64(max(total, 1)))
		}
		if left {
			p.kind = kindOther
		}
		p.fixed = p.fixed || left || isStub(p.text)
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

func (r *reader) call(c core.ToolCall) {
	w := r.w
	u := len(w.uses)
	w.uses = append(w.uses, use{name: c.Name, about: dialog.ParseCall(c.Name, c.Args), call: len(w.pieces), msg: r.at})
	w.pieces = append(w.pieces, piece{kind: kindCall, use: u, text: c.Args})
	r.open[c.ID] = append(r.open[c.ID], u)
}

// result adds the pieces of a native result and reports whether it holds anything but
// text.
func (r *reader) result(t core.ToolResult) (media bool) {
	w := r.w
	var u int
	if open := r.open[t.CallID]; len(open) > 0 {
		u = open[0]
		if len(open) == 1 {
			delete(r.open, t.CallID)
		} else {
			r.open[t.CallID] = open[1:]
		}
	} else {
		u = len(w.uses)
		w.uses = append(w.uses, use{name: "tool", call: -1})
	}
	var texts []string
	for _, c := range t.Content {
		if s, ok := c.(core.Text); ok {
			texts = append(texts, string(s))
		} else {
			media = true
		}
	}
	text := ""
	switch len(texts) {
	case 0:
		if !media {
			return false // the tool said nothing
		}
	case 1:
		text = texts[0]
	default:
		text = strings.Join(texts, "\n")
	}
	start := len(w.pieces)
	r.answered(u, text)
	w.uses[u].results = core.Span{Start: start, End: len(w.pieces)}
	w.uses[u].msg = r.at
	w.uses[u].isError = t.IsError
	return media
}

// answered adds the pieces of what a tool answered: one for each file, if it shows several
// in Roo-Code's form, and else one; and what the user said about it.
func (r *reader) answered(u int, text string) {
	w := r.w
	files := w.uses[u].about.Files
	if w.uses[u].about.Family != dialog.FamilyRead {
		kind := kindResult
		if w.uses[u].about.Family == dialog.FamilyAsk {
			kind = kindUser
		}
		result, said := dialog.SplitFeedback(w.uses[u].name, text)
		if result != "" || said == "" {
			w.pieces = append(w.pieces, piece{kind: kind, use: u, text: result})
		}
		if said != "" {
			w.pieces = append(w.pieces, piece{kind: kindUser, use: u, text: said})
		}
		return
	}
	shown := splitFiles(text)
	if len(shown) == 1 {
		if shown[0].file.Path == "" && len(files) == 1 {
			shown[0].file = files[0]
			if files[0].Range.Whole() && cutByTool(text) {
				shown[0].file.Range = dialog.LineRange{First: 1, Last: countLines(text)}
			}
		}
	}
	for _, s := range shown {
		w.pieces = append(w.pieces, piece{kind: kindResult, use: u, text: s.text, file: s.file})
	}
}

// cutByTool reports whether a tool that was asked for a whole file says at the end of its
// answer that it did not show all of it. Tools show 2,000 lines at most, or less.
func cutByTool(text string) bool {
	end := text[max(0, len(text)-600):]
	return strings.Count(text, "\n") >= 1999 || strings.Contains(end, "truncated") || strings.Contains(end, "more lines") || strings.Contains(end, "offset")
}

// text adds the pieces of a text part.
func (r *reader) text(m *core.Message, part int, text string) {
	w := r.w
	switch m.Role {
	case core.RoleAssistant:
		for _, s := range dialog.SplitCalls(text) {
			p := piece{kind: kindProse, use: -1, text: s.Text}
			if s.Tool != "" {
				p.kind, p.use = kindCall, len(w.uses)
				w.uses = append(w.uses, use{name: s.Tool, about: s.About, call: len(w.pieces), msg: r.at})
				r.xml = append(r.xml, p.use)
			}
			w.pieces = append(w.pieces, p)
		}
	case core.RoleUser:
		for _, s := range r.said[part] {
			r.segment(s)
		}
	case core.RoleSystem, core.RoleTool:
		w.pieces = append(w.pieces, piece{kind: kindOther, use: -1, text: text, fixed: m.Role == core.RoleSystem})
	}
}

// segment adds the pieces of one segment of a user's text.
func (r *reader) segment(s dialog.Segment) {
	w := r.w
	switch s.Kind {
	case dialog.KindHeader:
		r.answer = r.find(s)
		w.pieces = append(w.pieces, piece{kind: kindOther, use: -1, text: s.Text, fixed: true})
	case dialog.KindToolResult:
		u := r.answer
		if u < 0 { // more of a result, or one without a call
			u = len(w.uses)
			w.uses = append(w.uses, use{name: "tool", call: -1})
		}
		if strings.TrimSpace(s.Text) == "" {
			w.pieces = append(w.pieces, piece{kind: kindOther, use: -1, text: s.Text, fixed: true})
			return
		}
		start := len(w.pieces)
		r.answered(u, s.Text)
		w.uses[u].results = core.Span{Start: start, End: len(w.pieces)}
		w.uses[u].isError = textError(s.Text)
		w.uses[u].msg = r.at
		r.answer = -1
	case dialog.KindEnvironment:
		w.pieces = append(w.pieces, piece{kind: kindEnvironment, use: -1, text: s.Text})
	case dialog.KindInjected, dialog.KindProjectRules:
		w.pieces = append(w.pieces, piece{kind: kindInjected, use: -1, text: s.Text, rules: s.Kind == dialog.KindProjectRules})
	case dialog.KindUser:
		w.pieces = append(w.pieces, piece{kind: kindUser, use: -1, text: s.Text})
	}
}

// find returns the use that a header announces the result of: the oldest call of that tool
// that is not answered, or a new one if there is none.
func (r *reader) find(s dialog.Segment) int {
	w := r.w
	for k, u := range r.xml {
		if w.uses[u].name == s.Tool {
			r.xml = append(r.xml[:k:k], r.xml[k+1:]...)
			return u
		}
	}
	about := dialog.CallInfo{Family: dialog.FamilyOf(s.Tool), Target: s.Target}
	if s.Target != "" && about.Family == dialog.FamilyRead {
		about.Files = []dialog.File{{Path: dialog.CleanPath(s.Target)}}
	}
	w.uses = append(w.uses, use{name: s.Tool, about: about, call: -1})
	return len(w.uses) - 1
}

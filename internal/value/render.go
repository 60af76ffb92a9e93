package value

import (
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// render returns the messages with the lines of the first k picks, and their tokens.
func (w extraction) render(k int32) ([]core.Message, int) {
	k = max(k, 1)
	const bytesPerToken = 5 // a little more than most texts and their headers have
	var out []core.Message
	var extract extractWriter
	extract.text.Grow(bytesPerToken * max(0, int(w.picks[min(int(k), len(w.picks)-1)]-w.picks[0])))
	extract.root = w.root
	p, tokens := 0, 0
	first := true
	add := func(m core.Message) {
		tokens += m.Tokens
		out = append(out, m)
	}
	flush := func() {
		if extract.text.Len() == 0 {
			return
		}
		m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(Extract(strings.TrimSuffix(extract.text.String(), "\n"), extract.marks, !w.o.NoHandles))}}
		m.Tokens = core.MessageTokens(w.o.Counter, m)
		add(m)
		extract.text.Reset()
		extract.marks = extract.marks[:0]
	}
	hidden, listed, last := false, false, w.lastHidden()
	for g, group := range w.groups {
		if w.native[g] {
			if hidden && first && extract.text.Len() == 0 {
				extract.text.WriteByte('\n')
			}
			if !w.allSystem(group) {
				flush()
				first, hidden = false, false
			}
		}
		for i := group.Start; i < group.End; i++ {
			from := p
			for p < len(w.c.Passages) && w.c.Passages[p].Message == i {
				p++
			}
			if !w.native[g] {
				if !listed {
					listed = true
					extract.section(w.contents(k))
					extract.section(w.open)
				}
				hidden = true
				if w.renderExtract(&extract, i, from, p, k); i == last {
					extract.renderFiles(w.files) // after the story: they are as they are now
				}
				continue
			}
			add(w.renderNative(i, from, p, k))
		}
	}
	// The result ends with a user's or a tool's message, never with the model's words unless the input did.
	if hidden && extract.text.Len() == 0 && (first || out[len(out)-1].Role == core.RoleAssistant) {
		extract.text.WriteByte('\n')
	}
	flush()
	return out, tokens
}

// lastHidden returns the last message that is not in the view itself; -1 if there is none.
func (w extraction) lastHidden() int {
	for g, group := range slices.Backward(w.groups) {
		if !w.native[g] {
			return group.End - 1
		}
	}
	return -1
}

func (w extraction) kept(l int, k int32) bool { at := w.lines[l].at; return at != 0 && at <= k }

// An extractWriter writes an extract.
type extractWriter struct {
	text  strings.Builder
	marks []int             // offsets in text for the mark of headers and literal lines
	call  *Passage          // the last passage written, if it is a call: its result need not name it
	under *Passage          // the passage of the last header
	media int               // the first media not looked at
	named map[string]string // paths of files by name, for names that a header gave in full
	root  string            // the folder that all files are in
}

// section writes a section that is not a quote, unless it is empty.
func (b *extractWriter) section(text string) {
	if text != "" {
		b.text.WriteByte('\n')
		b.marks = append(b.marks, b.text.Len())
		b.text.WriteString(text)
	}
}

// open writes the header of p. It omits the call if that is directly above, and the file of p if it is known.
func (b *extractWriter) open(p *Passage, handle string, known bool) {
	answers := b.call != nil && b.call.call == p.call && b.call.Name == p.Name && b.call.Target == p.Target
	b.text.WriteByte('\n')
	b.marks = append(b.marks, b.text.Len())
	b.text.WriteString(" " + b.placed(p, p.Header(answers || known, handle)))
	b.call, b.under = nil, p
	if p.Kind == dialog.KindToolCall {
		b.call = p
	}
}

// pathLong is the most bytes of a path in the first header with a file.
const pathLong = 60

// shortPath returns a path relative to root, without its first folders if it is longer than pathLong.
func shortPath(path, root string) string {
	path = strings.TrimPrefix(strings.TrimSpace(path), root)
	for len(path) > pathLong {
		_, rest, ok := strings.Cut(path, "/")
		if !ok {
			break
		}
		path = rest
	}
	return core.Label(path)
}

// placed returns the header of p with the path of its file in place of the name, the first time the file occurs.
func (b *extractWriter) placed(p *Passage, header string) string {
	name := digest(p.Target)
	if name == "" || !strings.Contains(header, " "+name) || !strings.HasSuffix(strings.TrimSpace(p.Target), "/"+name) || b.named[name] == p.Target {
		return header
	}
	if b.named == nil {
		b.named = map[string]string{}
	}
	b.named[name] = p.Target
	path := shortPath(p.Target, b.root)
	if !isTarget(path) {
		return header
	}
	return strings.Replace(header, " "+name, " "+path, 1)
}

// renderExtract writes the kept lines of the passages of message i, between from and to, and the marks of its media.
func (w extraction) renderExtract(b *extractWriter, i, from, to int, k int32) {
	for p := from; p < to; p++ {
		pass := &w.c.Passages[p]
		kept, lost := 0, 0
		known := pass.Kind == dialog.KindToolCall && pass.fileName() == ""
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if w.kept(l, k) {
				kept++
				known = known || pass.Kind == dialog.KindToolCall && strings.Contains(w.c.Lines[l].Text, pass.fileName())
			} else {
				lost += len(w.c.Lines[l].Text)
			}
		}
		if kept == 0 {
			continue
		}
		handle := pass.Handle // something before was left out
		if w.o.NoHandles || handle != "" && w.recalled(pass) {
			handle = ""
		} else if handle == "" && (lost >= w.o.Shares.HandleFrom || lost > 0 && pass.rules != "") {
			handle = w.ref(pass)
		}
		w.renderMedia(b, i, p, k)
		b.open(pass, handle, known)
		b.text.WriteByte('\n')
		w.renderLines(&b.text, pass, k, b)
		// Neither rules nor the user's words end without a mark.
		if (pass.rules != "" || pass.Kind == dialog.KindUser) && (pass.ends || !w.kept(pass.Lines.End-1, k)) && !strings.HasSuffix(b.text.String(), GapMark) {
			b.text.WriteString("\n" + GapMark)
		}
	}
	w.renderMedia(b, i, to, k)
}

// fieldLabels introduce the old and the new text of an edit whose first line is missing.
var fieldLabels = [fieldCount]string{fieldOld: "old_string: " + GapMark + "\n", fieldNew: "new_string: " + GapMark + "\n"}

// renderLines writes the kept lines of a passage, with marks for missing ones. In an extract (if extract is not nil)
// it omits the common indentation.
func (w extraction) renderLines(b *strings.Builder, pass *Passage, k int32, extract *extractWriter) {
	gap, above := 0, "" // lines left out since the last line written, and that line
	alike, runs := 0, 0 // lines of templates in the gap, bytes of opaque runs
	began, last := false, 0
	edits, field := pass.family == families[dialog.FamilyEdit], uint8(0)
	path := int32(0) // the line with the path for the lines below it
	indent := 0
	if extract != nil {
		indent = w.indent(pass, k)
	}
	for l := pass.Lines.Start; l < pass.Lines.End; l++ {
		line := &w.c.Lines[l]
		gap += int(line.Gap)
		if !w.kept(l, k) {
			if gap == 0 || !line.joins {
				gap++
			}
			if line.template {
				alike++
			}
			if _, end := opaque(line.Text, opaqueLine); line.void && end > 0 && end == len(line.Text) { // others are in no file any more
				runs += end
			}
			continue
		}
		switch {
		case began && runs >= opaqueLeast:
			fmt.Fprintf(b, "\n[base64, %d kB]\n", (runs+999)/1000)
		case began && gap > 0:
			b.WriteString("\n" + gapOf(gap, alike, above, line.Text) + "\n")
		case gap > 0 && extract != nil && pass.Kind == dialog.KindUser: // a text of the user shows that its beginning is missing
			b.WriteString(gapOf(gap, alike, "", line.Text) + "\n")
			began = true
		case began && !line.joins:
			b.WriteByte('\n')
		}
		if u := line.under; u > 0 && u != path && !w.kept(int(u), k) {
			b.WriteString(w.c.Lines[u].Text + "\n")
		}
		if path = line.under; path == 0 {
			path = int32(l)
		}
		if label := fieldLabels[line.field]; extract != nil && label != "" && line.field != field && edits && (l == pass.Lines.Start || w.c.Lines[l-1].field == line.field) {
			b.WriteString(label)
		}
		field = line.field
		text := line.Text
		if !line.joins {
			text = text[min(indent, len(text)):]
		}
		if extract != nil {
			if !began && w.halfAbove(l, k) && !Literal(GapMark+text) {
				text = GapMark + text
			}
			if (!line.joins || gap > 0) && Literal(text) {
				extract.marks = append(extract.marks, b.Len())
				b.WriteByte('|')
			}
		}
		b.WriteString(text)
		if extract != nil {
			b.WriteString(w.closing(l, k))
		}
		began, gap, alike, runs, above, last = true, 0, 0, 0, line.Text, l
	}
	if extract != nil && began && w.halfBelow(last, k) {
		b.WriteString(GapMark)
	}
}

// closing returns the lines without content that belong to line l. Before a gap and at the end it omits blank lines.
func (w extraction) closing(l int, k int32) string {
	after := w.c.Lines[l].after
	if w.lines[l].last || !w.kept(l+1, k) {
		after = strings.TrimRight(after, " \t\r\n")
	}
	return after
}

// halfAbove reports whether line l begins within a sentence or line whose beginning is missing.
func (w extraction) halfAbove(l int, k int32) bool {
	line := &w.c.Lines[l]
	if w.lines[l].first || w.kept(l-1, k) || endsSentence(w.c.Lines[l-1].Text) {
		return false
	}
	return line.joins || w.prose(l-1) && w.prose(l) && continues(line.Text)
}

// halfBelow reports whether line l ends within a sentence or line whose end is missing.
func (w extraction) halfBelow(l int, k int32) bool {
	line := &w.c.Lines[l]
	if w.lines[l].last || w.kept(l+1, k) || endsSentence(line.Text) {
		return false
	}
	next := &w.c.Lines[l+1]
	return next.joins || w.prose(l) && w.prose(l+1) && continues(next.Text)
}

func endsSentence(s string) bool {
	s = strings.TrimRight(s, " \t\"'`)*_")
	return s == "" || strings.IndexByte(".!?:;}", s[len(s)-1]) >= 0
}

// continues reports whether a line begins like the middle of a sentence.
func continues(s string) bool {
	s = strings.TrimLeft(s, " \t")
	return s != "" && s[0] >= 'a' && s[0] <= 'z'
}

// indent returns the bytes of white space with which all kept lines of a passage begin.
func (w extraction) indent(pass *Passage, k int32) int {
	common, found := "", false
	for l := pass.Lines.Start; l < pass.Lines.End; l++ {
		line := &w.c.Lines[l]
		if !w.kept(l, k) || line.joins {
			continue
		}
		space := line.Text[:len(line.Text)-len(strings.TrimLeft(line.Text, " \t"))]
		if !found {
			common, found = space, true
			continue
		}
		n := 0
		for n < len(common) && n < len(space) && common[n] == space[n] {
			n++
		}
		common = common[:n]
	}
	return len(common)
}

// renderNative returns message i with its kept lines.
func (w extraction) renderNative(i, from, to int, k int32) core.Message {
	m := w.messages[i]
	changed := false
	parts := m.Parts
	for p := from; p < to; {
		pass := &w.c.Passages[p]
		first := p
		for p++; p < to && w.c.Passages[p].part == pass.part && w.c.Passages[p].content == pass.content; p++ { //nolint:revive // the passages of one text
		}
		if w.passages[first].mode != modeOpen || !w.lost(core.Span{Start: pass.Lines.Start, End: w.c.Passages[p-1].Lines.End}, k) {
			continue
		}
		was, content := parts[pass.part], -1
		r, isResult := was.(core.ToolResult)
		if isResult {
			was, content = r.Content[pass.content], pass.content
		}
		text := w.inPlace(was, first, p, k)
		if w.o.Counter.Count(text) >= w.o.Counter.Count(was) {
			continue
		}
		if !changed {
			parts = append([]core.Part(nil), parts...)
			changed = true
		}
		if !isResult {
			parts[pass.part] = text
			continue
		}
		r.Content = append([]core.Part(nil), r.Content...)
		r.Content[content] = text
		parts[pass.part] = r
	}
	if changed {
		m.Parts = parts
		m.Source = nil
		m.Tokens = core.MessageTokens(w.o.Counter, m)
	}
	return m
}

// inPlace returns the kept lines of a text made of the passages between first and end, with marks for missing ones.
func (w extraction) inPlace(was core.Part, first, end int, k int32) core.Text {
	text, _ := was.(core.Text)
	pass := &w.c.Passages[first]
	if _, ok := w.messages[pass.Message].Parts[pass.part].(core.Text); ok {
		return core.Text(w.cutText(string(text), first, end, k, w.handle(pass)))
	}
	kept, missing := w.shortened(string(text), first, end, k)
	if kept != "" {
		kept += "\n"
	}
	return core.Text(kept + lostMark(missing, pass.failed(string(text)), w.handle(pass)))
}

// lost reports whether any of the lines is missing.
func (w extraction) lost(lines core.Span, k int32) bool {
	for l := lines.Start; l < lines.End; l++ {
		if !w.kept(l, k) {
			return true
		}
	}
	return false
}

// shortened returns the kept text of a result, made of the passages from first up to end, and the number of missing
// lines; 0 if they cannot be counted.
func (w extraction) shortened(text string, first, end int, k int32) (kept string, missing int) {
	var b strings.Builder
	at := 0 // in text, after the last line
	have := 0
	gap, alike, above, counted := 0, 0, "", false
	path := int32(0) // the line with the path for the lines below it
	marked := 0      // lines that a former condensation's marks replace
	// The mark at the end includes the lines of the marks above it.
	whole := linesOf(endMark(text)) > 1
	for l := w.c.Passages[first].Lines.Start; l < w.c.Passages[end-1].Lines.End; l++ {
		line := &w.c.Lines[l]
		i := strings.Index(text[at:], line.Text)
		if line.flat || i < 0 {
			return w.shortenedValues(first, end, k), 0
		}
		between := text[at : at+i] // has lines without content, such as braces
		at += i + len(line.Text)
		counted = counted && line.joins
		below := "" // the path of the next lines, if its line is not kept
		if u := line.under; w.kept(l, k) && u > 0 && u != path && !w.kept(int(u), k) {
			below = w.c.Lines[u].Text + "\n"
		}
		switch {
		case !w.kept(l, k):
			more := linesOf(line.Text) - 1
			gap = max(gap+strings.Count(between, "\n"), 1) + more
			if whole && readGap(line.Text) > 0 {
				more = -1
			}
			marked += more
			if line.template {
				alike++
			}
			continue
		case b.Len() == 0:
		case gap > 0:
			b.WriteString("\n" + gapOf(gap, alike, above, line.Text) + "\n")
		default:
			b.WriteString(between)
			have += max(0, strings.Count(between, "\n")-1)
		}
		if !counted {
			have++
		}
		b.WriteString(below + line.Text)
		if below != "" {
			have++
		}
		if path = line.under; path == 0 {
			path = int32(l)
		}
		gap, alike, above, counted = 0, 0, line.Text, true
	}
	return b.String(), strings.Count(strings.TrimRight(text, "\r\n\t "), "\n") + 1 - have + marked
}

// shortenedValues returns the kept text of a result that is JSON, one value a line.
func (w extraction) shortenedValues(first, end int, k int32) string {
	var b strings.Builder
	for p := first; p < end; p++ {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		w.renderLines(&b, &w.c.Passages[p], k, nil)
	}
	return strings.TrimRight(b.String(), "\n")
}

// account returns the kept share of every kind with the first k picks.
func (w extraction) account(k int32) map[string]Account {
	k = max(k, 1)
	out := map[string]Account{}
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		kind := pass.Kind
		if pass.rules != "" {
			kind = dialog.KindProjectRules
		}
		a := out[kind.String()]
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			a.Lines++
			a.Tokens += int(w.lines[l].tokens)
			if w.kept(l, k) || w.out[l] {
				a.LinesKept++
				a.TokensKept += int(w.lines[l].tokens)
			}
		}
		out[kind.String()] = a
	}
	return out
}

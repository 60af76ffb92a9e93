package value

import (
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// render returns the messages, and their tokens.
func (x extraction) render() ([]core.Message, int) {
	const bytesPerToken = 5 // a little more than most texts and their headers have
	var out []core.Message
	var extract extractWriter
	extract.text.Grow(bytesPerToken * max(0, int(x.w.picks[min(int(x.k), len(x.w.picks)-1)]-x.w.picks[0])))
	extract.root = x.w.pre.root
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
		m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(Extract(strings.TrimSuffix(extract.text.String(), "\n"), extract.marks, !x.r.o.NoHandles))}}
		m.Tokens = core.MessageTokens(x.r.o.Counter, m)
		add(m)
		extract.text.Reset()
		extract.marks = extract.marks[:0]
	}
	hidden, listed, last := false, false, x.lastHidden()
	for g, group := range x.r.groups {
		if x.w.lay.native[g] {
			if hidden && first && extract.text.Len() == 0 {
				extract.text.WriteByte('\n')
			}
			if !x.r.allSystem(group) {
				flush()
				first, hidden = false, false
			}
		}
		for i := group.Start; i < group.End; i++ {
			from := p
			for p < len(x.r.c.Passages) && x.r.c.Passages[p].Message == i {
				p++
			}
			if !x.w.lay.native[g] {
				if !listed {
					listed = true
					extract.section(x.contents())
					extract.section(x.w.pre.open)
				}
				hidden = true
				if x.renderExtract(&extract, i, from, p); i == last {
					extract.renderFiles(x.w.pre.files) // after the story: they are as they are now
				}
				continue
			}
			add(x.renderNative(i, from, p))
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
func (x extraction) lastHidden() int {
	for g, group := range slices.Backward(x.r.groups) {
		if !x.w.lay.native[g] {
			return group.End - 1
		}
	}
	return -1
}

func (x extraction) kept(l int) bool { at := x.w.lines[l].at; return at != 0 && at <= x.k }

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
func (x extraction) renderExtract(b *extractWriter, i, from, to int) {
	for p := from; p < to; p++ {
		pass := &x.r.c.Passages[p]
		kept, lost := 0, 0
		known := pass.Kind == dialog.KindToolCall && pass.fileName() == ""
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if x.kept(l) {
				kept++
				known = known || pass.Kind == dialog.KindToolCall && strings.Contains(x.r.c.Lines[l].Text, pass.fileName())
			} else {
				lost += len(x.r.c.Lines[l].Text)
			}
		}
		if kept == 0 {
			continue
		}
		handle := pass.Handle // something before was left out
		if x.r.o.NoHandles || handle != "" && x.r.recalled(pass) {
			handle = ""
		} else if handle == "" && (lost >= x.r.o.Shares.HandleFrom || lost > 0 && pass.rules != "") {
			handle = x.r.ref(pass)
		}
		x.renderMedia(b, i, p)
		b.open(pass, handle, known)
		b.text.WriteByte('\n')
		x.renderLines(&b.text, pass, b)
		// Neither rules nor the user's words end without a mark.
		if (pass.rules != "" || pass.Kind == dialog.KindUser) && (pass.ends || !x.kept(pass.Lines.End-1)) && !strings.HasSuffix(b.text.String(), GapMark) {
			b.text.WriteString("\n" + GapMark)
		}
	}
	x.renderMedia(b, i, to)
}

// fieldLabels introduce the old and the new text of an edit whose first line is missing.
var fieldLabels = [fieldCount]string{fieldOld: "old_string: " + GapMark + "\n", fieldNew: "new_string: " + GapMark + "\n"}

// renderLines writes the kept lines of a passage, with marks for missing ones. In an extract (if extract is not nil)
// it omits the common indentation.
func (x extraction) renderLines(b *strings.Builder, pass *Passage, extract *extractWriter) {
	gap, above := 0, "" // lines left out since the last line written, and that line
	alike, runs := 0, 0 // lines of templates in the gap, bytes of opaque runs
	began, last := false, 0
	edits, field := pass.family == families[dialog.FamilyEdit], uint8(0)
	path := int32(0) // the line with the path for the lines below it
	indent := 0
	if extract != nil {
		indent = x.indent(pass)
	}
	for l := pass.Lines.Start; l < pass.Lines.End; l++ {
		line := &x.r.c.Lines[l]
		gap += int(line.Gap)
		if !x.kept(l) {
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
		if u := line.under; u > 0 && u != path && !x.kept(int(u)) {
			b.WriteString(x.r.c.Lines[u].Text + "\n")
		}
		if path = line.under; path == 0 {
			path = int32(l)
		}
		if label := fieldLabels[line.field]; extract != nil && label != "" && line.field != field && edits && (l == pass.Lines.Start || x.r.c.Lines[l-1].field == line.field) {
			b.WriteString(label)
		}
		field = line.field
		text := line.Text
		if !line.joins {
			text = text[min(indent, len(text)):]
		}
		if extract != nil {
			if !began && x.halfAbove(l) && !Literal(GapMark+text) {
				text = GapMark + text
			}
			if (!line.joins || gap > 0) && Literal(text) {
				extract.marks = append(extract.marks, b.Len())
				b.WriteByte('|')
			}
		}
		b.WriteString(text)
		if extract != nil {
			b.WriteString(x.closing(l))
		}
		began, gap, alike, runs, above, last = true, 0, 0, 0, line.Text, l
	}
	if extract != nil && began && x.halfBelow(last) {
		b.WriteString(GapMark)
	}
}

// closing returns the lines without content that belong to line l. Before a gap and at the end it omits blank lines.
func (x extraction) closing(l int) string {
	after := x.r.c.Lines[l].after
	if x.w.lines[l].last || !x.kept(l+1) {
		after = strings.TrimRight(after, " \t\r\n")
	}
	return after
}

// halfAbove reports whether line l begins within a sentence or line whose beginning is missing.
func (x extraction) halfAbove(l int) bool {
	line := &x.r.c.Lines[l]
	if x.w.lines[l].first || x.kept(l-1) || endsSentence(x.r.c.Lines[l-1].Text) {
		return false
	}
	return line.joins || x.r.prose(l-1) && x.r.prose(l) && continues(line.Text)
}

// halfBelow reports whether line l ends within a sentence or line whose end is missing.
func (x extraction) halfBelow(l int) bool {
	line := &x.r.c.Lines[l]
	if x.w.lines[l].last || x.kept(l+1) || endsSentence(line.Text) {
		return false
	}
	next := &x.r.c.Lines[l+1]
	return next.joins || x.r.prose(l) && x.r.prose(l+1) && continues(next.Text)
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
func (x extraction) indent(pass *Passage) int {
	common, found := "", false
	for l := pass.Lines.Start; l < pass.Lines.End; l++ {
		line := &x.r.c.Lines[l]
		if !x.kept(l) || line.joins {
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
func (x extraction) renderNative(i, from, to int) core.Message {
	m := x.r.messages[i]
	changed := false
	parts := m.Parts
	for p := from; p < to; {
		pass := &x.r.c.Passages[p]
		first := p
		for p++; p < to && x.r.c.Passages[p].part == pass.part && x.r.c.Passages[p].content == pass.content; p++ { //nolint:revive // the passages of one text
		}
		if x.w.passages[first].mode != modeOpen || !x.lost(core.Span{Start: pass.Lines.Start, End: x.r.c.Passages[p-1].Lines.End}) {
			continue
		}
		was, content := parts[pass.part], -1
		r, isResult := was.(core.ToolResult)
		if isResult {
			was, content = r.Content[pass.content], pass.content
		}
		text := x.inPlace(was, first, p)
		if x.r.o.Counter.Count(text) >= x.r.o.Counter.Count(was) {
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
		m.Tokens = core.MessageTokens(x.r.o.Counter, m)
	}
	return m
}

// inPlace returns the kept lines of a text made of the passages between first and end, with marks for missing ones.
func (x extraction) inPlace(was core.Part, first, end int) core.Text {
	text, _ := was.(core.Text)
	pass := &x.r.c.Passages[first]
	if _, ok := x.r.messages[pass.Message].Parts[pass.part].(core.Text); ok {
		return core.Text(x.cutText(string(text), first, end, x.r.handle(pass)))
	}
	kept, missing := x.shortened(string(text), first, end)
	if kept != "" {
		kept += "\n"
	}
	return core.Text(kept + lostMark(missing, pass.failed(string(text)), x.r.handle(pass)))
}

// lost reports whether any of the lines is missing.
func (x extraction) lost(lines core.Span) bool {
	for l := lines.Start; l < lines.End; l++ {
		if !x.kept(l) {
			return true
		}
	}
	return false
}

// shortened returns the kept text of a result, made of the passages from first up to end, and the number of missing
// lines; 0 if they cannot be counted.
func (x extraction) shortened(text string, first, end int) (kept string, missing int) {
	var b strings.Builder
	at := 0 // in text, after the last line
	have := 0
	gap, alike, above, counted := 0, 0, "", false
	path := int32(0) // the line with the path for the lines below it
	marked := 0      // lines that a former condensation's marks replace
	// The mark at the end includes the lines of the marks above it.
	whole := linesOf(endMark(text)) > 1
	for l := x.r.c.Passages[first].Lines.Start; l < x.r.c.Passages[end-1].Lines.End; l++ {
		line := &x.r.c.Lines[l]
		i := strings.Index(text[at:], line.Text)
		if line.flat || i < 0 {
			return x.shortenedValues(first, end), 0
		}
		between := text[at : at+i] // has lines without content, such as braces
		at += i + len(line.Text)
		counted = counted && line.joins
		below := "" // the path of the next lines, if its line is not kept
		if u := line.under; x.kept(l) && u > 0 && u != path && !x.kept(int(u)) {
			below = x.r.c.Lines[u].Text + "\n"
		}
		switch {
		case !x.kept(l):
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
func (x extraction) shortenedValues(first, end int) string {
	var b strings.Builder
	for p := first; p < end; p++ {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		x.renderLines(&b, &x.r.c.Passages[p], nil)
	}
	return strings.TrimRight(b.String(), "\n")
}

// account returns the kept share of every kind.
func (x extraction) account() map[string]Account {
	out := map[string]Account{}
	for p := range x.r.c.Passages {
		pass := &x.r.c.Passages[p]
		kind := pass.Kind
		if pass.rules != "" {
			kind = dialog.KindProjectRules
		}
		a := out[kind.String()]
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			a.Lines++
			a.Tokens += int(x.w.lines[l].tokens)
			if x.kept(l) || x.w.pre.out[l] {
				a.LinesKept++
				a.TokensKept += int(x.w.lines[l].tokens)
			}
		}
		out[kind.String()] = a
	}
	return out
}

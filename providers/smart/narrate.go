package smart

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/model"
)

// promptTokens returns the size of a prompt by the host's counter.
func promptTokens(w *work, p *model.Prompt) int {
	n := w.count(p.System) + core.FramingTokens
	if p.Tools != "" {
		n += w.count(p.Tools)
	}
	for i := range p.Messages {
		n += core.MessageTokens(w.req.Counter, p.Messages[i])
	}
	return n
}

// narrate writes the messages from index from on as text, in parts of at most limit tokens, with at most so
// many bytes of every result and of the arguments of every call; 0 means all. A message is in one part, unless
// it is larger.
func narrate(w *work, from, most, limit int) []string {
	var (
		parts []string
		b     strings.Builder
		size  int
	)
	flush := func() {
		if b.Len() > 0 {
			parts = append(parts, b.String())
		}
		b.Reset()
		size = 0
	}
	for i := from; i < len(w.msgs); i++ {
		if w.msgs[i].Role == core.RoleSystem || isAccount(&w.msgs[i]) {
			continue
		}
		var one strings.Builder
		writeMessage(w, &one, i, most)
		text := one.String()
		n := w.count(text)
		for n > limit { // it is cut, at any place
			k := len(text) * limit / n * 9 / 10
			flush()
			parts = append(parts, strings.ToValidUTF8(text[:k], ""))
			text = text[k:]
			n = w.count(text)
		}
		if size+n > limit {
			flush()
		}
		b.WriteString(text)
		size += n
	}
	flush()
	return parts
}

// writeMessage writes message i in the form for a model that shortens it, with at most so many bytes of every result
// and of the arguments of every call; 0 means all.
func writeMessage(w *work, b *strings.Builder, i, most int) {
	fmt.Fprintf(b, "<%s>\n", w.msgs[i].Role)
	for k := w.ofMsg[i].Start; k < w.ofMsg[i].End; k++ {
		block := &w.blocks[k]
		for n := block.segments.Start; n < block.segments.End; n++ {
			p := &w.segments[n]
			if p.kind == dialog.KindReasoning || p.kind == dialog.KindEnvironment {
				continue
			}
			if p.kind == dialog.KindToolCall {
				fmt.Fprintf(b, "[calls %s]\n", p.use.Name)
			}
			if p.kind == dialog.KindToolResult {
				of, isError := w.label(p)
				fmt.Fprintf(b, "[result of %s%s]\n", strings.TrimSpace(of), map[bool]string{true: ", an error"}[isError])
			}
			text := p.text
			if most > 0 && len(text) > most && (p.kind == dialog.KindToolCall || p.kind == dialog.KindToolResult || p.kind == dialog.KindError) {
				text = strings.ToValidUTF8(text[:most*2/3], "") + fmt.Sprintf("\n[%d bytes left out here]\n", len(text)-most) + strings.ToValidUTF8(text[len(text)-most/3:], "")
			}
			b.WriteString(text + "\n")
		}
	}
	fmt.Fprintf(b, "</%s>\n", w.msgs[i].Role)
}

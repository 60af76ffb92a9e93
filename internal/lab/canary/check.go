package canary

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// A State tells whether a canary survived.
type State struct {
	// Kept: its current value is there, with a third of its other words near it.
	Kept bool
	// Updated: it was changed by now. Stale: the old value is still there with its words, whether or not the new one
	// is.
	Updated, Stale bool
}

// near is the distance from a value, in bytes, within which its words count: a sentence.
const near = 240

// A View is the text of a condensed conversation, read once for all canaries.
type View struct{ text string }

// NewView reads the messages of a view.
func NewView(messages []core.Message) *View { return &View{strings.ToLower(text(messages))} }

// State returns the state of c, which was changed by now if updated is set.
func (v *View) State(c *Canary, updated bool) State {
	if updated = updated && c.Update != ""; updated {
		return State{Kept: v.has(&c.then), Updated: true, Stale: v.has(&c.text)}
	}
	return State{Kept: v.has(&c.text)}
}

// has reports whether the value of p is there, with a third of its words near it at one place.
func (v *View) has(p *probe) bool {
	for from := 0; ; {
		i := strings.Index(v.text[from:], p.value)
		if i < 0 {
			return false
		}
		i += from
		around := v.text[max(0, i-near):min(len(v.text), i+len(p.value)+near)]
		n := 0
		for _, w := range p.words {
			if strings.Contains(around, w) {
				n++
			}
		}
		if 3*n >= len(p.words) {
			return true
		}
		from = i + len(p.value)
	}
}

// text returns all text of messages.
func text(messages []core.Message) string {
	var b strings.Builder
	var parts func(list []core.Part)
	parts = func(list []core.Part) {
		for _, p := range list {
			switch p := p.(type) {
			case core.Text:
				b.WriteString(string(p))
			case core.ToolCall:
				b.WriteString(p.Args)
			case core.ToolResult:
				parts(p.Content)
			case core.Reasoning:
				b.WriteString(p.Text)
			case core.Image, core.Opaque:
			}
			b.WriteByte('\n')
		}
	}
	for i := range messages {
		parts(messages[i].Parts)
	}
	return b.String()
}

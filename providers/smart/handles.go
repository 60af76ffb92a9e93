package smart

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// handles say which handle stands for another one, which is gone.
type handles map[string]string

// handleSize is the length of a handle. See [core.Handle].
const handleSize = 10

// add says that then stands for now, unless something does.
func (h handles) add(now, then string) {
	if _, ok := h[now]; !ok && now != then {
		h[now] = then
	}
}

// mapTexts returns parts with other texts, results and arguments, as f makes them, and whether
// one is another.
func mapTexts(parts []core.Part, f func(string) (string, bool)) (_ []core.Part, changed bool) {
	put := func(i int, p core.Part) {
		if !changed {
			parts, changed = slices.Clone(parts), true
		}
		parts[i] = p
	}
	for i, p := range parts {
		switch p := p.(type) {
		case core.Text:
			if s, ok := f(string(p)); ok {
				put(i, core.Text(s))
			}
		case core.ToolCall:
			if s, ok := f(p.Args); ok {
				p.Args = s
				put(i, p)
			}
		case core.ToolResult:
			if content, ok := mapTexts(p.Content, f); ok {
				p.Content = content
				put(i, p)
			}
		case core.Reasoning, core.Image, core.Opaque:
		}
	}
	return parts, changed
}

// text returns s with other handles, and whether there is one. Most texts have none, so
// what cannot be one is passed over by its length.
func (h handles) text(s string) (_ string, changed bool) {
	var b strings.Builder
	done := 0
next:
	for i := 0; i+handleSize <= len(s); {
		for k := i + handleSize - 1; k >= i; k-- {
			if c := s[k]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				i = k + 1
				continue next
			}
		}
		then, ok := h[s[i:i+handleSize]]
		if !ok {
			i++
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(then)
		i += handleSize
		done = i
	}
	if done == 0 {
		return s, false
	}
	b.WriteString(s[done:])
	return b.String(), true
}

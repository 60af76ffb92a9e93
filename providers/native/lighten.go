package native

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/toolcall"
)

// dropStaleEnvironment returns messages in which only the newest environment details are left: some agents add
// them to every message of the user: open files, the time.
func dropStaleEnvironment(messages []core.Message) []core.Message {
	messages = slices.Clone(messages)
	newest := true
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role != core.RoleUser {
			continue
		}
		var talk dialog.AuthorReader
		var parts []core.Part
		for j, segments := range talk.Message(m) {
			around := func(s dialog.Segment) bool { return s.Kind == dialog.KindEnvironment }
			if !slices.ContainsFunc(segments, around) {
				continue
			}
			rest := join(slices.DeleteFunc(segments, around))
			if newest {
				newest = false
				break
			}
			if parts == nil {
				parts = slices.Clone(m.Parts)
			}
			parts[j] = core.Text(rest)
		}
		if parts != nil {
			m.Parts = parts
		}
	}
	return messages
}

// foldable is the size, in bytes, from which on the content of a file is folded.
const foldable = 4000

// foldResults returns messages in which the results of tools that hold long source files
// have the signatures in their place. The newest two results stay.
func foldResults(messages []core.Message) []core.Message {
	paths := map[string]string{} // call ID to the file that it is about
	for i := range messages {
		for _, p := range messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				paths[c.ID] = toolcall.First([]byte(c.Args), toolcall.Path)
			}
		}
	}
	const newest = 2
	skip := newest
	return rewriteResults(messages, func(r core.ToolResult) (core.ToolResult, bool) {
		if skip > 0 {
			skip--
			return r, false
		}
		path := paths[r.CallID]
		if r.IsError || outline.Language(path) == "" {
			return r, false
		}
		changed := false
		content := slices.Clone(r.Content)
		for i, c := range content {
			text, ok := c.(core.Text)
			if !ok || len(text) < foldable {
				continue
			}
			if folded := outline.Fold(path, unnumbered(string(text))); folded != "" && len(folded) < len(text)/2 {
				content[i] = core.Text("[Only the definitions of this file are shown here]\n" + folded)
				changed = true
			}
		}
		r.Content = content
		return r, changed
	})
}

// unnumbered returns text without the line numbers that tools put before each line, such
// as "  12 | x", "12\tx" and "12→x"; text itself if not every line has one.
func unnumbered(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		rest := strings.TrimLeft(strings.TrimLeft(l, " "), "0123456789")
		if rest == strings.TrimLeft(l, " ") {
			if l == "" {
				continue
			}
			return text
		}
		switch {
		case strings.HasPrefix(rest, " | "):
			rest = rest[3:]
		case strings.HasPrefix(rest, " |"):
			rest = rest[2:]
		case strings.HasPrefix(rest, "\t"), strings.HasPrefix(rest, ":"):
			rest = rest[1:]
		case strings.HasPrefix(rest, "→"):
			rest = rest[len("→"):]
		default:
			return text
		}
		lines[i] = rest
	}
	return strings.Join(lines, "\n")
}

// clipResults returns messages in which arguments and results of tools are no longer than the preset allows.
func (p *Provider) clipResults(messages []core.Message) []core.Message {
	messages = rewriteResults(messages, func(r core.ToolResult) (core.ToolResult, bool) {
		changed := false
		content := slices.Clone(r.Content)
		for i, c := range content {
			if text, ok := c.(core.Text); ok && len(text) > p.c.clipChars {
				content[i] = core.Text(clip(string(text), p.c.clipChars))
				changed = true
			}
		}
		r.Content = content
		return r, changed
	})
	for i := range messages {
		m := &messages[i]
		for j, part := range m.Parts {
			if c, ok := part.(core.ToolCall); ok && len(c.Args) > p.c.clipChars {
				c.Args = clip(c.Args, p.c.clipChars)
				m.Parts = slices.Clone(m.Parts)
				m.Parts[j] = c
			}
		}
	}
	return messages
}

// rewriteResults returns a copy of messages with other results, those of the newest messages first. The given
// messages are not touched.
func rewriteResults(messages []core.Message, rewrite func(core.ToolResult) (core.ToolResult, bool)) []core.Message {
	messages = slices.Clone(messages)
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		for j := len(m.Parts) - 1; j >= 0; j-- {
			r, ok := m.Parts[j].(core.ToolResult)
			if !ok {
				continue
			}
			if r, changed := rewrite(r); changed {
				m.Parts = slices.Clone(m.Parts)
				m.Parts[j] = r
			}
		}
	}
	return messages
}

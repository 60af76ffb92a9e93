package native

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/prefix"
	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/toolcall"
)

// A shaper turns messages into the form for a model.
type shaper struct {
	images bool // the model can read them
	native bool // calls and results stay calls and results
}

// shape returns messages that every model can read: only users and assistants speak, in
// turn, the user first; no reasoning, no block that only one vendor knows.
func (s *shaper) shape(messages []core.Message) []core.Message {
	var tools map[partAt]toolUse
	if s.native {
		tools = pairTools(messages)
	}
	var out []core.Message
	add := func(role core.Role, parts ...core.Part) {
		if len(parts) == 0 {
			return
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Parts = append(out[last].Parts, parts...)
			return
		}
		out = append(out, core.Message{Role: role, Parts: parts})
	}
	for i := range messages {
		m := &messages[i]
		role := core.RoleUser
		if m.Role == core.RoleAssistant {
			role = core.RoleAssistant
		}
		if m.Kind == core.KindMarker && m.Role == core.RoleAssistant {
			continue // an acknowledgement of ours
		}
		var parts, answers []core.Part
		if m.Role == core.RoleSystem {
			parts = append(parts, core.Text("[System message]"))
		}
		again := summarizes(m)
		for j, p := range m.Parts {
			switch use := tools[partAt{i, j}]; {
			case use.moved, again && renewed(p):
			case use.answer != nil:
				parts = append(parts, p)
				answers = append(answers, s.result(*use.answer))
			default:
				parts = s.part(parts, p)
			}
		}
		if m.Role == core.RoleSystem && len(parts) == 1 {
			continue
		}
		add(role, parts...)
		add(core.RoleUser, answers...)
	}
	return withUserFirst(out)
}

// beginning precedes an assistant who speaks first.
const beginning = core.Text("[The conversation begins before this point.]")

func withUserFirst(messages []core.Message) []core.Message {
	if len(messages) > 0 && messages[0].Role != core.RoleUser {
		messages = slices.Insert(messages, 0, core.Message{Role: core.RoleUser, Parts: []core.Part{beginning}})
	}
	return messages
}

// summarizes reports whether m is a summary, or holds one in a format that does not record it.
func summarizes(m *core.Message) bool {
	return m.Kind == core.KindSummary || m.Role == core.RoleUser && slices.ContainsFunc(m.Parts, func(p core.Part) bool {
		t, ok := p.(core.Text)
		return ok && dialog.Inserted(string(t))
	})
}

// renewed reports whether p was added to an earlier summary and is written again for the next
// one, so that no model needs to read it.
func renewed(p core.Part) bool {
	text, ok := p.(core.Text)
	begins := []string{reminderOpen + outline.FileHead, reminderOpen + workflowsHead, toolcall.DetailsOpen}
	return ok && slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(string(text), begin) })
}

// part appends the replacement of p to parts.
func (s *shaper) part(parts []core.Part, p core.Part) []core.Part {
	switch p := p.(type) {
	case core.Text:
		if strings.TrimSpace(string(p)) != "" {
			parts = append(parts, p)
		}
	case core.ToolCall:
		parts = append(parts, core.Text(roo.ToolUseText(p.Name, p.Args)))
	case core.ToolResult:
		parts = append(parts, core.Text(s.resultText(p)))
		if s.images {
			parts = append(parts, plain.Only(p.Content, func(c core.Part) bool { _, ok := c.(core.Image); return ok })...)
		}
	case core.Image:
		parts = append(parts, s.image(p))
	case core.Reasoning: // it is the model's own, and signed for one vendor
	case core.Opaque:
		parts = append(parts, core.Text(describeOpaque(p)))
	}
	return parts
}

// result returns r with nothing in it that the model cannot read.
func (s *shaper) result(r core.ToolResult) core.ToolResult {
	r.Content = slices.Clone(r.Content)
	for i, c := range r.Content {
		switch c := c.(type) {
		case core.Image:
			r.Content[i] = s.image(c)
		case core.Opaque:
			r.Content[i] = core.Text(describeOpaque(c))
		case core.Text, core.ToolCall, core.ToolResult, core.Reasoning:
		}
	}
	return r
}

func (s *shaper) resultText(r core.ToolResult) string {
	var items []string
	if r.Content != nil {
		items = make([]string, 0, len(r.Content))
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case core.Text:
			items = append(items, string(c))
		case core.Image:
			items = append(items, "[Image]")
		case core.Opaque:
			items = append(items, "["+c.Kind+"]")
		case core.ToolCall, core.ToolResult, core.Reasoning: // not in a result
		}
	}
	return roo.ToolResultText(r.IsError, items)
}

// image returns i if the model can see it, else a description.
func (s *shaper) image(i core.Image) core.Part {
	if s.images {
		return i
	}
	kind := cmp.Or(i.MediaType, "image")
	if i.URL != "" {
		return core.Text(fmt.Sprintf("[Referenced image in conversation: %s, %s; not shown here]", kind, i.URL))
	}
	return core.Text(fmt.Sprintf("[Referenced image in conversation: %s, %d kB; not shown here]", kind, (len(i.Data)*3/4+1023)/1024))
}

func describeOpaque(o core.Opaque) string {
	return fmt.Sprintf("[A block of kind %q, %d bytes; not shown here]", o.Kind, len(o.JSON))
}

// assemble returns the kept messages with the summaries among them. Each is where
// the last of its messages was, or else the first, so that the conversation begins with
// the user if it did. Ack, if not nil, follows the last one if the user speaks next.
func (p *plan) assemble(summaries []core.Message, ack *core.Message) []core.Message {
	out := p.place(summaries, ack, false)
	if was, ok := firstSpeaker(p.req.Messages); ok && was == core.RoleUser {
		if is, ok := firstSpeaker(out); !ok || is != core.RoleUser {
			summaries = slices.Clone(summaries)
			summaries[0].Role = core.RoleUser
			out = p.place(summaries, ack, true)
		}
	}
	return out
}

func (p *plan) place(summaries []core.Message, ack *core.Message, front bool) []core.Message {
	const kept = -1
	at := slices.Repeat([]int{kept}, len(p.req.Messages)) // which section a message belongs to
	place := make([]int, len(summaries))                  // the message that a summary follows
	for s, section := range p.sections {
		for _, i := range section {
			at[i] = s
		}
		place[s] = section[len(section)-1]
	}
	if front {
		place[0] = p.sections[0][0]
	}
	out := make([]core.Message, 0, len(at))
	next, last := 0, kept
	for i := range at {
		if at[i] == kept {
			out = append(out, p.req.Messages[i])
		}
		for next < len(summaries) && place[next] == i {
			out = append(out, summaries[next])
			last = len(out) - 1
			next++
		}
	}
	if ack != nil && out[last].Role == core.RoleUser && last+1 < len(out) && out[last+1].Role == core.RoleUser {
		out = slices.Insert(out, last+1, *ack)
	}
	return out
}

func firstSpeaker(messages []core.Message) (core.Role, bool) {
	i := slices.IndexFunc(messages, func(m core.Message) bool { return m.Role != core.RoleSystem })
	if i < 0 {
		return "", false
	}
	return messages[i].Role, true
}

// A partAt is the position of a part: message and index in it.
type partAt struct{ message, part int }

// A toolUse is the form of a call or a result that is shown as one. The zero value is one that is shown as
// text.
type toolUse struct {
	answer *core.ToolResult // of a call, to move to the very next message
	moved  bool             // of a result: it follows its call now
}

// pairTools says which calls and results of messages can be shown as such. The APIs want every result in the
// message after its call and no ID twice; others are brought into that form, or else shown as text. A call
// without a result gets one that says so. By the rule of [core.Groups], a result answers the oldest open call
// of its ID.
func pairTools(messages []core.Message) map[partAt]toolUse {
	uses := map[partAt]toolUse{}
	type call struct {
		at    partAt
		shown bool
	}
	open := map[string][]call{}
	used := map[string]bool{}
	for i := range messages {
		for j, p := range messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				shown := messages[i].Role == core.RoleAssistant && !used[p.ID] && p.ID != ""
				if shown {
					used[p.ID] = true
					uses[partAt{i, j}] = toolUse{answer: &core.ToolResult{CallID: p.ID, Content: []core.Part{core.Text(prefix.Deferred)}}}
				}
				open[p.ID] = append(open[p.ID], call{partAt{i, j}, shown})
			case core.ToolResult:
				calls := open[p.CallID]
				if len(calls) == 0 {
					continue
				}
				open[p.CallID] = calls[1:]
				if calls[0].shown {
					answer := p
					uses[calls[0].at] = toolUse{answer: &answer}
					uses[partAt{i, j}] = toolUse{moved: true}
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return uses
}

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
		_, sign, rest := toolcall.Gutter(l)
		if l != "" && (sign == "" || sign == "-") {
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

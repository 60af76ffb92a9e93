package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/transcript"
)

const (
	anchorAhead = 120 // messages after a cut whose edits count
	anchorAfter = 10  // messages that must follow a cut
	anchorLine  = 14  // characters of a line that says something
	anchorLeast = 5   // lines of a cut
)

// anchors writes the beginning of a session, cut at 40 and at 65 % of its text, with the lines of it that the agent's next
// edits quote and that it did not see again in between.
func anchors(name, out string) error {
	f, err := os.Open(name) //nolint:gosec // the user names the files
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	d, err := transcript.Read(f, &transcript.ReadOptions{Name: name})
	if err != nil {
		return err
	}
	messages := d.Journal.Messages()
	total := 0
	sizes := make([]int, len(messages))
	for i := range messages {
		total += len(shown(&messages[i])) + len(quoted(&messages[i]))
		sizes[i] = total
	}
	base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".json"), ".jsonl")
	for _, percent := range []int{40, 65} {
		cut := slices.IndexFunc(sizes, func(n int) bool { return n*100 >= total*percent })
		for cut >= 0 && cut < len(messages) && messages[cut].Role != core.RoleAssistant {
			cut++
		}
		if cut < 1 || len(messages)-cut < anchorAfter {
			continue
		}
		if lines := needed(messages, cut); len(lines) >= anchorLeast {
			c := conversation{ID: fmt.Sprintf("%s-%d", base, percent), Messages: upTo(messages[:cut])}
			c.Questions = []question{{ID: "edits", Ability: "edit anchors", Lines: lines}}
			if err := write(out, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// needed returns the lines before the cut that edits after it quote.
func needed(messages []core.Message, cut int) []string {
	var before strings.Builder
	for i := range messages[:cut] {
		before.WriteString(fold(shown(&messages[i])))
	}
	had := before.String()
	again := ""
	var lines []string
	for i := cut; i < min(len(messages), cut+anchorAhead); i++ {
		for line := range strings.SplitSeq(quoted(&messages[i]), "\n") {
			line = strings.TrimSpace(fold(line))
			if len(line) >= anchorLine && strings.Contains(had, line) && !strings.Contains(again, line) && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		again += fold(shown(&messages[i]))
	}
	return lines
}

func fold(text string) string { return " " + strings.Join(strings.Fields(text), " ") + " " }

// shown returns the texts and results of a message: the agent's own arguments are no source of lines.
func shown(m *core.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			b.WriteString(string(p) + "\n")
		case core.ToolResult:
			for _, c := range p.Content {
				if t, ok := c.(core.Text); ok {
					b.WriteString(string(t) + "\n")
				}
			}
		case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}

// quoted returns the text that the edits of a message replace.
func quoted(m *core.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if c, ok := p.(core.ToolCall); ok {
			var args any
			if json.Unmarshal([]byte(c.Args), &args) == nil {
				collect(&b, "", args)
			}
		}
	}
	return b.String()
}

// collect appends the old texts in the arguments of an edit.
func collect(b *strings.Builder, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sorted(v) {
			collect(b, k, v[k])
		}
	case []any:
		for _, e := range v {
			collect(b, key, e)
		}
	case string:
		if toolcall.RoleOf(key)&toolcall.Old != 0 {
			b.WriteString(v + "\n")
			return
		}
		search, patch := false, strings.Contains(v, "*** Begin Patch") || strings.Contains(v, "\n@@ ")
		for line := range strings.SplitSeq(v, "\n") {
			switch {
			case strings.HasPrefix(line, "<<<<<<< SEARCH"):
				search = true
			case strings.HasPrefix(line, "======="):
				search = false
			case search:
				b.WriteString(line + "\n")
			case patch && (strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ")) && !strings.HasPrefix(line, "---"):
				b.WriteString(line[1:] + "\n")
			}
		}
	}
}

// upTo returns messages in the form of the files. A result is a message of its own.
func upTo(messages []core.Message) []message {
	var out []message
	for i := range messages {
		m := &messages[i]
		if m.Role != core.RoleUser && m.Role != core.RoleAssistant && m.Role != core.RoleTool {
			continue
		}
		own := message{ID: m.ID, Role: m.Role}
		if m.Role == core.RoleTool {
			own.Role = core.RoleUser
		}
		for k, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				own.Text += string(p)
			case core.ToolCall:
				own.Calls = append(own.Calls, lab.GoldCall{ID: p.ID, Name: p.Name, Args: p.Args})
			case core.ToolResult:
				out = append(out, message{
					ID: fmt.Sprintf("%s/%d", m.ID, k), Role: core.RoleUser, ResultOf: p.CallID,
					Text: shown(&core.Message{Parts: []core.Part{p}}),
				})
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
		if strings.TrimSpace(own.Text) != "" || len(own.Calls) > 0 {
			out = append(out, own)
		}
	}
	return out
}

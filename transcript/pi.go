package transcript

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
)

// pi appends a line for everything that happens in a session to
// ~/.pi/agent/sessions/DIRECTORY/TIME_ID.jsonl. The first says what the session is; each of
// the others has an id and names in parentId the one that it follows. Together they are a
// tree; the conversation is the branch that ends with the last line. Files of version 1 have
// neither, and are one branch. Types of lines that count:
//
//   - message: of the user, the assistant, a tool (toolResult) or a command that the user ran
//     (bashExecution). An answer that failed or was interrupted is not sent.
//   - custom_message: what an extension says in the name of the user.
//   - compaction: a summary, and the first entry that is kept. It is imported as a
//     condensation.
//   - branch_summary: a summary of a branch that was left.
//
// The format is documented: packages/coding-agent/docs/session.md of pi-mono.
var piCodec = Codec{
	Name:   "pi",
	Doc:    "pi session: ~/.pi/agent/sessions/*/*.jsonl",
	Tool:   "pi",
	Detect: detectPi,
	Read:   readPi,
}

func detectPi(data []byte) bool {
	for _, raw := range lines(data) {
		if skipSpace(raw, 0) == len(raw) {
			continue
		}
		return text(field(raw, "type")) == "session" && isString(field(raw, "id")) && isString(field(raw, "cwd"))
	}
	return false
}

// A piLine is what matters of a line.
type piLine struct {
	row
	kind, id, parent string
	live             bool
}

func readPi(data []byte, f *File) error {
	all, warnings, err := rows(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	lines := make([]piLine, len(all))
	at := map[string]int{}
	for i, r := range all {
		l := &lines[i]
		*l = piLine{row: r, kind: text(field(r.raw, "type")), id: text(field(r.raw, "id")), parent: text(field(r.raw, "parentId"))}
		if l.id != "" && l.kind != "session" {
			at[l.id] = i
		}
	}
	f.Warnings = append(f.Warnings, piBranch(lines, at)...)
	s := sessionReader{file: f, data: data, taken: ids{}}
	first := map[string]string{} // entry to the first message that it or a later one says
	var silent []string
	for i := range lines {
		l := &lines[i]
		if !l.live {
			continue
		}
		m, sent, bad := l.decode()
		if bad != nil {
			return bad.in(data, l.raw, s.records+1)
		}
		if model := text(field(field(l.raw, "message"), "model")); model != "" {
			f.Model = model
		}
		silent = append(silent, l.id)
		if !sent {
			continue
		}
		when := timestamp(field(l.raw, "timestamp"))
		messages := s.take(l.raw, l.id, when, l.kind != "compaction", []core.Message{m})
		if l.kind == "compaction" {
			kept := first[text(field(l.raw, "firstKeptEntryId"))]
			if err := compactTo(f, "compaction-"+l.id, "pi", when, kept, messages); err != nil {
				return fmt.Errorf("compaction in line %d: %w", l.line, err)
			}
			continue
		}
		for _, id := range silent {
			first[id] = messages[0].ID
		}
		silent = silent[:0]
		if err := f.Add(messages...); err != nil {
			return err
		}
	}
	f.Settle(data, s.places, lineBreak(data))
	return nil
}

// piBranch marks the lines of the conversation.
func piBranch(lines []piLine, at map[string]int) []FileWarning {
	leaf := len(lines) - 1
	for leaf >= 0 && (lines[leaf].id == "" || lines[leaf].kind == "session") {
		leaf--
	}
	if leaf < 0 { // version 1
		for i := range lines {
			lines[i].live = true
		}
		return nil
	}
	for cur, steps := leaf, 0; steps < len(lines); steps++ { // more go in a circle
		lines[cur].live = true
		up, ok := at[lines[cur].parent]
		if !ok || lines[up].live {
			break
		}
		cur = up
	}
	left := 0
	for i := range lines {
		if l := &lines[i]; !l.live && l.kind == "message" {
			left++
		}
	}
	if left == 0 {
		return nil
	}
	return []FileWarning{{Text: fmt.Sprintf("%s on branches that were left: kept in the file, but no part of the conversation", count(left, "message"))}}
}

// decode returns the message that the line is, and whether the model gets to see it.
func (l *piLine) decode() (m core.Message, sent bool, bad *fault) {
	m.Role = core.RoleUser
	switch l.kind {
	case "message":
		message := field(l.raw, "message")
		if !isObject(message) {
			return m, false, missing(l.raw, "message", "message", "an object")
		}
		m, sent, bad = decodePiMessage(message)
		if bad != nil {
			bad.Offset += offsetIn(l.raw, message)
		}
		return m, sent, bad
	case "custom_message":
		m.Parts, bad = decodePi(l.raw)
		return m, len(m.Parts) > 0, bad
	case "compaction":
		m.Kind = core.KindSummary
		m.Parts = []core.Part{core.Text("The conversation history before this point was compacted into the following summary:\n\n<summary>\n" +
			text(field(l.raw, "summary")) + "\n</summary>")}
		return m, true, nil
	case "branch_summary":
		m.Kind = core.KindSummary
		m.Parts = []core.Part{core.Text("The following is a summary of a branch that this conversation came back from:\n\n<summary>\n" +
			text(field(l.raw, "summary")) + "\n</summary>")}
		return m, true, nil
	}
	return m, false, nil
}

func decodePiMessage(raw []byte) (m core.Message, sent bool, bad *fault) {
	m.Role = core.RoleUser
	switch role := field(raw, "role"); text(role) {
	case "user", "custom", "hookMessage":
	case "assistant":
		m.Role = core.RoleAssistant
		if stop := text(field(raw, "stopReason")); stop == "error" || stop == "aborted" {
			return m, false, nil
		}
	case "toolResult":
		if !isString(field(raw, "toolCallId")) {
			return m, false, missing(raw, "tool result", "toolCallId", "a string")
		}
		m.Role = core.RoleTool
		content, bad := decodePi(raw)
		m.Parts = []core.Part{core.ToolResult{CallID: text(field(raw, "toolCallId")), Content: content, IsError: isTrue(field(raw, "isError"))}}
		return m, true, bad
	case "bashExecution":
		if isTrue(field(raw, "excludeFromContext")) {
			return m, false, nil
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Ran `%s`\n", text(field(raw, "command")))
		if output := text(field(raw, "output")); output != "" {
			b.WriteString("```\n" + output + "\n```")
		} else {
			b.WriteString("(no output)")
		}
		if code := number(field(raw, "exitCode")); code > 0 {
			fmt.Fprintf(&b, "\n\nCommand exited with code %d", code)
		}
		m.Parts = []core.Part{core.Text(b.String())}
		return m, true, nil
	case "branchSummary", "compactionSummary":
		m.Kind = core.KindSummary
		m.Parts = textParts(orEmpty(field(raw, "summary")))
		return m, len(m.Parts) > 0, nil
	default:
		return m, false, wrongRole(raw, role, "user, assistant or toolResult")
	}
	m.Parts, bad = decodePi(raw)
	return m, len(m.Parts) > 0, bad
}

// decodePi returns the content of raw.
func decodePi(raw []byte) ([]core.Part, *fault) {
	content := field(raw, "content")
	if content == nil {
		return nil, withoutContent()
	}
	signed := strings.HasPrefix(text(field(raw, "api")), "anthropic")
	parts, bad := decodeList(content, "a string or an array of blocks", func(block []byte) (core.Part, *fault) {
		return decodePiBlock(block, signed)
	})
	if bad != nil {
		bad.Offset += offsetIn(raw, content)
	}
	return parts, bad
}

// decodePiBlock returns what a block says. Signed says that Anthropic made what the model
// thought: that of others is kept in a form that only they take back.
func decodePiBlock(raw []byte, signed bool) (core.Part, *fault) {
	if !isObject(raw) {
		return nil, &fault{Found: describe(raw) + " as a block of content", Want: "an object"}
	}
	switch kind := text(field(raw, "type")); kind {
	case "":
		return nil, missing(raw, "", "type", "a string that is not empty")
	case "text":
		if !isString(field(raw, "text")) {
			return nil, missing(raw, kind, "text", "a string")
		}
		return core.Text(text(field(raw, "text"))), nil
	case "image":
		return core.Image{MediaType: text(field(raw, "mimeType")), Data: text(field(raw, "data"))}, nil
	case "thinking":
		p := core.Reasoning{Text: text(field(raw, "thinking"))}
		if signed {
			p.Signature = text(field(raw, "thinkingSignature"))
		}
		return p, nil
	case "toolCall":
		if !isString(field(raw, "id")) || !isString(field(raw, "name")) {
			return nil, missing(raw, kind, "id", "a string, and one as name")
		}
		return core.ToolCall{ID: text(field(raw, "id")), Name: text(field(raw, "name")), Args: string(field(raw, "arguments"))}, nil
	default:
		return core.Opaque{Kind: kind, JSON: string(raw)}, nil
	}
}

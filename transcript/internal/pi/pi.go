// Package pi reads and writes sessions of pi.
//
// pi appends a line for every event of a session to
// ~/.pi/agent/sessions/DIRECTORY/TIME_ID.jsonl. The first line describes the session; each of
// the others has an id, and parentId names the line that it follows. Together they are a tree;
// the conversation is the branch that ends with the last line. Files of version 1 have
// neither, and are one branch. Types of lines that are read:
//
//   - message: of the user, the assistant, a tool (toolResult) or a command that the user ran
//     (bashExecution). An answer that failed or was interrupted is not sent.
//   - custom_message: an extension's message as the user.
//   - compaction: a summary, and the first entry that is kept. It is imported as a
//     condensation.
//   - branch_summary: a summary of an abandoned branch.
//
// The format is documented: packages/coding-agent/docs/session.md of pi-mono.
package pi

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "pi",
	Doc:     "pi session: ~/.pi/agent/sessions/*/*.jsonl",
	Vendor:  "", // it holds messages of models of any vendor
	Detect:  detectPi,
	Read:    readPi,
	Write:   write,
	Convert: convertFile,
}

func detectPi(data []byte) bool {
	for raw := range jsonl.Head(data, 1) {
		if rawjson.Text(rawjson.Field(raw, "type")) == "title" { // oh-my-pi keeps room for it before the first line of pi
			return rawjson.Field(raw, "pad") != nil
		}
		return rawjson.Text(rawjson.Field(raw, "type")) == "session" && rawjson.IsString(rawjson.Field(raw, "id")) && rawjson.IsString(rawjson.Field(raw, "cwd"))
	}
	return false
}

// A piLine is the relevant part of a line.
type piLine struct {
	jsonl.Row
	kind, id, parent string
	live             bool
}

func readPi(data []byte, f *codec.File) error {
	all, warnings, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	lines, at := piLines(all)
	f.Warnings = append(f.Warnings, piBranch(lines, at)...)
	s := session.Reader{File: f, Data: data, Taken: codec.IDs{}}
	first := map[string]string{} // entry to the first message of it or of a later one
	var silent []string
	for i := range lines {
		l := &lines[i]
		if !l.live {
			continue
		}
		m, sent, bad := l.decode()
		if bad != nil {
			return bad.In(data, l.Raw, s.Records+1)
		}
		if model := rawjson.Text(rawjson.Field(rawjson.Field(l.Raw, "message"), "model")); model != "" {
			f.Model = model
		}
		silent = append(silent, l.key(i))
		if !sent {
			continue
		}
		when := rawjson.Time(rawjson.Field(l.Raw, "timestamp"))
		messages := s.Take(l.Raw, l.id, when, l.kind != "compaction", []core.Message{m})
		if l.kind == "compaction" {
			kept := first[rawjson.Text(rawjson.Field(l.Raw, "firstKeptEntryId"))]
			if at := rawjson.Field(l.Raw, "firstKeptEntryIndex"); at != nil && l.id == "" { // version 1
				kept = first[(&piLine{}).key(rawjson.Int(at))]
			}
			if err := session.Compact(f, "compaction-"+l.key(i), "pi", when, kept, messages); err != nil {
				return fmt.Errorf("compaction in line %d: %w", l.Line, err)
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
	s.Close(jsonl.LineBreak(data))
	return nil
}

// key identifies the entry that is line i, also in version 1, which has no IDs.
func (l *piLine) key(i int) string { return cmp.Or(l.id, "#"+strconv.Itoa(i)) }

// piLines returns the lines of a file, and the index of each entry by its ID.
func piLines(rows []jsonl.Row) (lines []piLine, at map[string]int) {
	lines, at = make([]piLine, len(rows)), map[string]int{}
	for i, r := range rows {
		l := &lines[i]
		*l = piLine{Row: r, kind: rawjson.Text(rawjson.Field(r.Raw, "type")), id: rawjson.Text(rawjson.Field(r.Raw, "id")), parent: rawjson.Text(rawjson.Field(r.Raw, "parentId"))}
		if l.id != "" && l.kind != "session" {
			at[l.id] = i
		}
	}
	return lines, at
}

// piBranch marks the lines of the conversation.
func piBranch(lines []piLine, at map[string]int) []codec.Warning {
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
	left := len(plain.Only(lines, func(l piLine) bool { return !l.live && l.kind == "message" }))
	if left == 0 {
		return nil
	}
	return []codec.Warning{{Text: fmt.Sprintf("%s on abandoned branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))}}
}

// decode returns the message that the line is, and whether the model receives it.
func (l *piLine) decode() (m core.Message, sent bool, bad *syntax.Error) {
	m.Role = core.RoleUser
	switch l.kind {
	case "message":
		message := rawjson.Field(l.Raw, "message")
		if !rawjson.IsObject(message) {
			return m, false, syntax.Missing(l.Raw, "message", "message", "an object")
		}
		m, sent, bad = decodePiMessage(message)
		if bad != nil {
			bad.Offset += rawjson.Offset(l.Raw, message)
		}
		return m, sent, bad
	case "custom_message":
		m.Parts, bad = decodePi(l.Raw)
		m.Program = true
		return m, len(m.Parts) > 0, bad
	case "compaction":
		m.Kind = core.KindSummary
		m.Parts = []core.Part{core.Text("The conversation history before this point was compacted into the following summary:\n\n<summary>\n" +
			rawjson.Text(rawjson.Field(l.Raw, "summary")) + "\n</summary>")}
		return m, true, nil
	case "branch_summary":
		m.Kind = core.KindSummary
		m.Parts = []core.Part{core.Text("The following is a summary of a branch that this conversation came back from:\n\n<summary>\n" +
			rawjson.Text(rawjson.Field(l.Raw, "summary")) + "\n</summary>")}
		return m, true, nil
	}
	return m, false, nil
}

func decodePiMessage(raw []byte) (m core.Message, sent bool, bad *syntax.Error) {
	m.Role = core.RoleUser
	switch role := rawjson.Field(raw, "role"); rawjson.Text(role) {
	case "user":
	case "custom", "hookMessage": // of an extension
		m.Program = true
	case "assistant":
		m.Role = core.RoleAssistant
		if stop := rawjson.Text(rawjson.Field(raw, "stopReason")); stop == "error" || stop == "aborted" {
			return m, false, nil
		}
	case "toolResult":
		if !rawjson.IsString(rawjson.Field(raw, "toolCallId")) {
			return m, false, syntax.Missing(raw, "tool result", "toolCallId", "a string")
		}
		m.Role = core.RoleTool
		content, bad := decodePi(raw)
		m.Parts = []core.Part{core.ToolResult{CallID: rawjson.Text(rawjson.Field(raw, "toolCallId")), Content: content, IsError: rawjson.IsTrue(rawjson.Field(raw, "isError"))}}
		return m, true, bad
	case "bashExecution":
		if rawjson.IsTrue(rawjson.Field(raw, "excludeFromContext")) {
			return m, false, nil
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Ran `%s`\n", rawjson.Text(rawjson.Field(raw, "command")))
		if output := rawjson.Text(rawjson.Field(raw, "output")); output != "" {
			b.WriteString("```\n" + output + "\n```")
		} else {
			b.WriteString("(no output)")
		}
		if code := rawjson.Int(rawjson.Field(raw, "exitCode")); code > 0 {
			fmt.Fprintf(&b, "\n\nCommand exited with code %d", code)
		}
		m.Parts, m.Program = []core.Part{core.Text(b.String())}, true
		return m, true, nil
	case "branchSummary", "compactionSummary":
		m.Kind = core.KindSummary
		m.Parts = blocks.Text(blocks.OrEmpty(rawjson.Field(raw, "summary")))
		return m, len(m.Parts) > 0, nil
	default:
		return m, false, syntax.WrongRole(raw, role, "user, assistant or toolResult")
	}
	m.Parts, bad = decodePi(raw)
	return m, len(m.Parts) > 0, bad
}

// decodePi returns the content of raw.
func decodePi(raw []byte) ([]core.Part, *syntax.Error) {
	content := rawjson.Field(raw, "content")
	if content == nil {
		return nil, syntax.NoContent()
	}
	signed := strings.HasPrefix(rawjson.Text(rawjson.Field(raw, "api")), "anthropic")
	parts, bad := blocks.DecodeList(content, "a string or an array of blocks", func(block []byte) (core.Part, *syntax.Error) {
		return decodePiBlock(block, signed)
	})
	if bad != nil {
		bad.Offset += rawjson.Offset(raw, content)
	}
	return parts, bad
}

// decodePiBlock returns the part that a block is. Signed says that a model of Anthropic made
// the reasoning: only its signatures can be sent again.
func decodePiBlock(raw []byte, signed bool) (core.Part, *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw) + " as a block of content", Want: "an object"}
	}
	switch kind := rawjson.Text(rawjson.Field(raw, "type")); kind {
	case "":
		return nil, syntax.Missing(raw, "", "type", "a string that is not empty")
	case "text":
		if !rawjson.IsString(rawjson.Field(raw, "text")) {
			return nil, syntax.Missing(raw, kind, "text", "a string")
		}
		return core.Text(rawjson.Text(rawjson.Field(raw, "text"))), nil
	case "image":
		return core.Image{MediaType: rawjson.Text(rawjson.Field(raw, "mimeType")), Data: rawjson.Text(rawjson.Field(raw, "data"))}, nil
	case "thinking":
		p := core.Reasoning{Text: rawjson.Text(rawjson.Field(raw, "thinking"))}
		if signed {
			p.Signature = rawjson.Text(rawjson.Field(raw, "thinkingSignature"))
		}
		return p, nil
	case "toolCall":
		if !rawjson.IsString(rawjson.Field(raw, "id")) || !rawjson.IsString(rawjson.Field(raw, "name")) {
			return nil, syntax.Missing(raw, kind, "id", "a string, and one as name")
		}
		return core.ToolCall{ID: rawjson.Text(rawjson.Field(raw, "id")), Name: rawjson.Text(rawjson.Field(raw, "name")), Args: string(rawjson.Field(raw, "arguments"))}, nil
	default:
		return core.Opaque{Kind: kind, JSON: string(raw)}, nil
	}
}

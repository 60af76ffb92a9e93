package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// plainHash returns a hash of a message of the Messages API that stays the same when Claude Code goes on with another model:
// of its role, texts, calls and results, without thinking and reminders. For some models Claude Code sends reminders as
// system messages, for others between tags within the user's texts and results; and it leaves out the thinking of other
// models. Ok is false for a system message, or if nothing is left.
func plainHash(message []byte) (h Hash, ok bool) {
	role := rawjson.Text(rawjson.Field(message, "role"))
	if role == "system" {
		return h, false
	}
	var p plainer
	p.add(role)
	p.content(rawjson.Field(message, "content"))
	if p.parts == 0 {
		return h, false
	}
	sum := sha256.Sum256(p.all)
	return Hash(sum[:len(h)]), true
}

// A plainer collects the parts of a message, each after its length.
type plainer struct {
	all   []byte
	parts int
}

func (p *plainer) add(s string) {
	p.all = binary.AppendUvarint(p.all, uint64(len(s)))
	p.all = append(p.all, s...)
}

// content adds a text, or the blocks of a list.
func (p *plainer) content(raw []byte) {
	if rawjson.IsString(raw) {
		p.text(rawjson.Text(raw))
		return
	}
	for b := range rawjson.Elements(raw) {
		switch kind := rawjson.Text(rawjson.Field(b, "type")); kind {
		case "thinking", "redacted_thinking":
		case "text":
			p.text(rawjson.Text(rawjson.Field(b, "text")))
		case "tool_result":
			p.add(kind + rawjson.Text(rawjson.Field(b, "tool_use_id")))
			p.parts++
			p.content(rawjson.Field(b, "content"))
		default:
			p.add(string(Unmark(b)))
			p.parts++
		}
	}
}

// text adds a text without reminders; nothing if it has nothing else.
func (p *plainer) text(s string) {
	const begin, end = toolcall.ReminderOpen, toolcall.ReminderClose
	for {
		i := strings.Index(s, begin)
		if i < 0 {
			break
		}
		n := strings.Index(s[i:], end)
		if n < 0 {
			break
		}
		s = strings.TrimRight(s[:i], " \t\r\n") + s[i+n+len(end):]
	}
	if s = strings.TrimSpace(s); s != "" {
		p.add(s)
		p.parts++
	}
}

// Remind returns a message of the system as one of the user, with each text between the tags of reminders, for a model
// that takes no messages of the system among the others. Any other message is returned unchanged.
func Remind(message []byte) []byte {
	if rawjson.Text(rawjson.Field(message, "role")) != "system" {
		return message
	}
	var blocks [][]byte
	add := func(text string) {
		if text != "" {
			blocks = append(blocks, rawjson.SetField([]byte(`{"type":"text"}`), "text", rawjson.AppendQuote(nil, toolcall.ReminderOpen+"\n"+text+"\n"+toolcall.ReminderClose)))
		}
	}
	content := rawjson.Field(message, "content")
	if rawjson.IsString(content) {
		add(rawjson.Text(content))
	}
	for b := range rawjson.Elements(content) {
		add(rawjson.Text(rawjson.Field(b, "text")))
	}
	if blocks == nil {
		return message
	}
	return rawjson.SetField([]byte(`{"role":"user"}`), "content", rawjson.Array(blocks))
}

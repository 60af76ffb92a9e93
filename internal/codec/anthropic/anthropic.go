// Package anthropic reads and writes messages of Anthropic's Messages API.
package anthropic

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "anthropic",
	Doc:     "Anthropic Messages: an array of messages, or a request object with messages, system, tools …",
	Vendor:  codec.Anthropic,
	Request: true,
	Detect:  func(data []byte) bool { return request.VendorOf(data) == codec.Anthropic },
	Read:    request.ReadAnthropic,
	Write:   write,
	Convert: convertFile,
}

func write(f *codec.File, out *codec.Output) error {
	request.Write(f, out, placeSystem(f), true, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return blocks.PatchMessage(was, m.Parts)
		}
		return apimessage.AnthropicMessage(m.Role, m.Parts)
	})
	return nil
}

// convertFile writes an array of messages, or an object if there is a system
// prompt.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	messages := plain.Each(apimessage.Messages(turns), func(m apimessage.Turn) []byte { return apimessage.AnthropicMessage(m.Role, m.Parts) })
	raw := rawjson.Array(messages)
	if system != "" {
		raw = rawjson.Append(nil, `{"system":?,"messages":?}`, system, raw)
	}
	out.Add(raw, []byte{'\n'})
	return nil
}

// none is not an index.
const none = -1

// Since Claude Opus 4.8 Anthropic's API accepts system messages among the others: directly
// after a user message or the result of a tool that the vendor ran, and before an assistant
// message or at the end. It refuses them anywhere else, at the very beginning too, and it refuses two in a row. Source:
// "Mid-conversation system messages",
// platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages.

// misplaced returns the indices of the system messages in positions that the API refuses.
func misplaced(messages []core.Message) []int {
	var all []int
	for i := range messages {
		if messages[i].Role != core.RoleSystem {
			continue
		}
		after := i > 0 && (apimessage.Speaker(messages[i-1].Role) == core.RoleUser || endsInResult(&messages[i-1]))
		before := i+1 == len(messages) || messages[i+1].Role == core.RoleAssistant
		if !after || !before {
			all = append(all, i)
		}
	}
	return all
}

// endsInResult reports whether the last block of m is the result of a tool that the vendor ran.
func endsInResult(m *core.Message) bool {
	if len(m.Parts) == 0 {
		return false
	}
	o, ok := m.Parts[len(m.Parts)-1].(core.Opaque)
	return ok && strings.HasSuffix(o.Kind, "_tool_result")
}

// placeSystem returns the view of f in which every system message that a condensation left in an invalid position is
// moved to the next valid one, or to the last valid one if none follows. System messages in positions that were
// invalid in the file stay there.
func placeSystem(f *codec.File) []core.Message {
	view := f.View()
	moved := misplaced(view)
	if moved == nil {
		return view
	}
	read := f.Journal.Messages()
	stays := plain.Set(plain.Each(misplaced(read), func(i int) string { return read[i].ID }))
	moved = slices.DeleteFunc(moved, func(i int) bool { return stays[view[i].ID] })
	var out, waiting []core.Message
	last := none // index in out of the last valid position so far
	for i := range view {
		m := &view[i]
		if len(moved) > 0 && moved[0] == i {
			waiting, moved = append(waiting, *m), moved[1:]
			continue
		}
		if n := len(out); n > 0 && m.Role != core.RoleUser && m.Role != core.RoleTool && out[n-1].Role != core.RoleAssistant {
			out = append(out, waiting...)
			waiting, last = nil, len(out)
		}
		out = append(out, *m)
	}
	switch n := len(out); {
	case n > 0 && out[n-1].Role != core.RoleAssistant:
		return append(out, waiting...)
	case last != none:
		return slices.Insert(out, last, waiting...)
	}
	// There is no user message at all: the system messages become user messages.
	for i := range waiting {
		waiting[i] = core.Message{Role: core.RoleUser, Parts: waiting[i].Parts}
	}
	return append(waiting, out...)
}

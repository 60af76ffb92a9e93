package transcript

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

var anthropicCodec = codec{
	name:   "anthropic",
	doc:    "Anthropic Messages: an array of messages, or a request object with messages, system, tools …",
	vendor: vendorAnthropic,
	detect: detectAnthropic,
	read: func(data []byte, d *Document) error {
		if err := d.readArray(data, decodeAnthropic); err != nil {
			return err
		}
		return d.readRequest(data)
	},
	write: func(d *Document, out *output) error {
		if d.Origin != "anthropic" {
			return convertAnthropic(d, out)
		}
		d.writeRecords(out, d.placeSystem(d.view()), true, func(m *core.Message, was []byte) []byte {
			if was != nil {
				return patchMessage(was, m.Parts)
			}
			return encodeAnthropic(m.Role, m.Parts)
		})
		return nil
	},
}

// decodeAnthropic is a [decoder] for a message in Anthropic's shape. Roles are those
// of the API, and "system", which some tools keep among the messages.
func decodeAnthropic(raw []byte) (core.Message, *SyntaxError) {
	var m core.Message
	if !isObject(raw) {
		return m, &SyntaxError{Found: describe(raw), Want: "an object with role and content"}
	}
	var role, content []byte
	for k, v := range fields(raw) {
		switch string(k) {
		case "role":
			role = v
		case "content":
			content = v
		case "id", "uuid":
			m.ID = text(v)
		}
	}
	switch s := text(role); s {
	case "user", "assistant", "system":
		m.Role = core.Role(s)
	default:
		return m, wrongRole(raw, role, "user or assistant")
	}
	if content == nil {
		return m, withoutContent()
	}
	parts, err := decodeContent(content)
	if err != nil {
		err.Offset += offsetIn(raw, content)
		return m, err
	}
	m.Parts = parts
	return m, nil
}

// withoutContent reports a message of another shape: read as if it said nothing, all that it
// says would be lost.
func withoutContent() *SyntaxError {
	return &SyntaxError{Found: `a message without "content"`, Want: "a message in the shape of the vendor's API"}
}

func wrongRole(raw, role []byte, want string) *SyntaxError {
	e := &SyntaxError{Found: `no "role"`, Want: `a "role" of ` + want}
	if role != nil {
		e.Offset = offsetIn(raw, role)
		e.Found = `the "role" ` + describe(role)
		e.Want = want
	}
	return e
}

// encodeAnthropic returns a new message.
func encodeAnthropic(role core.Role, parts []core.Part) []byte {
	out := appendQuoted([]byte(`{"role":`), string(speaker(role)))
	out = append(out, `,"content":`...)
	out = append(out, encodeContent(parts)...)
	return append(out, '}')
}

// readRequest fills d from the other fields of a request, if data is one.
func (d *Document) readRequest(data []byte) error {
	for k, v := range fields(data) {
		switch string(k) {
		case "system":
			parts, err := decodeContent(v)
			if err != nil {
				err.Offset += offsetIn(data, v)
				err.Found += ` in "system"`
				return err
			}
			d.System = joinText(parts)
		case "tools":
			if !isNull(v) {
				d.Tools = slices.Clip(v)
			}
		case "model":
			d.Model = text(v)
		case "max_tokens":
			d.MaxOutput = number(v)
		}
	}
	return nil
}

// joinText returns the texts among parts, with an empty line between two.
func joinText(parts []core.Part) string {
	var all []string
	for _, p := range parts {
		if t, ok := p.(core.Text); ok && t != "" {
			all = append(all, string(t))
		}
	}
	return strings.Join(all, "\n\n")
}

package transcript

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

var anthropicCodec = Codec{
	Name:    "anthropic",
	Doc:     "Anthropic Messages: an array of messages, or a request object with messages, system, tools …",
	Vendor:  Anthropic,
	Request: true,
	Detect:  detectAnthropic,
	Read:    readAnthropic,
	Write:   writeAnthropic,
	Convert: convertAnthropic,
}

func writeAnthropic(f *File, out *Output) error {
	writeRecords(f, out, placeSystem(f), true, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return patchMessage(was, m.Parts)
		}
		return encodeAnthropic(m.Role, m.Parts)
	})
	return nil
}

// decodeAnthropic is a [decoder] for a message in Anthropic's shape. Roles are those
// of the API, and "system", which some tools keep among the messages.
func decodeAnthropic(raw []byte) (core.Message, *fault) {
	var m core.Message
	if !isObject(raw) {
		return m, &fault{Found: describe(raw), Want: "an object with role and content"}
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

// encodeAnthropic returns a new message.
func encodeAnthropic(role core.Role, parts []core.Part) []byte {
	out := appendQuoted([]byte(`{"role":`), string(speaker(role)))
	out = append(out, `,"content":`...)
	out = append(out, encodeContent(parts)...)
	return append(out, '}')
}

// readAnthropic reads an array of messages, or a request with one.
func readAnthropic(data []byte, f *File) error {
	if err := readArray(f, data, decodeAnthropic); err != nil {
		return err
	}
	for k, v := range fields(data) {
		switch string(k) {
		case "system":
			parts, err := decodeContent(v)
			if err != nil {
				err.Offset += offsetIn(data, v)
				err.Found += ` in "system"`
				return err
			}
			f.System = joinText(parts)
		case "tools":
			if !isNull(v) {
				f.Tools = slices.Clip(v)
			}
		case "model":
			f.Model = text(v)
		case "max_tokens":
			f.MaxOutput = number(v)
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

package blocks

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/syntax"
)

// DecodeMessage is a [decoder] for a message in Anthropic's shape. Roles are those
// of the API, and "system", which some tools keep among the messages.
func DecodeMessage(raw []byte) (core.Message, *syntax.Error) {
	var m core.Message
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and content"}
	}
	var role, content []byte
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "role":
			role = v
		case "content":
			content = v
		case "id", "uuid":
			m.ID = rawjson.Text(v)
		}
	}
	switch s := rawjson.Text(role); s {
	case "user", "assistant", "system":
		m.Role = core.Role(s)
	default:
		return m, syntax.WrongRole(raw, role, "user or assistant")
	}
	if content == nil {
		return m, syntax.NoContent()
	}
	parts, err := Decode(content)
	if err != nil {
		err.Offset += rawjson.Offset(raw, content)
		return m, err
	}
	m.Parts = parts
	return m, nil
}

// Join returns the texts among parts, with an empty line between two.
func Join(parts []core.Part) string {
	var all []string
	for _, p := range parts {
		if t, ok := p.(core.Text); ok && t != "" {
			all = append(all, string(t))
		}
	}
	return strings.Join(all, "\n\n")
}

// OrEmpty returns the string raw, or an empty one if it is something else.
func OrEmpty(raw []byte) []byte {
	if rawjson.IsString(raw) {
		return raw
	}
	return []byte(`""`)
}

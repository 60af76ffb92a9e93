package transcript

import (
	"strings"

	"github.com/condensehq/condense/core"
)

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

// speaker returns the role in a request of what role says, where tools and whoever has
// no role of his own speak as the user.
func speaker(role core.Role) core.Role {
	switch role {
	case core.RoleSystem, core.RoleAssistant:
		return role
	case core.RoleUser, core.RoleTool:
	}
	return core.RoleUser
}

// orEmpty returns the string raw, or an empty one if it is something else.
func orEmpty(raw []byte) []byte {
	if isString(raw) {
		return raw
	}
	return []byte(`""`)
}

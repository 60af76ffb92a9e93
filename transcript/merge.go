package transcript

import (
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/core"
)

// A record is a message as it is written.
type record struct {
	raw      []byte
	gap      []byte // before it
	messages []core.Message
}

// mergeUsers makes one of records in a row that are the user's, where that they follow each
// other is the work of a condensation: one was inserted, or what stood between two is
// hidden. Anthropic's API would take them as one; others, and many chat templates, refuse
// such a row. The content becomes an array with the elements of all, byte for byte; nothing
// is lost. Messages that followed each other when they were read stay apart, as do those
// whose fields besides the content say something that the other's do not.
func (d *Document) mergeUsers(records []record) []record {
	place := map[string]int{}
	for i, m := range d.Journal.Messages() {
		place[m.ID] = i + 1 // those that were inserted have none
	}
	var out []record
	for _, r := range records {
		n := len(out)
		if n == 0 {
			out = append(out, r)
			continue
		}
		before, after := &out[n-1].messages[len(out[n-1].messages)-1], &r.messages[0]
		a, b := place[before.ID], place[after.ID]
		if before.Role != core.RoleUser || after.Role != core.RoleUser || a > 0 && b == a+1 {
			out = append(out, r)
			continue
		}
		raw, ok := mergeRaw(out[n-1].raw, r.raw)
		if !ok {
			out = append(out, r)
			continue
		}
		out[n-1].raw = raw
		out[n-1].messages = append(slices.Clip(out[n-1].messages), r.messages...)
	}
	return out
}

// mergeRaw returns a message with the content of both. It reports false if there is more to
// one than a role and content, unless the other has just these, and if b holds results:
// they answer the message before a, and nothing may stand between.
func mergeRaw(a, b []byte) ([]byte, bool) {
	if !json.Valid(a) || !json.Valid(b) {
		return nil, false // results become messages of their own in some formats: those are several
	}
	x, y := field(a, "content"), field(b, "content")
	if !isString(x) && !isArray(x) || !isString(y) && !isArray(y) {
		return nil, false
	}
	for e := range elements(y) {
		if text(field(e, "type")) == "tool_result" {
			return nil, false
		}
	}
	base := a
	if !plainMessage(b) {
		if !plainMessage(a) {
			return nil, false
		}
		base = b
	}
	if field(base, "name") != nil {
		return nil, false // it says who speaks
	}
	content := []byte{'['}
	for _, c := range [][]byte{x, y} {
		if string(c) == `""` {
			continue // no vendor takes an empty block
		}
		if isString(c) {
			c = slices.Concat([]byte(`[{"type":"text","text":`), c, []byte("}]"))
		}
		for e := range elements(c) {
			if len(content) > 1 {
				content = append(content, ',')
			}
			content = append(content, e...)
		}
	}
	return setField(base, "content", append(content, ']')), true
}

// plainMessage reports whether a message has no fields but those that every one has.
func plainMessage(raw []byte) bool {
	n := 0
	for k := range fields(raw) {
		if string(k) != "role" && string(k) != "content" {
			return false
		}
		n++
	}
	return n == 2 && isObject(raw)
}

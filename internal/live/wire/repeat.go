package wire

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// Newest returns the messages without texts of the system that a later text of the system repeats, and for each
// message the index of its origin. A text repeats another if both are equal, or begin with the same of begins: agents
// append such reminders again and again, and each is out of date with the next. The system prompt, that is, messages
// before the first of another role, is not looked at, nor is a message that stays reports.
func Newest(messages []Message, begins []string, stays func(i int) bool) (view [][]byte, origin []int) {
	first := 0
	for first < len(messages) && isSystem(&messages[first]) {
		first++
	}
	view, origin = make([][]byte, len(messages)), make([]int, 0, len(messages))
	later := map[string]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if view[i] = m.Raw; i >= first && isSystem(m) {
			if raw := newest(m.Raw, begins, later); len(raw) != len(m.Raw) && !stays(i) && (raw != nil || !between(messages, i)) {
				view[i] = raw
			}
		}
	}
	kept := view[:0]
	for i, raw := range view {
		if raw != nil {
			kept, origin = append(kept, raw), append(origin, i)
		}
	}
	return kept, origin
}

func isSystem(m *Message) bool { return m.Role == "system" || m.Role == "developer" }

// between reports whether message i is between two messages of the model, which would become neighbours without it.
func between(messages []Message, i int) bool {
	return i > 0 && i+1 < len(messages) && messages[i-1].Role == "assistant" && messages[i+1].Role == "assistant"
}

// newest returns a message without texts that are in later, nil if nothing is left, and adds its texts to later.
// Other fields than role and content are settings, which keep the last text.
func newest(raw []byte, begins []string, later map[string]bool) []byte {
	repeats := func(text string) bool {
		for _, b := range begins {
			if strings.HasPrefix(text, b) {
				text = b
				break
			}
		}
		was := later[text]
		later[text] = true
		return was && text != ""
	}
	content := rawjson.Field(raw, "content")
	fields := 0
	for range rawjson.Fields(raw) {
		fields++
	}
	const plain = 2 // role and content
	if rawjson.IsString(content) {
		if repeats(textOf(rawjson.Text(content))) && fields == plain {
			return nil
		}
		return raw
	}
	if !rawjson.IsArray(content) {
		return raw
	}
	var kept [][]byte
	all := slices.Collect(rawjson.Elements(content))
	for i, block := range slices.Backward(all) {
		text := rawjson.Field(block, "text")
		if !rawjson.IsString(text) || !repeats(textOf(rawjson.Text(text))) || fields != plain && i == 0 && len(kept) == 0 {
			kept = append(kept, block)
		}
	}
	switch len(kept) {
	case len(all):
		return raw
	case 0:
		return nil
	}
	slices.Reverse(kept)
	return rawjson.ReplaceValue(raw, content, rawjson.Array(kept))
}

// textOf returns a reminder without the space and the tag that agents put around some.
func textOf(s string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), toolcall.ReminderOpen))
}

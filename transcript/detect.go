package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// messagesIn returns the raw array of messages of a JSON file; nil if it has none.
func messagesIn(data []byte) []byte {
	switch at := skipSpace(data, 0); {
	case isArray(data[at:]):
		return data[at:]
	case isObject(data[at:]):
		if v := field(data, "messages"); isArray(v) {
			return v
		}
	}
	return nil
}

// detectAnthropic accepts every file with messages; the others come first.
func detectAnthropic(data []byte) bool {
	messages := messagesIn(data)
	for m := range elements(messages) {
		return field(m, "role") != nil
	}
	return messages != nil && skipSpace(messages, 1) < len(messages) && messages[skipSpace(messages, 1)] == ']'
}

// openaiOnly and anthropicOnly are what gives a message away: roles, fields and types
// of content that one vendor has and the other has not.
var (
	openaiRoles    = []string{"system", "developer", "tool", "function"}
	openaiFields   = []string{"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"}
	openaiTypes    = []string{"image_url", "input_audio", "file", "refusal"}
	anthropicTypes = []string{"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
)

// detectOpenAI looks for the first message that could only be one vendor's. A plain
// conversation without tools is the same for both and counts as Anthropic's.
func detectOpenAI(data []byte) bool {
	for m := range elements(messagesIn(data)) {
		for k, v := range fields(m) {
			switch key := string(k); {
			case slices.Contains(openaiFields, key), key == "role" && slices.Contains(openaiRoles, text(v)):
				return true
			case key != "content":
				continue
			}
			for block := range elements(v) {
				kind := text(field(block, "type"))
				if slices.Contains(openaiTypes, kind) {
					return true
				}
				if slices.Contains(anthropicTypes, kind) {
					return false
				}
			}
		}
	}
	return false
}

// seen describes data for people who wonder why it is no transcript.
func seen(data []byte) string {
	at := skipSpace(data, 0)
	if at == len(data) {
		return "an empty file"
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "UTF-16 text (convert the file to UTF-8)"
	}
	switch data[at] {
	case '{':
		if keys := keysOf(data[at:]); keys != "no fields" || json.Valid(data[at:]) {
			return "an object with " + keys
		}
		return "an object that is no JSON, or breaks off"
	case '[':
		for first := range elements(data[at:]) {
			if isObject(first) {
				return "an array of objects with " + keysOf(first)
			}
			return "an array of " + describe(first)
		}
		return "an array that does not end"
	}
	line, _, _ := bytes.Cut(data[at:min(len(data), at+200)], []byte("\n"))
	if r := []rune(strings.ToValidUTF8(string(line), "\ufffd")); len(r) > 40 {
		return fmt.Sprintf("text that begins %q", string(r[:40])+"…")
	}
	return fmt.Sprintf("text that begins %q", line)
}

// keysOf lists the first few keys of the object raw.
func keysOf(raw []byte) string {
	var keys []string
	for k := range fields(raw) {
		if len(keys) == 8 {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, string(k))
	}
	if len(keys) == 0 {
		return "no fields"
	}
	return "the fields " + strings.Join(keys, ", ")
}

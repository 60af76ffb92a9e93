package apilint

import (
	"regexp"
	"slices"
	"strings"
)

var (
	openaiID   = regexp.MustCompile(`^.{1,40}$`)
	openaiName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// openaiFields are the fields that a message of each role may have.
var openaiFields = map[string][]string{
	"system":    {"role", "content", "name"},
	"developer": {"role", "content", "name"},
	"user":      {"role", "content", "name"},
	"assistant": {"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"},
	"tool":      {"role", "content", "tool_call_id"},
	"function":  {"role", "content", "name"},
}

// OpenAI returns the faults for which the Chat Completions API would reject raw, a request or its
// array of messages.
func OpenAI(raw []byte) []Fault {
	var l linter
	_, messages, ok := l.open(raw)
	if !ok {
		return l.faults
	}
	ids := &callIDs{openaiID, map[string]bool{}}
	var order []string // the calls that await a result
	open := map[string]bool{}
	asked := -1 // the message that made them
	for i, v := range messages {
		l.at = i
		m, ok := v.(object)
		if !ok {
			l.fault("messages", "want an object")
			continue
		}
		role, _ := m["role"].(string)
		if known, ok := openaiFields[role]; ok {
			l.only("a message of "+role, m, known...)
		} else {
			l.fault("role", "role %q", role)
		}
		l.openaiContent(role, m)
		if role == "tool" {
			id := l.require("a tool message", m, "tool_call_id")
			switch pending, ok := open[id]; {
			case !ok:
				l.fault("tool-pair", "the result of %q has no call in the assistant's message before", id)
			case !pending:
				l.fault("tool-pair", "call %q has two results", id)
			default:
				open[id] = false
			}
			continue
		}
		l.openaiOpen(asked, order, open)
		asked, order, open = i, nil, map[string]bool{}
		for _, id := range l.openaiCalls(role, m, ids) {
			open[id] = true
			order = append(order, id)
		}
	}
	if asked < len(messages)-1 { // at the very end calls may be pending
		l.openaiOpen(asked, order, open)
	}
	return l.faults
}

func (l *linter) openaiOpen(asked int, order []string, open map[string]bool) {
	at := l.at
	l.at = asked
	for _, id := range order {
		if open[id] {
			l.fault("tool-pair", "call %q is not followed by its result", id)
		}
	}
	l.at = at
}

func (l *linter) openaiContent(role string, m object) {
	silent := role == "tool" // a tool result may be empty
	if role == "assistant" {
		others := []string{"tool_calls", "function_call", "refusal", "audio"}
		silent = slices.ContainsFunc(others, func(k string) bool { return m[k] != nil })
	}
	switch v := m["content"].(type) {
	case nil:
		if role != "assistant" || !silent {
			l.fault("empty", "a message of %q without content", role)
		}
	case string:
		if blank(v) && !silent {
			l.fault("empty", "a message of %q without content", role)
		}
	case []any:
		if len(v) == 0 {
			l.fault("empty", "a message of %q without content", role)
		}
		for _, p := range v {
			part, ok := p.(object)
			if !ok {
				l.fault("block", "want an object")
				continue
			}
			l.openaiPart(role, part)
		}
	default:
		l.fault("content", "want a string, an array of parts, or null")
	}
}

func (l *linter) openaiPart(role string, p object) {
	kind, _ := p["type"].(string)
	switch {
	case kind == "text":
		l.only("a part of type text", p, "type", "text")
		if s, ok := p["text"].(string); !ok || blank(s) {
			l.fault("empty", "a text part without text")
		}
	case kind == "refusal" && role == "assistant":
		l.require("a refusal", p, "refusal")
	case kind == "image_url" && role == "user":
		l.only("a part of type image_url", p, "type", "image_url")
		image, _ := p["image_url"].(object)
		url, _ := image["url"].(string)
		if rest, ok := strings.CutPrefix(url, "data:"); ok {
			mediaType, data, _ := strings.Cut(rest, ";base64,")
			l.inlineImage(mediaType, data)
		} else {
			l.imageURL(url)
		}
	case (kind == "input_audio" || kind == "file") && role == "user":
	default:
		l.fault("block", "a part of type %q from %q", kind, role)
	}
}

// openaiCalls checks the calls of a message and returns their IDs.
func (l *linter) openaiCalls(role string, m object, ids *callIDs) []string {
	v, ok := m["tool_calls"]
	if !ok || v == nil || role != "assistant" {
		return nil
	}
	calls, ok := v.([]any)
	if !ok || len(calls) == 0 {
		l.fault("tool-calls", "want an array that is not empty")
		return nil
	}
	var order []string
	for _, c := range calls {
		call, _ := c.(object)
		id, _ := call["id"].(string)
		l.callID(ids, id)
		order = append(order, id)
		kind, _ := call["type"].(string)
		inner := map[string]string{"function": "arguments", "custom": "input"}
		if !slices.Contains([]string{"function", "custom"}, kind) {
			l.fault("tool-calls", "a call of type %q", kind)
			continue
		}
		f, _ := call[kind].(object)
		if name, _ := f["name"].(string); !openaiName.MatchString(name) {
			l.fault("tool-name", "tool %q", name)
		}
		if _, ok := f[inner[kind]].(string); !ok {
			l.fault("input", "the arguments of a call are no string")
		}
	}
	return order
}

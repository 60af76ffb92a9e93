package apilint

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// anthropicBlocks are the blocks whose content is checked, with the fields each may have and the
// role that may send it.
var anthropicBlocks = map[string]struct {
	role   string
	fields []string
}{
	"text":              {"", []string{"type", "text", "citations", "cache_control"}},
	"image":             {"user", []string{"type", "source", "cache_control"}},
	"tool_use":          {"assistant", []string{"type", "id", "name", "input", "cache_control", "caller"}},
	"tool_result":       {"user", []string{"type", "tool_use_id", "content", "is_error", "cache_control"}},
	"thinking":          {"assistant", []string{"type", "thinking", "signature"}},
	"redacted_thinking": {"assistant", []string{"type", "data"}},
}

// anthropicOther are the blocks whose content is not checked, by the role that may send them.
var anthropicOther = map[string][]string{
	"user": {"document", "search_result", "container_upload"},
	"assistant": {
		"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
		"bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
		"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result",
	},
}

// A place is a block and its message.
type place struct {
	index int
	block object
}

// Anthropic returns the faults for which the Messages API would reject raw, a request or its array
// of messages. Messages of one role in a row are reported ("alternation") and then joined, as the
// API does.
func Anthropic(raw []byte) []Fault {
	var l linter
	request, messages, ok := l.open(raw)
	if !ok {
		return l.faults
	}
	if system, ok := request["system"]; ok {
		l.anthropicSystem(system)
	}
	var turns [][]place
	var roles []string
	for i, v := range messages {
		l.at = i
		m, ok := v.(object)
		if !ok {
			l.fault("messages", "want an object")
			continue
		}
		role, _ := m["role"].(string)
		if role == "system" { // effort can change with it
			l.only("a message", m, "role", "content", "output_config")
		} else {
			l.only("a message", m, "role", "content")
		}
		switch {
		case role == "system":
			l.anthropicMidSystem(messages, i)
		case role != "user" && role != "assistant":
			l.fault("role", "role %q", role)
		}
		if i == 0 && role != "user" {
			l.fault("first-role", "the first message is of %q", role)
		}
		blocks := l.anthropicContent(role, m["content"], i == len(messages)-1)
		if role == "system" { // it is not a turn
			continue
		}
		if n := len(roles); n > 0 && roles[n-1] == role {
			l.fault("alternation", "two messages of %q in a row", role)
			turns[n-1] = append(turns[n-1], blocks...)
			continue
		}
		roles, turns = append(roles, role), append(turns, blocks)
	}
	l.anthropicTools(roles, turns)
	return l.faults
}

// anthropicMidSystem checks the place of a system message: after a user message (or a server tool's
// result), and before an assistant message or the end.
func (l *linter) anthropicMidSystem(messages []any, i int) {
	role := func(i int) string {
		if i < 0 || i >= len(messages) {
			return ""
		}
		m, _ := messages[i].(object)
		s, _ := m["role"].(string)
		return s
	}
	if role(i-1) != "user" && (i == 0 || !endsInServerResult(messages[i-1])) {
		l.fault("system-place", "a message of the system after %q", role(i-1))
	}
	if next := role(i + 1); next != "" && next != "assistant" {
		l.fault("system-place", "a message of the system before %q", next)
	}
}

// endsInServerResult reports whether the last block of v is the result of a tool that the vendor ran.
func endsInServerResult(v any) bool {
	m, _ := v.(object)
	blocks, _ := m["content"].([]any)
	if len(blocks) == 0 {
		return false
	}
	last, _ := blocks[len(blocks)-1].(object)
	kind, _ := last["type"].(string)
	return m["role"] == "assistant" && kind != "tool_result" && strings.HasSuffix(kind, "_tool_result")
}

func (l *linter) anthropicSystem(v any) {
	switch v := v.(type) {
	case string:
	case []any:
		for _, b := range v {
			block, _ := b.(object)
			if s, ok := block["text"].(string); !ok || block["type"] != "text" || blank(s) {
				l.fault("system", "want blocks of text")
			}
		}
	default:
		l.fault("system", "want a string or blocks")
	}
}

// anthropicContent checks the content of one message and returns its blocks.
func (l *linter) anthropicContent(role string, v any, last bool) []place {
	var places []place
	switch v := v.(type) {
	case string:
		if blank(v) {
			l.fault("empty", "a message without content")
		}
		places = append(places, place{l.at, object{"type": "text", "text": v}})
	case []any:
		if len(v) == 0 {
			l.fault("empty", "a message without content")
		}
		for _, b := range v {
			block, ok := b.(object)
			if !ok {
				l.fault("block", "want an object")
				continue
			}
			l.anthropicBlock(role, block)
			places = append(places, place{l.at, block})
		}
	default:
		l.fault("content", "want a string or an array of blocks")
	}
	if n := len(places); role == "assistant" && n > 0 {
		end := places[n-1].block
		if s, _ := end["text"].(string); last && end["type"] == "text" && strings.TrimRightFunc(s, unicode.IsSpace) != s {
			l.fault("trailing-space", "the last message is the assistant's and ends in white space")
		}
	}
	return places
}

func (l *linter) anthropicBlock(role string, b object) {
	kind, _ := b["type"].(string)
	spec, ok := anthropicBlocks[kind]
	if !ok {
		if !slices.Contains(anthropicOther[role], kind) {
			l.fault("block", "a block of type %q from %q", kind, role)
		}
		return
	}
	l.only("a block of type "+kind, b, spec.fields...)
	if spec.role != "" && spec.role != role {
		l.fault("block", "a block of type %q from %q", kind, role)
	}
	switch kind {
	case "text":
		if s, ok := b["text"].(string); !ok || blank(s) {
			l.fault("empty", "a text block without text")
		}
	case "image":
		l.anthropicImage(b)
	case "tool_use":
		if _, ok := b["input"].(object); !ok {
			l.fault("input", "the input of a tool_use block is no object")
		}
		if name := l.require("a tool_use block", b, "name"); !anthropicName.MatchString(name) {
			l.fault("tool-name", "tool %q", name)
		}
	case "tool_result":
		l.anthropicResult(b)
	case "thinking":
		l.require("a thinking block", b, "signature")
	case "redacted_thinking":
		l.require("a redacted_thinking block", b, "data")
	}
}

func (l *linter) anthropicImage(b object) {
	source, _ := b["source"].(object)
	switch source["type"] {
	case "base64":
		mediaType, _ := source["media_type"].(string)
		data, _ := source["data"].(string)
		l.inlineImage(mediaType, data)
	case "url":
		url, _ := source["url"].(string)
		l.imageURL(url)
	case "file":
		l.require("the source of an image", source, "file_id")
	default:
		l.fault("image", "a source of type %v", source["type"])
	}
}

func (l *linter) anthropicResult(b object) {
	empty := true
	switch v := b["content"].(type) {
	case nil:
	case string:
		empty = v == ""
	case []any:
		empty = len(v) == 0
		for _, c := range v {
			inner, _ := c.(object)
			switch kind, _ := inner["type"].(string); kind {
			case "text":
				if s, ok := inner["text"].(string); !ok || blank(s) {
					l.fault("empty", "a text block without text in a tool_result")
				}
			case "image":
				l.anthropicImage(inner)
			case "document", "search_result", "tool_reference":
			default:
				l.fault("block", "a block of type %q in a tool_result", kind)
			}
		}
	default:
		l.fault("content", "the content of a tool_result is neither a string nor blocks")
	}
	if failed, ok := b["is_error"]; ok {
		if _, ok := failed.(bool); !ok {
			l.fault("field", "is_error is no boolean")
		}
		if failed == true && empty {
			l.fault("empty", "a failed tool_result without content")
		}
	}
}

// anthropicTools checks that the results of a turn's calls are the first thing in the
// next turn.
func (l *linter) anthropicTools(roles []string, turns [][]place) {
	ids := &callIDs{anthropicID, map[string]bool{}}
	var open map[string]bool // the calls of the turn before, and whether they are answered
	var order []place
	for i, turn := range turns {
		results, other := map[string]bool{}, false
		for _, p := range turn {
			l.at = p.index
			if p.block["type"] != "tool_result" {
				other = true
				continue
			}
			id, _ := p.block["tool_use_id"].(string)
			switch answered, ok := open[id]; {
			case !ok || roles[i] != "user":
				l.fault("tool-pair", "the result of %q has no call in the message before", id)
			case answered || results[id]:
				l.fault("tool-pair", "call %q has two results", id)
			}
			if other {
				l.fault("result-first", "the result of %q follows other content", id)
			}
			results[id] = true
		}
		for _, p := range order {
			if id, _ := p.block["id"].(string); !results[id] {
				l.at = p.index
				l.fault("tool-pair", "call %q has no result in the next message", id)
			}
		}
		open, order = map[string]bool{}, nil
		for _, p := range turn {
			if p.block["type"] == "tool_use" {
				l.at = p.index
				id, _ := p.block["id"].(string)
				l.callID(ids, id)
				open[id] = false
				order = append(order, p)
			}
		}
		if n := len(turn); n > 0 && roles[i] == "assistant" {
			switch turn[n-1].block["type"] {
			case "thinking", "redacted_thinking":
				l.at = turn[n-1].index
				l.fault("thinking", "the last block of the assistant is thinking")
			}
		}
	}
	// The calls of the last turn may still be pending.
}

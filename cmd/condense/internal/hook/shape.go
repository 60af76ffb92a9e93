package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A field is text in the result of a tool.
type field struct {
	text     string
	numbered bool // the agent puts the numbers of lines before it
	first    int  // number of the first line
	lines    int  // set if the number of lines changed
	set      func(string)
}

// shapes are where the text is in the results of Claude Code's own tools (2.1), by tool. A list is one of lines.
var shapes = map[string][]string{
	"Bash":     {"stdout", "stderr"},
	"Grep":     {"content", "filenames"},
	"Glob":     {"filenames"},
	"WebFetch": {"result"},
}

// ours begins this program's own texts for models. They are not shortened: the model asked for them.
const ours = "[condense "

// texts returns the texts of a result, and a function that returns the result with the changed texts. Results of
// unknown form have none.
func texts(tool string, raw json.RawMessage) ([]*field, func() any, error) {
	if len(raw) == 0 {
		return nil, nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, nil, fmt.Errorf("tool_response: %w", err)
	}
	whole := func() any { return v }
	switch r := v.(type) {
	case string:
		if strings.HasPrefix(r, ours) {
			return nil, nil, nil
		}
		return []*field{{text: r, set: func(s string) { v = s }}}, whole, nil
	case []any:
		return blocks(r), whole, nil
	case map[string]any:
		if list, ok := r["content"].([]any); ok && shapes[tool] == nil {
			return blocks(list), whole, nil
		}
		return members(tool, r), whole, nil
	}
	return nil, nil, nil
}

// blocks returns the texts of blocks of content, as MCP has them.
func blocks(list []any) []*field {
	var fields []*field
	for _, b := range list {
		block, _ := b.(map[string]any)
		text, ok := block["text"].(string)
		if !ok || block["type"] != "text" {
			continue
		}
		if strings.HasPrefix(text, ours) {
			return nil
		}
		fields = append(fields, &field{text: text, set: func(s string) { block["text"] = s }})
	}
	return fields
}

// members returns the texts of a result of one of Claude Code's tools.
func members(tool string, r map[string]any) []*field {
	if tool == "Read" {
		return readFile(r)
	}
	// Of a result that the agent saved to a file, the model sees only the beginning.
	if _, saved := r["persistedOutputPath"]; saved || r["isImage"] == true {
		return nil
	}
	var fields []*field
	for _, name := range shapes[tool] {
		switch x := r[name].(type) {
		case string:
			fields = append(fields, &field{text: x, set: func(s string) { r[name] = s }})
		case []any:
			if text, ok := joined(x); ok {
				fields = append(fields, &field{text: text, set: func(s string) { r[name] = strings.Split(strings.TrimSuffix(s, "\n"), "\n") }})
			}
		}
	}
	return fields
}

// joined returns a list of texts without line breaks as lines.
func joined(list []any) (string, bool) {
	var b strings.Builder
	for _, v := range list {
		line, ok := v.(string)
		if !ok || strings.Contains(line, "\n") {
			return "", false
		}
		b.WriteString(line + "\n")
	}
	return b.String(), true
}

// readFile returns the text of a file that was read.
func readFile(r map[string]any) []*field {
	file, _ := r["file"].(map[string]any)
	text, ok := file["content"].(string)
	if !ok || r["type"] != "text" {
		return nil
	}
	f := &field{text: text, numbered: true, first: 1}
	if n, ok := file["startLine"].(json.Number); ok {
		if first, err := n.Int64(); err == nil && first > 0 {
			f.first = int(first)
		}
	}
	f.set = func(s string) {
		file["content"] = s
		if _, ok := file["numLines"]; ok {
			file["numLines"] = f.lines
		}
	}
	return []*field{f}
}

package transcript

import (
	"slices"

	"github.com/condensehq/condense/core"
)

var openaiCodec = Codec{
	Name:    "openai",
	Doc:     "OpenAI Chat Completions: an array of messages, or a request object with messages, tools …",
	Vendor:  OpenAI,
	Request: true,
	Detect:  func(data []byte) bool { return vendorOf(data) == OpenAI },
	Read:    readOpenAI,
	Write:   writeOpenAI,
	Convert: convertOpenAI,
}

func readOpenAI(data []byte, f *File) error {
	if err := readArray(f, data, decodeOpenAI); err != nil {
		return err
	}
	for k, v := range fields(data) {
		switch string(k) {
		case "tools", "functions":
			if !isNull(v) {
				f.Tools = slices.Clip(v)
			}
		case "model":
			f.Model = text(v)
		case "max_completion_tokens":
			f.MaxOutput = number(v)
		case "max_tokens": // its older name
			if f.MaxOutput == 0 {
				f.MaxOutput = number(v)
			}
		case "system": // where a tool keeps OpenAI's messages and the prompt apart
			f.System = text(v)
		}
	}
	return nil
}

func writeOpenAI(f *File, out *Output) error {
	writeRecords(f, out, f.View(), true, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return patchOpenAI(was, m.Parts)
		}
		return joinRecords(encodeOpenAI(m.Role, m.Parts))
	})
	return nil
}

// openaiRoleOf maps the roles on the wire to ours.
var openaiRoleOf = map[string]core.Role{
	"system":    core.RoleSystem,
	"developer": core.RoleSystem, // what newer models call it
	"user":      core.RoleUser,
	"assistant": core.RoleAssistant,
	"tool":      core.RoleTool,
	"function":  core.RoleTool, // before there were parallel calls
}

// openaiMessage is the raw fields of a message that say something.
type openaiMessage struct {
	role, id, name, callID             []byte
	content, refusal, reasoning, audio []byte
	toolCalls, functionCall            []byte
	reasoningField                     string // the name that the server has for it
}

func splitOpenAI(raw []byte) openaiMessage {
	var w openaiMessage
	for k, v := range fields(raw) {
		switch string(k) {
		case "role":
			w.role = v
		case "id":
			w.id = v
		case "name":
			w.name = v
		case "tool_call_id":
			w.callID = v
		case "content":
			w.content = v
		case "refusal":
			w.refusal = v
		case "reasoning_content": // DeepSeek, and those that copied it
			w.reasoning, w.reasoningField = v, "reasoning_content"
		case "reasoning": // OpenRouter, vLLM
			if w.reasoningField != "reasoning_content" {
				w.reasoning, w.reasoningField = v, "reasoning"
			}
		case "audio":
			w.audio = v
		case "tool_calls":
			w.toolCalls = v
		case "function_call":
			w.functionCall = v
		}
	}
	return w
}

// decodeOpenAI is a [decoder]. The parts stand in this order: reasoning, content,
// refusal, audio, calls.
func decodeOpenAI(raw []byte) (core.Message, *fault) {
	var m core.Message
	if !isObject(raw) {
		return m, &fault{Found: describe(raw), Want: "an object with role and content"}
	}
	w := splitOpenAI(raw)
	role, ok := openaiRoleOf[text(w.role)]
	if !ok {
		return m, wrongRole(raw, w.role, "system, developer, user, assistant, tool or function")
	}
	m.Role, m.ID = role, text(w.id)
	if w.content == nil && w.toolCalls == nil && w.functionCall == nil && w.refusal == nil && w.audio == nil && w.reasoning == nil {
		return m, withoutContent()
	}
	content, err := decodeOpenAIContent(w.content)
	if err != nil {
		err.Offset += offsetIn(raw, w.content)
		return m, err
	}
	if role == core.RoleTool {
		r := core.ToolResult{CallID: text(w.callID), Content: content}
		if w.callID == nil && text(w.role) == "function" {
			r.CallID = functionID(text(w.name))
		} else if !isString(w.callID) {
			return m, &fault{Found: `a tool message without "tool_call_id"`, Want: "the ID of the call that it answers"}
		}
		m.Parts = []core.Part{r}
		return m, nil
	}
	if s := text(w.reasoning); s != "" {
		m.Parts = append(m.Parts, core.Reasoning{Text: s})
	}
	m.Parts = append(m.Parts, content...)
	if s := text(w.refusal); s != "" {
		m.Parts = append(m.Parts, core.Text(s))
	}
	if isObject(w.audio) {
		m.Parts = append(m.Parts, core.Opaque{Kind: "audio", JSON: string(w.audio)})
	}
	for call := range elements(w.toolCalls) {
		c, err := decodeOpenAICall(call)
		if err != nil {
			err.Offset += offsetIn(raw, call)
			return m, err
		}
		m.Parts = append(m.Parts, c)
	}
	if isObject(w.functionCall) {
		name := text(field(w.functionCall, "name"))
		m.Parts = append(m.Parts, core.ToolCall{ID: functionID(name), Name: name, Args: arguments(w.functionCall)})
	}
	return m, nil
}

// functionID is the ID of a call of a function from before calls had one. They were
// answered one at a time and by name.
func functionID(name string) string { return "function:" + name }

// decodeOpenAIContent returns one part for each part of raw. An empty string is none.
func decodeOpenAIContent(raw []byte) ([]core.Part, *fault) {
	return decodeList(raw, "a string, an array of parts, or null", decodeOpenAIPart)
}

func decodeOpenAIPart(raw []byte) (core.Part, *fault) {
	if isString(raw) { // what some servers accept
		return core.Text(unquote(raw)), nil
	}
	if !isObject(raw) {
		return nil, &fault{Found: describe(raw) + " as a part of content", Want: "an object"}
	}
	kind := text(field(raw, "type"))
	switch kind {
	case "text", "refusal":
		s := field(raw, kind)
		if !isString(s) {
			return nil, missing(raw, kind, kind, "a string")
		}
		return core.Text(unquote(s)), nil
	case "image_url":
		v := field(raw, "image_url")
		if isObject(v) {
			v = field(v, "url")
		}
		if !isString(v) {
			return nil, missing(raw, kind, "image_url", `an object with "url"`)
		}
		return imageFromURL(unquote(v)), nil
	case "":
		return nil, missing(raw, "", "type", "a string")
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}, nil
}

func decodeOpenAICall(raw []byte) (core.Part, *fault) {
	if !isObject(raw) {
		return nil, &fault{Found: describe(raw) + " as a tool call", Want: "an object"}
	}
	c := core.ToolCall{ID: text(field(raw, "id"))}
	if f := field(raw, "custom"); isObject(f) {
		c.Name, c.Args = text(field(f, "name")), text(field(f, "input"))
		return c, nil
	}
	f := field(raw, "function")
	if !isObject(f) {
		return nil, &fault{Found: `a tool call without "function"`, Want: "an object with name and arguments"}
	}
	c.Name, c.Args = text(field(f, "name")), arguments(f)
	return c, nil
}

// arguments returns the arguments of the call raw: the text of a string, or the JSON of
// what a server sent in place of one.
func arguments(raw []byte) string {
	v := field(raw, "arguments")
	if isString(v) {
		return unquote(v)
	}
	return string(v)
}

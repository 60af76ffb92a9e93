package chain

import (
	"bytes"

	"github.com/condensehq/condense/internal/rawjson"
)

// An Answer collects the items of an answer of the Responses API that is written to it, streamed or not.
type Answer struct {
	most   int64 // bytes that are kept
	kept   int64
	line   []byte // the part of a line, or of an answer that is no stream
	event  []byte // the data of the lines of an event
	begun  bool
	stream bool
	over   bool // too large
	id     string
	any    string // the ID, also of an answer that is not complete
	items  [][]byte
}

// NewAnswer returns a collector of at most so many bytes; of a larger answer it keeps nothing.
func NewAnswer(most int64) *Answer { return &Answer{most: most} }

// Write reads the next bytes. It never fails.
func (a *Answer) Write(p []byte) (int, error) {
	n := len(p)
	if !a.begun {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 {
			return n, nil
		}
		a.begun, a.stream = true, p[0] != '{'
	}
	for len(p) > 0 && !a.over {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 || !a.stream {
			a.line = append(a.line, p...)
			a.over = a.kept+int64(len(a.line)+len(a.event)) > a.most
			break
		}
		a.readLine(append(a.line, p[:end-1]...))
		a.line, p = a.line[:0], p[end:]
	}
	if a.over {
		a.line, a.event, a.items = nil, nil, nil
	}
	return n, nil
}

// readLine reads a line of a stream. An empty one ends an event.
func (a *Answer) readLine(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		a.event = append(append(a.event, data...), '\n')
	} else if len(line) == 0 && len(a.event) > 0 {
		a.read(a.event)
		a.event = a.event[:0]
	}
}

// read reads an event.
func (a *Answer) read(event []byte) {
	if a.any == "" {
		a.any = rawjson.Text(rawjson.Field(rawjson.Field(event, "response"), "id"))
	}
	switch rawjson.Text(rawjson.Field(event, "type")) {
	case "response.output_item.done":
		if item := asInput(rawjson.Field(event, "item")); item != nil {
			a.items = append(a.items, item)
			a.kept += int64(len(item))
		}
	case "response.completed", "response.incomplete":
		a.end(rawjson.Field(event, "response"))
	}
}

// end reads a response that is complete.
func (a *Answer) end(response []byte) {
	a.id = rawjson.Text(rawjson.Field(response, "id"))
	if len(a.items) > 0 {
		return
	}
	for item := range rawjson.Elements(rawjson.Field(response, "output")) {
		if item = asInput(item); item != nil {
			a.items = append(a.items, item)
		}
	}
}

// Complete reports whether the last event of a stream was written: nothing can follow it but the client's next request.
func (a *Answer) Complete() bool { return a.id != "" }

// Response returns the ID of the response and its items as a client would send them back; no ID if the answer is not
// complete, or is none. Nothing can be written afterwards.
func (a *Answer) Response() (id string, items [][]byte) {
	if !a.over && !a.stream && len(a.line) > 0 {
		a.any = rawjson.Text(rawjson.Field(a.line, "id"))
		switch rawjson.Text(rawjson.Field(a.line, "status")) {
		case "completed", "incomplete":
			a.end(a.line)
		}
	}
	if a.over {
		return "", nil
	}
	return a.id, a.items
}

// AsInput returns items of an answer as input: see asInput.
func AsInput(items [][]byte) (all [][]byte) {
	for _, item := range items {
		if item = asInput(item); item != nil {
			all = append(all, item)
		}
	}
	return all
}

// asInput returns a copy of an item of an answer as input of a request that names no earlier response: without the
// IDs by which the vendor would look for it, and nil for thinking that only the vendor has.
func asInput(item []byte) []byte {
	item = trimmed(item)
	if !rawjson.IsObject(item) {
		return nil
	}
	switch rawjson.Text(rawjson.Field(item, "type")) {
	case "reasoning":
		if !rawjson.IsString(rawjson.Field(item, "encrypted_content")) {
			return nil
		}
	case "message", "function_call", "custom_tool_call":
	default:
		return bytes.Clone(item)
	}
	return bytes.Clone(rawjson.CutField(rawjson.CutField(item, "id"), "status"))
}

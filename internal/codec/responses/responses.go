// Package responses reads and writes items of OpenAI's Responses API.
//
// A message of the conversation is one item. Items that only the vendor understands are kept
// verbatim: they are protected, unless they are the record of a tool that the vendor ran.
package responses

import (
	"bytes"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/items"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "responses",
	Doc:     "OpenAI Responses: a request object with input, an answer with output, or an array of items",
	Vendor:  codec.OpenAI,
	Request: true,
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

// requestFields are the fields of a request. Other APIs have an input, too, so that a request whose input is a string
// or empty must have no others.
var requestFields = rawjson.Set("model", "input", "instructions", "tools", "tool_choice", "store", "stream", "stream_options",
	"reasoning", "include", "text", "parallel_tool_calls", "max_output_tokens", "max_tool_calls", "previous_response_id",
	"conversation", "prompt", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier",
	"service_tier", "temperature", "top_p", "top_logprobs", "truncation", "background", "context_management", "metadata", "user",
	"client_metadata")

// ranByVendor are the records of tools that the vendor ran. They can be hidden like messages.
var ranByVendor = rawjson.Set("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")

// itemTypes are the types that identify items, in addition to all that end like a call or an output.
// An Anthropic message can have the type "message" too.
var itemTypes = rawjson.Set("reasoning", "compaction", "compaction_summary", "compaction_trigger", "additional_tools",
	"configuration_update", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "tool_search_output")

func detect(data []byte) bool {
	at := rawjson.SkipSpace(data, 0)
	if rawjson.IsArray(data[at:]) {
		_, sure := looksLikeItems(data[at:])
		return sure
	}
	var input, output []byte
	var object string
	strange, asks := false, false
	for k, v := range rawjson.Fields(data[at:]) {
		switch string(k) {
		case "messages":
			return false
		case "input":
			input = v
		case "output":
			output = v
		case "object":
			object = rawjson.Text(v)
		case "model", "instructions":
			asks = true
		}
		strange = strange || !requestFields[string(k)]
	}
	switch {
	case rawjson.IsArray(input):
		n, sure := looksLikeItems(input)
		return sure || n > 0 || n == 0 && asks && !strange && rawjson.Complete(input)
	case rawjson.IsString(input):
		return asks && !strange
	}
	return rawjson.IsArray(output) && (object == "response" || object == "response.compaction")
}

// looksLikeItems returns the number of elements of array, or -1 if some are not items. Sure means that one has a form
// that no other API has; then the rest is not looked at.
func looksLikeItems(array []byte) (n int, sure bool) {
	for item := range rawjson.Elements(array) {
		var of, role, content []byte
		rawjson.Pick(item, []string{"type", "role", "content"}, &of, &role, &content)
		kind := rawjson.Text(of)
		if itemTypes[kind] || strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output") {
			return n, true
		}
		if rawjson.Text(role) == "" || content == nil || kind != "" && kind != "message" {
			return none, false
		}
		for block := range rawjson.Elements(content) {
			switch rawjson.Text(rawjson.Field(block, "type")) {
			case "input_text", "output_text", "input_image", "input_file":
				return n, true
			}
		}
		n++
	}
	return n, false
}

// none is not a count.
const none = -1

func read(data []byte, f *codec.File) error {
	input, member := rawjson.Field(data, "input"), "input"
	if input == nil && rawjson.IsArray(rawjson.Field(data, "output")) {
		member = "output"
	}
	var err error
	if rawjson.IsString(input) {
		err = readText(data, input, f)
	} else {
		err = request.ReadArray(f, data, member, decode)
	}
	if err != nil {
		return err
	}
	var system, tools, name, most []byte
	rawjson.Pick(data, []string{"instructions", "tools", "model", "max_output_tokens"}, &system, &tools, &name, &most)
	f.System, f.Model, f.MaxOutput = textOf(system), rawjson.Text(name), rawjson.Int(most)
	if tools != nil && !rawjson.IsNull(tools) {
		f.Tools = slices.Clip(tools)
	}
	return nil
}

// readText reads a request whose input is a string: one message of the user.
func readText(data, input []byte, f *codec.File) error {
	if err := syntax.Validate(data); err != nil {
		return err
	}
	at := rawjson.Offset(data, input)
	f.Envelope.Head, f.Envelope.Sep, f.Envelope.Tail = data[:at:at], []byte{','}, data[at+len(input):]
	return f.Add(core.Message{ID: "m1", Role: core.RoleUser, Parts: blocks.Text(input), Source: slices.Clip(input)})
}

// textOf returns the text of instructions: a string, or in an answer also items.
func textOf(raw []byte) string {
	var all []core.Part
	for item := range rawjson.Elements(raw) {
		if m, _, err := items.Decode(item); err == nil {
			all = append(all, m.Parts...)
		}
	}
	if all == nil {
		return rawjson.Text(raw)
	}
	return blocks.Join(all)
}

func decode(raw []byte) (core.Message, *syntax.Error) {
	m, sent, err := items.Decode(raw)
	if err != nil {
		return m, err
	}
	kind := rawjson.Text(rawjson.Field(raw, "type"))
	if !sent { // not in a request of today's Codex
		m.Parts = []core.Part{core.Opaque{Kind: kind, JSON: string(raw)}}
	}
	if len(m.Parts) == 1 && m.Parts[0] == core.Part(core.Opaque{Kind: kind, JSON: string(raw)}) {
		approved := rawjson.IsString(rawjson.Field(raw, "approval_request_id")) // the vendor could run it again
		m.Protected = !ranByVendor[kind] || approved
	}
	return m, nil
}

// write writes the view. A file whose input is a string gets an array if that is no longer the
// whole conversation.
func write(f *codec.File, out *codec.Output) error {
	view := arrange(f, out)
	if head := bytes.TrimRight(f.Envelope.Head, " \t\r\n"); bytes.HasSuffix(head, []byte{':'}) && (len(view) != 1 || !rawjson.IsString(view[0].Source)) {
		g := *f
		g.Envelope.Head = append(slices.Clip(f.Envelope.Head), '[')
		g.Envelope.Tail = append([]byte{']'}, f.Envelope.Tail...)
		view = slices.Clone(view)
		for i := range view {
			if rawjson.IsString(view[i].Source) {
				view[i].Source = nil
			}
		}
		f = &g
	}
	request.Write(f, out, view, false, func(m *core.Message, was []byte) []byte {
		if was == nil {
			return bytes.Join(items.Encode(m), []byte{','})
		}
		all := items.Patch(was, m)
		if len(all) == 1 && &all[0][0] == &was[0] {
			out.Warn(m.ID, "an item of kind %q was left as it was: the vendor fixes its shape", rawjson.Text(rawjson.Field(was, "type")))
		}
		return bytes.Join(all, []byte{','})
	})
	return nil
}

// arrange returns the view of f in which reasoning is directly before its item, and is left out if the item is
// hidden: the vendor refuses reasoning without it. An item whose reasoning is hidden loses its own ID, because the
// vendor requires the reasoning of an item that it finds stored under that ID. Call IDs, which pair calls and
// results, stay.
func arrange(f *codec.File, out *codec.Output) []core.Message {
	leads := map[string]string{} // reasoning to its item
	var open []string
	for _, m := range f.Journal.Messages() {
		switch {
		case isReasoning(&m):
			open = append(open, m.ID)
			continue
		case m.Role == core.RoleAssistant:
			for _, id := range open {
				leads[id] = m.ID
			}
		}
		open = nil
	}
	view := f.View()
	if len(leads) == 0 {
		return view
	}
	shown := plain.Set(plain.Each(view, func(x core.Message) string { return x.ID }))
	bereft := map[string]bool{} // items whose reasoning is hidden
	for id, to := range leads {
		bereft[to] = bereft[to] || !shown[id]
	}
	held := map[string][]core.Message{}
	arranged := make([]core.Message, 0, len(view))
	for _, m := range view {
		switch to, ok := leads[m.ID]; {
		case ok && shown[to]:
			held[to] = append(held[to], m)
			continue
		case ok:
			out.Warn(m.ID, "reasoning was left out: the item after it is hidden")
			continue
		}
		arranged = append(arranged, held[m.ID]...)
		if bereft[m.ID] {
			switch rawjson.Text(rawjson.Field(m.Source, "type")) {
			case "message", "function_call", "custom_tool_call": // the vendor needs no ID of them
				m.Source = rawjson.DropField(m.Source, "id")
			}
		}
		arranged = append(arranged, m)
	}
	return arranged
}

func isReasoning(m *core.Message) bool {
	return len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.Reasoning); return !ok })
}

// convertFile writes a request without a model.
func convertFile(f *codec.File, out *codec.Output) error {
	rest := *f // the system prompt has a place of its own
	rest.System = ""
	in := convert.Input(&rest, &apimessage.Responses, out)
	in.Foreign = f.Vendor != codec.OpenAI // no other reasoning is certain to be the vendor's
	turns, _ := apimessage.Responses.Turns(in)
	convert.WarnFields(f, f.View(), out)
	var input [][]byte
	for _, t := range turns {
		m := core.Message{Role: t.Role, Parts: t.Parts}
		m.Parts = append(m.Parts, plain.Each(t.Results, func(r core.ToolResult) core.Part { return r })...)
		input = append(input, items.Encode(&m)...)
	}
	raw := []byte{'{'}
	if f.System != "" {
		raw = rawjson.Append(raw, `"instructions":?,`, f.System)
	}
	out.Add(rawjson.Append(raw, `"input":?}`, rawjson.Array(input)), []byte{'\n'})
	return nil
}

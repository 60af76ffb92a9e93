package upstream

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/condensehq/condense/internal/plain"
)

// created is the time of every answer of OpenAI's API.
const created = 1795348800

// render returns the answer: one body, or the events of a stream.
func (a *answer) render(p *prompt, u usage) [][]byte {
	var events []event
	switch {
	case p.cloud == Bedrock:
		return a.bedrock(p, u)
	case p.api == Gemini:
		return a.gemini(p, u)
	case p.count:
		return [][]byte{encode(object{"input_tokens": u.Prompt})}
	case p.api == Messages && !p.stream:
		return [][]byte{encode(a.message(p, u))}
	case p.api == Chat && !p.stream:
		return [][]byte{encode(a.completion(p, u))}
	case p.api == Responses && !p.stream:
		return [][]byte{encode(a.response(p, u, "completed"))}
	case p.api == Messages:
		events = a.messageEvents(p, u)
	case p.api == Chat:
		events = a.chunks(p, u)
	default:
		events = a.responseEvents(p, u)
	}
	return plain.Each(events, func(e event) []byte { return e.bytes() })
}

type event struct {
	name string
	data any // a string is written unchanged
}

func (e event) bytes() []byte {
	data, ok := e.data.(string)
	if !ok {
		data = string(encode(e.data))
	}
	if e.name == "" {
		return []byte("data: " + data + "\n\n")
	}
	return []byte("event: " + e.name + "\ndata: " + data + "\n\n")
}

// pieces cuts s into parts of some characters.
func pieces(s string) []string {
	return plain.Each(slices.Collect(slices.Chunk([]rune(s), 24)), func(r []rune) string { return string(r) })
}

func (u usage) anthropic(output int) object {
	input := u.Prompt - u.Read - u.Write
	switch u.twice {
	case "read":
		input += u.Read
	case "all":
		input = u.Prompt
	}
	return object{
		"input_tokens": input, "output_tokens": output, "service_tier": "standard",
		"cache_read_input_tokens": u.Read, "cache_creation_input_tokens": u.Write,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.Write - u.Hour, "ephemeral_1h_input_tokens": u.Hour},
	}
}

// content returns the blocks of the answer.
func (a *answer) content() []any {
	out := []any{}
	if a.seal != "" {
		out = append(out, object{"type": "thinking", "thinking": a.thinking, "signature": a.seal})
	}
	if a.text != "" {
		out = append(out, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		out = append(out, object{"type": "tool_use", "id": c.id, "name": c.tool.name, "input": c.input})
	}
	return out
}

func (a *answer) message(p *prompt, u usage) object {
	return object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": p.model, "content": a.content(),
		"stop_reason": a.stop, "stop_sequence": nil, "usage": u.anthropic(a.tokens),
	}
}

func (a *answer) messageEvents(p *prompt, u usage) []event {
	var out []event
	add := func(name string, o object) {
		o["type"] = name
		out = append(out, event{name, o})
	}
	start := a.message(p, u)
	start["content"], start["stop_reason"], start["usage"] = []any{}, nil, u.anthropic(1)
	add("message_start", object{"message": start})
	for i, b := range objects(a.content()) {
		delta := func(kind, field string, parts []string) {
			for _, part := range parts {
				add("content_block_delta", object{"index": i, "delta": object{"type": kind, field: part}})
			}
		}
		switch b["type"] {
		case "thinking":
			add("content_block_start", object{"index": i, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}})
			delta("thinking_delta", "thinking", pieces(a.thinking))
			delta("signature_delta", "signature", []string{a.seal})
		case "text":
			add("content_block_start", object{"index": i, "content_block": object{"type": "text", "text": ""}})
			if i == 0 {
				add("ping", object{})
			}
			delta("text_delta", "text", pieces(a.text))
		default:
			add("content_block_start", object{"index": i, "content_block": with(b, "input", object{})})
			delta("input_json_delta", "partial_json", append([]string{""}, pieces(string(encode(b["input"])))...))
		}
		add("content_block_stop", object{"index": i})
	}
	add("message_delta", object{"delta": object{"stop_reason": a.stop, "stop_sequence": nil}, "usage": u.anthropic(a.tokens)})
	add("message_stop", object{})
	return out
}

func (u usage) chat(output int) object {
	details := object{"cached_tokens": u.Read, "audio_tokens": 0}
	if u.writes {
		details["cache_write_tokens"] = u.Write
	}
	return object{
		"prompt_tokens": u.Prompt, "completion_tokens": output, "total_tokens": u.Prompt + output, "prompt_tokens_details": details,
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}

// finish is the finish reason of Chat Completions.
func (a *answer) finish() string {
	switch {
	case len(a.calls) > 0:
		return "tool_calls"
	case a.stop == "max_tokens":
		return "length"
	}
	return "stop"
}

// arguments returns the input of a call as OpenAI's APIs write it.
func (c call) arguments() string {
	if c.input == nil {
		return "{}"
	}
	return string(encode(c.input))
}

func (a *answer) completion(p *prompt, u usage) object {
	message := object{"role": "assistant", "content": nil, "refusal": nil, "annotations": []any{}}
	if a.text != "" {
		message["content"] = a.text
	}
	calls := []any{}
	for _, c := range a.calls {
		calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.tool.name, "arguments": c.arguments()}})
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return object{
		"id": "chatcmpl-" + a.id, "object": "chat.completion", "created": created, "model": p.model, "service_tier": "default",
		"choices": []any{object{"index": 0, "message": message, "finish_reason": a.finish(), "logprobs": nil}}, "usage": u.chat(a.tokens),
	}
}

func (a *answer) chunks(p *prompt, u usage) []event {
	var out []event
	counted := obj(p.doc["stream_options"])["include_usage"] == true
	chunk := func(choices []any, usage any) {
		o := object{"id": "chatcmpl-" + a.id, "object": "chat.completion.chunk", "created": created, "model": p.model, "service_tier": "default", "choices": choices}
		if counted {
			o["usage"] = usage
		}
		out = append(out, event{data: o})
	}
	add := func(delta object, finish any) {
		chunk([]any{object{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": nil}}, nil)
	}
	add(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, s := range pieces(a.text) {
		add(object{"content": s}, nil)
	}
	for i, c := range a.calls {
		add(object{"tool_calls": []any{object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.tool.name, "arguments": ""}}}}, nil)
		for _, s := range pieces(c.arguments()) {
			add(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": s}}}}, nil)
		}
	}
	add(object{}, a.finish())
	if counted {
		chunk([]any{}, u.chat(a.tokens))
	}
	return append(out, event{data: "[DONE]"})
}

// items returns the output of Responses.
func (a *answer) items() []object {
	var out []object
	if a.output != nil {
		return []object{a.output}
	}
	if a.seal != "" {
		summary := []any{}
		if !a.omitted {
			summary = append(summary, object{"type": "summary_text", "text": a.thinking})
		}
		out = append(out, object{"id": "rs_" + a.id, "type": "reasoning", "summary": summary, "encrypted_content": a.seal})
	}
	if a.text != "" {
		out = append(out, object{
			"id": "msg_" + a.id, "type": "message", "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}, "logprobs": []any{}}},
		})
	}
	for i, c := range a.calls {
		id := fmt.Sprintf("%s%d", a.id, i)
		switch c.tool.kind {
		case "local_shell":
			out = append(out, object{"id": "lsh_" + id, "type": "local_shell_call", "call_id": c.id, "status": "completed", "action": c.input})
		case "tool_search":
			out = append(out, object{"id": "tsc_" + id, "type": "tool_search_call", "call_id": c.id, "status": "completed", "execution": "client", "arguments": c.input})
		case "custom":
			out = append(out, object{"id": "ctc_" + id, "type": "custom_tool_call", "call_id": c.id, "status": "completed", "name": c.tool.name, "input": c.raw})
		default:
			o := object{"id": "fc_" + id, "type": "function_call", "call_id": c.id, "status": "completed", "name": c.tool.name, "arguments": c.arguments()}
			if c.tool.namespace != "" {
				o["namespace"] = c.tool.namespace
			}
			out = append(out, o)
		}
	}
	return out
}

func (a *answer) response(p *prompt, u usage, status string) object {
	o := object{
		"id": "resp_" + a.id, "object": "response", "created_at": created, "status": status, "model": p.model, "output": []any{}, "error": nil,
		"incomplete_details": nil, "instructions": nil, "max_output_tokens": nil, "metadata": object{}, "parallel_tool_calls": true,
		"previous_response_id": nil, "store": false, "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": []any{},
		"reasoning": object{"effort": nil, "summary": nil}, "text": object{"format": object{"type": "text"}}, "truncation": "disabled", "usage": nil, "user": nil,
	}
	if status == "completed" {
		output := []any{}
		for _, item := range a.items() {
			output = append(output, item)
		}
		details := object{"cached_tokens": u.Read}
		if u.writes {
			details["cache_write_tokens"] = u.Write
		}
		o["output"] = output
		o["usage"] = object{
			"input_tokens": u.Prompt, "input_tokens_details": details, "output_tokens": a.tokens,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.Prompt + a.tokens,
		}
	}
	return o
}

func (a *answer) responseEvents(p *prompt, u usage) []event {
	var out []event
	add := func(name string, o object) {
		o["type"], o["sequence_number"] = name, len(out)
		out = append(out, event{name, o})
	}
	add("response.created", object{"response": a.response(p, u, "in_progress")})
	add("response.in_progress", object{"response": a.response(p, u, "in_progress")})
	for i, item := range a.items() {
		// deltas sends the text of one part, with the members that all its events have.
		deltas := func(name, field, whole string, at object) {
			at["item_id"], at["output_index"] = item["id"], i
			for _, s := range pieces(whole) {
				add(name+".delta", with(at, "delta", s))
			}
			add(name+".done", with(at, field, whole))
		}
		begun := with(item, "status", "in_progress")
		switch item["type"] {
		case "reasoning":
			add("response.output_item.added", object{"output_index": i, "item": with(without(item, "encrypted_content"), "summary", []any{})})
			if !a.omitted {
				part := object{"item_id": item["id"], "output_index": i, "summary_index": 0}
				add("response.reasoning_summary_part.added", with(part, "part", object{"type": "summary_text", "text": ""}))
				deltas("response.reasoning_summary_text", "text", a.thinking, object{"summary_index": 0})
				add("response.reasoning_summary_part.done", with(part, "part", object{"type": "summary_text", "text": a.thinking}))
			}
		case "message":
			part, _ := anys(item["content"])[0].(object)
			at := object{"item_id": item["id"], "output_index": i, "content_index": 0}
			add("response.output_item.added", object{"output_index": i, "item": with(begun, "content", []any{})})
			add("response.content_part.added", with(at, "part", with(part, "text", "")))
			deltas("response.output_text", "text", a.text, object{"content_index": 0, "logprobs": []any{}})
			add("response.content_part.done", with(at, "part", part))
		case "function_call":
			add("response.output_item.added", object{"output_index": i, "item": with(begun, "arguments", "")})
			deltas("response.function_call_arguments", "arguments", text(item["arguments"]), object{})
		case "custom_tool_call":
			add("response.output_item.added", object{"output_index": i, "item": with(begun, "input", "")})
			deltas("response.custom_tool_call_input", "input", text(item["input"]), object{})
		default:
			add("response.output_item.added", object{"output_index": i, "item": item})
		}
		add("response.output_item.done", object{"output_index": i, "item": item})
	}
	add("response.completed", object{"response": a.response(p, u, "completed")})
	return out
}

// failed are the events of a response that is refused after a status of 200.
func (f *refusal) failed(p *prompt, n int) [][]byte {
	a := answer{id: identifier("", n)}
	r := a.response(p, usage{}, "failed")
	r["error"] = object{"code": f.kind, "message": f.text}
	return [][]byte{
		event{"response.created", object{"type": "response.created", "sequence_number": 0, "response": a.response(p, usage{}, "in_progress")}}.bytes(),
		event{"response.failed", object{"type": "response.failed", "sequence_number": 1, "response": r}}.bytes(),
	}
}

// listing is the answer to GET /v1/models.
func listing(h http.Header) []byte {
	data := []any{}
	for _, name := range catalog {
		if h.Get("Anthropic-Version") != "" {
			data = append(data, object{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"})
		} else {
			data = append(data, object{"object": "model", "id": name, "created": created, "owned_by": "system"})
		}
	}
	return encode(object{"object": "list", "data": data, "has_more": false, "first_id": catalog[0], "last_id": catalog[len(catalog)-1]})
}
